#include "tools/measure/capacity_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "common/base/units.h"
#include "tools/console/output.h"
#include "tools/console/progress.h"
#include "tools/measure/capacity_measure.h"
#include "tools/measure/capacity_results.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::CapacityLoad;
using predict::OneSize;

constexpr uint32_t kRepeatsMax = 1000;
constexpr uint32_t kJobsMax = 256;
constexpr int64_t kFileBytesMax = int64_t{1} << 40;
constexpr int64_t kDirectBytes = 4096;       // O_DIRECT needs whole pages.
constexpr int64_t kFileUnitBytes = 1 << 20;  // Unit of file sizes.
constexpr double kReadPercentOffMax = 5;     // Per sample; a larger deviation is noted.

// ---- what is asked for

Result<std::vector<uint64_t>> SizesOf(const std::string& option,
                                      const std::vector<std::string>& words, bool direct) {
  std::vector<uint64_t> sizes;
  for (const std::string& word : words) {
    const Result<int64_t> size = ParseBytes(word);
    if (!size.ok() || *size <= 0 || (direct && *size % kDirectBytes != 0))
      return InvalidArgumentError(
          fmt::format("{} {}: give sizes such as 32K{}", option, word,
                      direct ? ", multiples of 4K (or --pages cached)" : ""));
    sizes.push_back(static_cast<uint64_t>(*size));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// The smallest size mixed with the largest, by halves of clients and of operations: only reads,
// only writes, both.
std::vector<std::string> MixesByDefault(const std::vector<uint64_t>& sizes) {
  std::vector<std::string> mixes;
  for (const char* share_of : {"clients", "operations"}) {
    for (const uint32_t reads : {100U, 0U, 50U})
      mixes.push_back(fmt::format("{0}={1}:{3}%r:0.5,{2}:{3}%r:0.5", share_of, sizes.front(),
                                  sizes.back(), reads));
  }
  return mixes;
}

// Seeds first; each load once.
Result<std::vector<CapacityLoad>> LoadsToMeasure(const CapacityRequest& options) {
  std::vector<CapacityLoad> loads;
  const auto add = [&loads](const CapacityLoad& load) {
    if (std::find(loads.begin(), loads.end(), load) == loads.end()) loads.push_back(load);
  };
  MOSA_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes,
                        SizesOf("--sizes", options.sizes, options.pages == "direct"));
  for (const uint64_t size : sizes) {
    add(OneSize(size, 100));
    add(OneSize(size, 0));
  }
  std::vector<std::string> mixes = options.mixes;
  if (options.check) {
    for (const uint64_t size : sizes) {
      for (const uint32_t ratio : options.ratios) add(OneSize(size, ratio));
    }
    if (mixes.empty() && sizes.size() > 1) mixes = MixesByDefault(sizes);
  }
  for (const std::string& text : mixes) {
    MOSA_ASSIGN_OR_RETURN(const CapacityLoad mix, predict::ParseLoad(text));
    for (const predict::CapacityPart& part : mix.parts) {
      if (std::find(sizes.begin(), sizes.end(), part.size_bytes) == sizes.end())
        return InvalidArgumentError(
            fmt::format("--mix {}: {} is not one of --sizes, so nothing could be estimated", text,
                        FormatBytes(static_cast<int64_t>(part.size_bytes))));
    }
    add(mix);
  }
  return loads;
}

Result<CapacityClients> ClientsOf(const CapacityRequest& options) {
  CapacityClients clients;
  if (options.jobs == 0 || options.jobs > kJobsMax)
    return InvalidArgumentError(fmt::format("--jobs {}: give 1 to {}", options.jobs, kJobsMax));
  const Result<int64_t> bytes = ParseBytes(options.file_bytes);
  if (!bytes.ok() || *bytes <= 0 || *bytes > kFileBytesMax || *bytes % kFileUnitBytes != 0)
    return InvalidArgumentError(
        fmt::format("--file-size {}: give a multiple of 1M, at most 1T", options.file_bytes));
  if (!(options.sample_seconds >= 0.1 && options.sample_seconds <= 3600))
    return InvalidArgumentError(
        fmt::format("--seconds {}: give 0.1 to 3600", options.sample_seconds));
  if (options.repeats == 0 || options.repeats > kRepeatsMax)
    return InvalidArgumentError(
        fmt::format("--repeats {}: give 1 to {}", options.repeats, kRepeatsMax));
  if (!(options.budget_seconds > 0 && options.budget_seconds <= 86400))
    return InvalidArgumentError(
        fmt::format("--budget {}: give seconds, at most a day", options.budget_seconds));
  for (const uint32_t ratio : options.ratios) {
    if (ratio == 0 || ratio >= 100)
      return InvalidArgumentError(
          fmt::format("--ratios {}: give percentages of reads, 1 to 99", ratio));
  }
  clients.jobs = options.jobs;
  clients.file_bytes = static_cast<uint64_t>(*bytes);
  clients.sample_ms = static_cast<int64_t>(options.sample_seconds * 1000);
  clients.direct = options.pages == "direct";
  clients.stored = options.writes == "stored";
  clients.seed = options.seed;
  return clients;
}

Result<MeasuredStore> StoreOf(const CapacityRequest& options) {
  if (!options.path.empty() && !options.hosts.mount.empty())
    return InvalidArgumentError("give either PATH or --mount, not both");
  HostsRequest request = options.hosts;
  request.cluster = options.cluster.name;
  request.cluster_directory = options.cluster.directory;
  const std::string path = options.path.empty() ? options.hosts.mount : options.path;
  return FindStore(std::move(request), path.empty() ? "mosa" : path, path);
}

std::string ConditionsOf(const CapacityClients& clients) {
  return fmt::format(
      "fio on every host, with {} clients each: threads that do one operation after the other "
      "(psync) at random offsets, aligned to the I/O size, of a file of {} of their own, which "
      "another host has written if there is one. Pages: {}. A write is done when {}. Each sample "
      "counts {} ms after a ramp of 0.3 s, on all hosts at about the same time: when each begins "
      "is not measured. In a mix, offsets are aligned to its largest size.",
      clients.jobs, HumanBytes(static_cast<int64_t>(clients.file_bytes)),
      clients.direct ? "direct (O_DIRECT): past the page cache of the client's host"
                     : "cached: through the page cache of the client's host, from which fio drops "
                       "the file at the beginning and which then keeps all of it",
      clients.stored ? "the store has it (O_DSYNC)" : "write() returns", clients.sample_ms);
}

json ConfigurationOf(const CapacityClients& clients, json store, const std::string& version) {
  return {{"store", std::move(store)},
          {"jobs", clients.jobs},
          {"file_bytes", clients.file_bytes},
          {"sample_ms", clients.sample_ms},
          {"pages", clients.direct ? "direct" : "cached"},
          {"writes", clients.stored ? "O_DSYNC" : "taken"},
          {"seed", clients.seed},
          {"fio", version}};
}

// ---- measuring

class CapacityRun {
 public:
  CapacityRun(std::vector<CapacityLoad> loads, uint32_t repeats, CapacityMeasure& measure,
              CapacityResults& results, Time until)
      : loads_(std::move(loads)),
        repeats_(repeats),
        measure_(measure),
        results_(results),
        until_(until) {}

  // Goes round over all loads, so that drift affects seeds and checks alike. Returns whether the
  // time sufficed.
  Result<bool> Run() {
    for (size_t repeat = 0; repeat < repeats_; ++repeat) {
      for (size_t i = 0; i < loads_.size(); ++i) {
        if (results_.Count(loads_[i]) > repeat) continue;
        if (clock_.Monotonic() + last_taken_ > until_) return false;
        ShowProgress(loads_[i]);
        const Time begin = clock_.Monotonic();
        const auto rates = measure_.Sample(loads_[i], repeat * loads_.size() + i);
        if (!rates.ok())
          return Status(rates.status().code(),
                        fmt::format("{}: {}", TextOf(loads_[i]), MessageOf(rates.status())));
        last_taken_ = clock_.Monotonic() - begin;
        NoteRatio(loads_[i], *rates);
        results_.Add(loads_[i], *rates);
        MOSA_RETURN_IF_ERROR(results_.Save("running"));
      }
    }
    return true;
  }
  bool is_whole() const {
    return std::all_of(loads_.begin(), loads_.end(), [this](const CapacityLoad& load) {
      return results_.Count(load) >= repeats_;
    });
  }

 private:
  // With clients of several sizes, the ratio is the store's.
  void NoteRatio(const CapacityLoad& load, const predict::OperationRates& rates) {
    if (load.is_mix() && load.share_of == predict::ShareOf::kClients) return;
    double asked = 0;
    for (const predict::CapacityPart& part : load.parts)
      asked += part.read_percent * part.share_percent / 100.0;
    const double done = 100 * rates.reads / rates.all();
    if (std::abs(done - asked) <= kReadPercentOffMax) return;
    results_.AddNote(fmt::format("{}: fio did {:.0f} % reads in a sample: give more --seconds",
                                 TextOf(load), done));
  }
  void ShowProgress(const CapacityLoad& next) {
    size_t have = 0;
    for (const CapacityLoad& load : loads_)
      have += std::min<size_t>(results_.Count(load), repeats_);
    const size_t all = loads_.size() * repeats_;
    const double each = static_cast<double>(last_taken_.ns) / 1e9;
    const double left = static_cast<double>((until_ - clock_.Monotonic()).ns) / 1e9;
    bar_.Show(have, all, std::min(left, each * static_cast<double>(all - have)), TextOf(next));
  }

  const std::vector<CapacityLoad> loads_;
  const size_t repeats_;
  CapacityMeasure& measure_;
  CapacityResults& results_;
  const SystemClock clock_;
  const Time until_;
  ProgressBar bar_;
  Duration last_taken_;
};

// Everything between the first and the last effect on the store.
Status MeasureAll(const CapacityRequest& options, const CapacityClients& clients,
                  const MeasuredStore& store, const std::vector<CapacityLoad>& loads,
                  CapacityMeasure& measure, std::optional<CapacityResults>& results, Time until) {
  MOSA_RETURN_IF_ERROR(measure.Start());
  MOSA_ASSIGN_OR_RETURN(const std::string version, measure.FioVersion());
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> facts, measure.Facts());
  CapacityResults kept(options.out, store.name,
                       ConfigurationOf(clients, ToJson(store, facts), version),
                       ConditionsOf(clients));
  MOSA_RETURN_IF_ERROR(kept.Load());
  for (const std::string& note : NotesOfLoad(store, facts)) kept.AddNote(note);
  results.emplace(std::move(kept));
  CapacityRun run(loads, options.repeats, measure, *results, until);
  if (run.is_whole()) return OkStatus();
  MOSA_RETURN_IF_ERROR(measure.LayFiles());
  const Result<bool> whole = run.Run();
  const bool any = !results->capacity().samples.empty();
  if (whole.ok() && !any)
    return FailedPreconditionError(
        fmt::format("creating the files used up the {} s of --budget before the first sample: give "
                    "more, or lower --file-size",
                    options.budget_seconds));
  return SaveEnd({"mosa capacity run", options.out, options.budget_seconds}, whole,
                 [&results, any](const std::string& outcome) {
                   return any ? results->Save(outcome) : OkStatus();
                 });
}

}  // namespace

