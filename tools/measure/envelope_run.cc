#include "tools/measure/envelope_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "common/base/hash.h"
#include "common/base/units.h"
#include "tools/console/output.h"
#include "tools/console/progress.h"
#include "tools/measure/envelope_measure.h"
#include "tools/measure/envelope_results.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::EnvelopeCell;
using predict::EnvelopeGrid;

constexpr uint32_t kClientsMax = 1024;
constexpr uint32_t kClientsByDefault = 8;
constexpr uint64_t kSizeMax = uint64_t{1} << 30;
constexpr uint64_t kBytesOfClientMax = uint64_t{1} << 30;
constexpr uint32_t kRepeatsMax = 1000;
constexpr double kScaleMax = 100;
// A step of a sample may take at least this long, however slow the store.
constexpr Duration kStepMin = Seconds(30);
constexpr uint64_t kBytesPerSecondMin = 1'000'000;
constexpr uint64_t kOperationsPerSecondMin = 20;

// ---- what is asked for

Result<EnvelopeGrid> GridOf(const EnvelopeRequest& options, size_t hosts) {
  EnvelopeGrid grid;
  if (!options.sizes.empty()) grid.sizes.clear();
  for (const std::string& word : options.sizes) {
    const Result<int64_t> size = ParseBytes(word);
    if (!size.ok() || *size <= 0 || static_cast<uint64_t>(*size) > kSizeMax)
      return InvalidArgumentError(
          fmt::format("--sizes {}: give sizes of 1 byte to 1G, such as 128K", word));
    grid.sizes.push_back(static_cast<uint64_t>(*size));
  }
  if (!options.clients.empty()) grid.clients = options.clients;
  if (options.clients.empty()) {
    grid.clients.clear();
    const auto most = std::max<uint32_t>(kClientsByDefault, static_cast<uint32_t>(hosts));
    for (uint32_t count = 1; count <= std::min(most, kClientsMax); count *= 2)
      grid.clients.push_back(count);
  }
  for (const uint32_t count : grid.clients) {
    if (count == 0 || count > kClientsMax)
      return InvalidArgumentError(fmt::format("--clients {}: give 1 to {}", count, kClientsMax));
  }
  const double millionths = std::round(options.scale * predict::kScaleOneMillionths);
  if (!(millionths >= 1) || !(options.scale <= kScaleMax))
    return InvalidArgumentError(fmt::format("--scale {}: give a share of {} files, 0.000001 to {}",
                                            options.scale, predict::kEnvelopeFiles, kScaleMax));
  grid.scale_millionths = static_cast<uint64_t>(millionths);
  const Result<int64_t> bytes = ParseBytes(options.bytes_max);
  if (!bytes.ok() || *bytes < 0)
    return InvalidArgumentError(fmt::format(
        "--bytes-max {}: give a size such as 64M, or 0 for no limit", options.bytes_max));
  grid.bytes_max = static_cast<uint64_t>(*bytes);
  for (const EnvelopeCell& cell : CellsOf(grid)) {
    const uint64_t own = OperationsOf(grid, cell) / cell.clients * cell.size_bytes;
    if (own > kBytesOfClientMax)
      return InvalidArgumentError(
          fmt::format("a client keeps what it reads until it has been compared, here {}: lower "
                      "--scale or --bytes-max, so that it is at most {} per client",
                      HumanBytes(static_cast<int64_t>(own)),
                      HumanBytes(static_cast<int64_t>(kBytesOfClientMax))));
  }
  return grid;
}

Status CheckOptions(const EnvelopeRequest& options) {
  if (options.repeats == 0 || options.repeats > kRepeatsMax)
    return InvalidArgumentError(
        fmt::format("--repeats {}: give 1 to {}", options.repeats, kRepeatsMax));
  if (!(options.budget_seconds > 0 && options.budget_seconds <= 86400))
    return InvalidArgumentError(
        fmt::format("--budget {}: give seconds, at most a day", options.budget_seconds));
  if (!options.paths.empty() && !options.hosts.mount.empty())
    return InvalidArgumentError("give either PATH or --mount, not both");
  return OkStatus();
}

// "NAME=PATH"; a path alone is its own name.
std::pair<std::string, std::string> NameAndPath(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == word.npos || word.find('/') < equals) return {word, word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

Result<MeasuredStore> FindSystem(const EnvelopeRequest& options, const std::string& name,
                                 const std::string& path) {
  HostsRequest request = options.hosts;
  request.cluster = options.cluster.name;
  request.cluster_directory = options.cluster.directory;
  return FindStore(std::move(request), name, path);
}

Result<std::vector<MeasuredStore>> FindSystems(const EnvelopeRequest& options) {
  std::vector<MeasuredStore> systems;
  std::set<std::string> names;
  for (const std::string& word : options.paths) {
    const auto [name, path] = NameAndPath(word);
    if (name.empty() || path.empty())
      return InvalidArgumentError(fmt::format("'{}': write PATH or NAME=PATH", word));
    if (!names.insert(name).second)
      return InvalidArgumentError(
          fmt::format("two stores are named '{}': give each its own name, as NAME=PATH", name));
    MOSA_ASSIGN_OR_RETURN(MeasuredStore system, FindSystem(options, name, path));
    systems.push_back(std::move(system));
  }
  if (!systems.empty()) return systems;
  const std::string& mount = options.hosts.mount;
  MOSA_ASSIGN_OR_RETURN(MeasuredStore system,
                        FindSystem(options, mount.empty() ? "mosa" : mount, mount));
  systems.push_back(std::move(system));
  return systems;
}

std::vector<std::string> NamesOf(const std::vector<MeasuredStore>& systems) {
  std::vector<std::string> names;
  for (const MeasuredStore& system : systems) names.push_back(system.name);
  return names;
}

// ---- what is there

// The most memory of a machine (by boot id) that is used: what clients on it keep and, if the store
// is in memory, its share of the files. Several hosts may be one machine.
uint64_t MemoryTaken(const std::string& machine, const EnvelopeGrid& grid,
                     const std::vector<json>& facts) {
  const auto is_here = [&](const json& host) { return host.at("boot_id") == machine; };
  const bool in_memory =
      facts.front().at("mosa").get<bool>() || facts.front().at("file_system") == "tmpfs";
  const auto hosts = static_cast<uint64_t>(std::count_if(facts.begin(), facts.end(), is_here));
  uint64_t most = 0;
  for (const EnvelopeCell& cell : CellsOf(grid)) {
    uint64_t clients = 0;
    for (uint32_t i = 0; i < cell.clients; ++i) clients += is_here(facts[i % facts.size()]) ? 1 : 0;
    const uint64_t kept = OperationsOf(grid, cell) / cell.clients * cell.size_bytes * clients;
    const uint64_t stored = in_memory ? StoredBytesOf(grid, cell) / facts.size() * hosts : 0;
    most = std::max(most, kept + stored);
  }
  return most;
}

// Checks the room of one store for the largest cell, and the memory of its hosts for what clients
// keep.
Status CheckRoom(const MeasuredStore& system, const EnvelopeGrid& grid,
                 const std::vector<json>& facts) {
  uint64_t bytes = 0, files = 0;
  for (const EnvelopeCell& cell : CellsOf(grid)) {
    bytes = std::max(bytes, StoredBytesOf(grid, cell));
    files = std::max(files, OperationsOf(grid, cell));
  }
  for (size_t i = 0; i < facts.size(); ++i) {
    const RunHost& host = system.hosts[i];
    const auto free = facts[i].at("store_free_bytes").get<uint64_t>();
    if (free < bytes)
      return ResourceExhaustedError(
          fmt::format("{} (host {}) has {} free, but the files of one cell take {}: lower --scale "
                      "or --bytes-max, or leave out large --sizes",
                      host.mount_point, host.name, HumanBytes(static_cast<int64_t>(free)),
                      HumanBytes(static_cast<int64_t>(bytes))));
    const auto names = facts[i].at("store_free_files").get<uint64_t>();
    if (names < files)
      return ResourceExhaustedError(
          fmt::format("{} (host {}) has room for {} more files, but a cell has {}: lower --scale",
                      host.mount_point, host.name, names, files));
    const uint64_t memory = facts[i].at("memory_available_kib").get<uint64_t>() * 1024;
    const uint64_t taken = MemoryTaken(facts[i].at("boot_id"), grid, facts);
    if (memory < taken)
      return ResourceExhaustedError(fmt::format(
          "host {} has {} of memory left, but the clients and the store on its machine take up to "
          "{} until everything has been compared: lower --scale or --bytes-max",
          host.name, HumanBytes(static_cast<int64_t>(memory)),
          HumanBytes(static_cast<int64_t>(taken))));
  }
  return OkStatus();
}

std::string ConditionsOf(const EnvelopeRequest& options) {
  return fmt::format(
      "Clients are processes, in turn on the hosts, that begin at one moment; a sample lasts until "
      "the last has closed its last file. Create: empty files in one directory. Open: existing "
      "files, each once. Read: whole files into memory. Write: into existing empty files; close, "
      "no fsync. Files that are read, opened or written were created by another process, on "
      "another host if there is one, synced and dropped there from the page cache (posix_fadvise); "
      "each sample has its own files. Pages of readers: {}. N-to-1: each client reads the one file "
      "again and again, and only its first read can be cold. Every byte is compared, outside of "
      "the measured time. Busy shares are of the processors of the clients' hosts, whoever uses "
      "them, while a client is at its operations.",
      options.is_warm() ? "warm, each has read its files once before"
                        : "cold, no reader has seen its files before (on a tmpfs files are in "
                          "memory anyway, and with one host so are their names)");
}

json ConfigurationOf(const EnvelopeRequest& options, const EnvelopeGrid& grid, json systems) {
  return {{"systems", std::move(systems)}, {"clients", grid.clients},
          {"sizes", grid.sizes},           {"scale_millionths", grid.scale_millionths},
          {"bytes_max", grid.bytes_max},   {"pages", options.pages},
          {"seed", options.seed}};
}

// ---- measuring

class EnvelopeRun {
 public:
  EnvelopeRun(const EnvelopeRequest& options, EnvelopeGrid grid, std::vector<std::string> systems,
              EnvelopeMeasure& measure, EnvelopeResults& results, Time until)
      : options_(options),
        grid_(std::move(grid)),
        systems_(std::move(systems)),
        cells_(CellsOf(grid_)),
        measure_(measure),
        results_(results),
        until_(until) {}

  // Returns whether the time sufficed.
  Result<bool> Run() {
    for (size_t repeat = 0; repeat < options_.repeats; ++repeat) {
      for (const EnvelopeCell& cell : cells_) {
        for (size_t i = 0; i < systems_.size(); ++i) {
          // Rotates the order, so that no system is always first.
          const size_t system = (i + repeat) % systems_.size();
          if (results_.Count(systems_[system], cell) > repeat) continue;
          if (clock_.Monotonic() + Expected(system, cell) > until_) return false;
          MOSA_RETURN_IF_ERROR(RunOnce(system, cell, repeat));
        }
      }
    }
    return true;
  }

 private:
  // As long as the last sample of the cell took with everything around it; for a new cell, about
  // twice as long as the cell before it.
  Duration Expected(size_t system, const EnvelopeCell& cell) const {
    const auto known = taken_.find({system, cell});
    return known == taken_.end() ? last_taken_ * 2 : known->second;
  }

  Status RunOnce(size_t system, const EnvelopeCell& cell, size_t repeat) {
    const std::string name = fmt::format(
        "{}: {}{} by {} client{}", systems_[system], NameOf(cell.operation),
        cell.size_bytes == 0 ? "" : " of " + FormatBytes(static_cast<int64_t>(cell.size_bytes)),
        cell.clients, cell.clients == 1 ? "" : "s");
    ShowProgress(name);
    const Time begin = clock_.Monotonic();
    const uint64_t operations = OperationsOf(grid_, cell);
    // Keeps 53 bits, which readers of JSON take exactly.
    const uint64_t seed = HashCombine(HashCombine(options_.seed, repeat), Hash64(name)) >> 11;
    const Duration at_most =
        kStepMin + Seconds(static_cast<int64_t>(operations * cell.size_bytes / kBytesPerSecondMin +
                                                operations / kOperationsPerSecondMin));
    const Result<EnvelopeSample> sample = measure_.Sample(system, cell, operations, seed, at_most);
    if (!sample.ok())
      return Status(sample.status().code(),
                    fmt::format("{}: {}", name, MessageOf(sample.status())));
    if (!sample->together)
      results_.AddNote(
          "in some samples clients did not begin at the same time, even when repeated: rates of "
          "short samples are too low");
    if (sample->seen_late.ns > 0)
      results_.AddNote(fmt::format("{}: other hosts saw new names or sizes late, by up to {} s",
                                   systems_[system],
                                   (sample->seen_late + Seconds(1)).ns / 1'000'000'000));
    last_taken_ = taken_[{system, cell}] = clock_.Monotonic() - begin;
    ++done_;
    results_.Add(systems_[system], cell, {sample->seconds, sample->busy_share, sample->link_share});
    return results_.Save("running");
  }

  void ShowProgress(const std::string& name) {
    size_t have = 0;
    for (const std::string& system : systems_) {
      for (const EnvelopeCell& cell : cells_)
        have += std::min<size_t>(results_.Count(system, cell), options_.repeats);
    }
    const size_t all = systems_.size() * cells_.size() * options_.repeats;
    const double spent = static_cast<double>((clock_.Monotonic() - begin_).ns) / 1e9;
    const double left = static_cast<double>((until_ - clock_.Monotonic()).ns) / 1e9;
    const double each = done_ == 0 ? 0 : spent / static_cast<double>(done_);
    bar_.Show(have, all, std::min(left, each * static_cast<double>(all - have)), name);
  }

  const EnvelopeRequest& options_;
  const EnvelopeGrid grid_;
  const std::vector<std::string> systems_;
  const std::vector<EnvelopeCell> cells_;
  EnvelopeMeasure& measure_;
  EnvelopeResults& results_;
  const SystemClock clock_;
  const Time begin_ = clock_.Monotonic();
  const Time until_;
  ProgressBar bar_;
  std::map<std::pair<size_t, EnvelopeCell>, Duration> taken_;
  Duration last_taken_;
  size_t done_ = 0;
};

// Everything between the first and the last effect on the stores.
Status MeasureAll(const EnvelopeRequest& options, const std::vector<MeasuredStore>& systems,
                  const EnvelopeGrid& grid, EnvelopeMeasure& measure,
                  std::optional<EnvelopeResults>& results, Time until) {
  MOSA_RETURN_IF_ERROR(measure.Start(*std::max_element(grid.clients.begin(), grid.clients.end())));
  json described = json::array();
  std::vector<json> facts;
  for (size_t i = 0; i < systems.size(); ++i) {
    MOSA_ASSIGN_OR_RETURN(facts, measure.Facts(i));
    MOSA_RETURN_IF_ERROR(CheckRoom(systems[i], grid, facts));
    described.push_back(ToJson(systems[i], facts));
  }
  EnvelopeResults kept(options.out, grid, ConfigurationOf(options, grid, std::move(described)),
                       ConditionsOf(options));
  MOSA_RETURN_IF_ERROR(kept.Load());
  for (const std::string& note : NotesOfLoad(systems.back(), facts)) kept.AddNote(note);
  results.emplace(std::move(kept));
  for (size_t i = 0; i < systems.size(); ++i) MOSA_RETURN_IF_ERROR(measure.Settle(i));
  EnvelopeRun run(options, grid, NamesOf(systems), measure, *results, until);
  return SaveEnd({"mosa envelope run", options.out, options.budget_seconds}, run.Run(),
                 [&results](const std::string& outcome) { return results->Save(outcome); });
}

}  // namespace

Status RunEnvelope(const EnvelopeRequest& options, bool as_json) {
  const SystemClock clock;
  const Time until =
      clock.Monotonic() + Nanoseconds(static_cast<int64_t>(options.budget_seconds * 1e9));
  MOSA_RETURN_IF_ERROR(CheckOptions(options));
  MOSA_ASSIGN_OR_RETURN(const std::vector<MeasuredStore> systems, FindSystems(options));
  MOSA_ASSIGN_OR_RETURN(const EnvelopeGrid grid, GridOf(options, systems.front().hosts.size()));
  EnvelopeMeasure measure(systems, DirectoryNameOf(".mosa-envelope-", options.out),
                          options.is_warm());
  std::optional<EnvelopeResults> results;
  const Status status = MeasureInto(
      options.out, [&] { return MeasureAll(options, systems, grid, measure, results, until); },
      [&measure] { return measure.Clear(); });
  if (!results || results->empty()) return status;
  if (as_json) {
    PrintJson(results->ToJson());
  } else {
    const std::vector<predict::Envelope> envelopes = results->Envelopes(NamesOf(systems));
    PrintEnvelopes(envelopes);
    fmt::print("\n");
    PrintFalls(results->Falls(NamesOf(systems)), envelopes);
  }
  if (!status.ok()) return status;
  for (const std::string& note : results->notes())
    fmt::print(stderr, "mosa envelope run: {}\n", note);
  return status;
}

}  // namespace mosa::cli