Status RunCapacity(const CapacityRequest& options, bool as_json) {
  const SystemClock clock;
  const Time until =
      clock.Monotonic() + Nanoseconds(static_cast<int64_t>(options.budget_seconds * 1e9));
  MOSA_ASSIGN_OR_RETURN(const CapacityClients clients, ClientsOf(options));
  MOSA_ASSIGN_OR_RETURN(const std::vector<CapacityLoad> loads, LoadsToMeasure(options));
  MOSA_ASSIGN_OR_RETURN(const MeasuredStore store, StoreOf(options));
  const auto count = clients.jobs * static_cast<uint32_t>(store.hosts.size());
  for (const CapacityLoad& load : loads)
    MOSA_RETURN_IF_ERROR(ClientLoads(load, count, clients.file_bytes).status());
  CapacityMeasure measure(store, DirectoryNameOf(".mosa-capacity-", options.out), clients);
  std::optional<CapacityResults> results;
  const Status status = MeasureInto(
      options.out,
      [&] { return MeasureAll(options, clients, store, loads, measure, results, until); },
      [&measure] { return measure.Clear(); });
  if (!results || results->capacity().samples.empty()) return status;
  if (as_json)
    PrintJson(ToJson(results->capacity()));
  else
    PrintCapacity(results->capacity());
  if (!status.ok()) return status;
  for (const std::string& note : results->notes())
    fmt::print(stderr, "mosa capacity run: {}\n", note);
  return status;
}

}  // namespace mosa::cli
