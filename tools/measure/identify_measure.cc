#include "tools/measure/identify_measure.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "predictor/identify/figures.h"
#include "predictor/model/cost.h"
#include "tools/cluster/process.h"
#include "tools/console/progress.h"
#include "tools/measure/identify_network.h"
#include "tools/measure/identify_tasks.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Probe;
using predict::ProbeKind;
using predict::Where;

constexpr double kSampleSeconds = 0.03;  // For small operations, one after the other.
// Probes of fewer bytes do not tell how long bytes take.
constexpr uint64_t kTellingBytes = 256 << 10;
// A directory that is created only once: while it exists, so does the place.
constexpr const char* kMark = "here";
constexpr double kStreamSecondsMax = 1;
// A smaller load is normal.
constexpr double kBusyCoresMin = 0.2;
constexpr uint64_t kSampleRoomMax = 256 << 20;

std::string NewToken() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return "";
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Whether another process prepares the files of the actor's operation.
bool ReadiedByOther(const Probe& probe) {
  switch (probe.kind) {
    case ProbeKind::kStat:
    case ProbeKind::kStatAgain:
    case ProbeKind::kOpen:
      return true;
    case ProbeKind::kRead:
    case ProbeKind::kReadAgain:
      return probe.where == Where::kOther || probe.where == Where::kDefault;
    default:
      return false;
  }
}

bool NeedsFiles(ProbeKind kind) {
  return kind != ProbeKind::kWrite && kind != ProbeKind::kMakeDirectory &&
         kind != ProbeKind::kSetAttribute;
}

}  // namespace

std::string Measure::DirectoryOf(size_t host, const std::string& name) const {
  const std::string base = options_.hosts[host].directory + "/" + name_;
  return name.empty() ? base : base + "/" + name;
}

Status Measure::LookAtHosts() {
  MOSA_ASSIGN_OR_RETURN(IdentifyWorkers workers, IdentifyWorkers::Start(options_.hosts, kStartMax));
  workers_.emplace(std::move(workers));
  std::vector<std::string> boots;
  bool passthrough = true;
  for (size_t i = 0; i < workers_->count(); ++i) {
    MOSA_ASSIGN_OR_RETURN(json facts, Ask(i, {{"do", "facts"},
                                              {"directory", options_.hosts[i].directory},
                                              {"mount", options_.hosts[i].mount_point}}));
    boots.push_back(facts.at("boot_id"));
    passthrough = passthrough && facts.at("passthrough").get<bool>();
    facts_.push_back(std::move(facts));
  }
  one_machine_ = options_.one_machine && options_.hosts_in_all > 1;
  const bool one_boot = std::all_of(boots.begin(), boots.end(), [&boots](const std::string& boot) {
    return boot == boots.front();
  });
  if (boots.size() > 1 && one_boot) one_machine_ = true;
  NoteLoad();
  mosa_ = facts_.front().at("mosa");
  scope_.hosts = static_cast<uint32_t>(workers_->count());
  scope_.hints = mosa_;
  scope_.passthrough = mosa_ && passthrough;
  const auto free = facts_.front().at("store_free_bytes").get<uint64_t>();
  scope_.room_bytes = std::min(kSampleRoomMax, free / 4 / scope_.hosts);
  return OkStatus();
}

// None of our own processes are at work before the first measurement.
void Measure::NoteLoad() {
  for (size_t i = 0; i < (one_machine_ ? 1 : facts_.size()); ++i) {
    const double busy = facts_[i].at("busy_cores");
    if (busy < kBusyCoresMin) continue;
    notes_.push_back(
        fmt::format("host {}: {:.1f} of {} cores were busy with something else, which affects all "
                    "figures: measure again when the machine is idle",
                    workers_->name(i), busy, facts_[i].at("cores").get<int>()));
  }
}

Status Measure::Settle() {
  name_ = fmt::format(".mosa-identify-{}-{}", getpid(), clock_.Now().ns % 1'000'000);
  MOSA_RETURN_IF_ERROR(
      Ask(0, {{"do", "make"}, {"path", DirectoryOf(0, "")}, {"placement", ""}}).status());
  MOSA_RETURN_IF_ERROR(
      Ask(0, {{"do", "make"}, {"path", DirectoryOf(0, kMark)}, {"placement", ""}}).status());
  if (scope_.hosts > 1 && mosa_) MOSA_RETURN_IF_ERROR(FindOthersNode());
  if (mosa_) MOSA_RETURN_IF_ERROR(FindLayout());
  if (scope_.hosts > 1 && !mosa_) {
    // Two directories of one store, or two stores?
    const auto seen = Ask(1, {{"do", "look"}, {"path", DirectoryOf(1, "")}});
    if (!seen.ok()) {
      notes_.push_back(fmt::format(
          "host {} does not see what host {} writes: reading from other hosts was not measured",
          workers_->name(1), workers_->name(0)));
      scope_.hosts = 1;
    }
  }
  token_ = NewToken();
  ports_.assign(workers_->count(), 0);
  addresses_.assign(workers_->count(), "");
  if (token_.empty()) return OkStatus();
  for (size_t i = 0; i < workers_->count(); ++i) {
    const RunHost& host = options_.hosts[i];
    const auto answer = Ask(i, {{"do", "listen"},
                                {"token", token_},
                                {"address", host.address},
                                {"reached_from_afar", !host.exec.empty()}});
    if (!answer.ok()) {
      notes_.push_back(MessageOf(answer.status()));
      continue;
    }
    ports_[i] = answer->at("port");
    addresses_[i] = answer->at("address");
  }
  return OkStatus();
}

// Finds how the store lays out a file without hints.
Status Measure::FindLayout() {
  const json file = {{"do", "write"},    {"kind", "write"}, {"where", "default"},
                     {"bytes", 1 << 20}, {"at_once", 1},    {"directory", DirectoryOf(0, "")},
                     {"tag", "file"},    {"rounds", 1}};
  MOSA_RETURN_IF_ERROR(Ask(0, file).status());
  MOSA_ASSIGN_OR_RETURN(const json answer,
                        Ask(0, {{"do", "layout"}, {"path", DirectoryOf(0, "file-0")}}));
  const json layout = json::parse(answer.at("layout").get<std::string>());
  deployment_.chunk_bytes = layout.at("chunk_size");
  if (layout.at("policy") == "local") {
    deployment_.placement = "local";
    return OkStatus();
  }
  deployment_.stripe_width = layout.at("width");
  // As wide as there are nodes means as wide as possible, also with more nodes.
  if (deployment_.stripe_width >= options_.hosts_in_all) deployment_.stripe_width = 0;
  return OkStatus();
}

// The hosts that see one store.
std::vector<RunHost> Measure::HostsOfRuns() const {
  std::vector<RunHost> hosts = options_.hosts;
  if (!mosa_ && scope_.hosts < hosts.size()) hosts.resize(scope_.hosts);
  return hosts;
}

// Finds the store's name for the other host's node.
Status Measure::FindOthersNode() {
  const std::string directory = "where";
  MOSA_RETURN_IF_ERROR(
      Ask(0, {{"do", "make"}, {"path", DirectoryOf(0, directory)}, {"placement", "local"}})
          .status());
  const json file = {{"do", "write"},  {"kind", "write"}, {"where", "own"},
                     {"bytes", 65536}, {"at_once", 1},    {"directory", DirectoryOf(1, directory)},
                     {"tag", "file"},  {"rounds", 1}};
  MOSA_RETURN_IF_ERROR(Ask(1, file).status());
  MOSA_ASSIGN_OR_RETURN(
      const json answer,
      Ask(1, {{"do", "locate"}, {"path", DirectoryOf(1, directory) + "/file-0"}}));
  others_node_ = answer.at("nodes");
  if (!others_node_.empty() && others_node_.find(',') == std::string::npos) return OkStatus();
  notes_.push_back(fmt::format(
      "host {} has no storage node of its own: reading from other hosts was not measured",
      workers_->name(1)));
  scope_.hosts = 1;
  return OkStatus();
}

// ---- what is measured

void Measure::AddProbeItems() {
  for (const Probe& probe : predict::PlanProbes(scope_)) {
    const size_t index = items_.size();
    items_.push_back({ToText(probe),
                      "s",
                      [this, probe, index] { return SampleProbe(probe, index); },
                      probe,
                      {}});
  }
}

void Measure::AddRunItems() {
  for (const predict::RunProbe& probe : predict::PlanRunProbes()) {
    const size_t index = items_.size();
    items_.push_back({ToText(probe),
                      "s",
                      [this, probe, index]() -> Result<double> {
                        std::vector<RunHost> hosts = HostsOfRuns();
                        // Each sample has its own directory: in a reused one, earlier outputs would
                        // be removed first.
                        const std::string own = fmt::format("run-{}-{}", index, ++runs_);
                        for (size_t i = 0; i < hosts.size(); ++i)
                          hosts[i].directory = DirectoryOf(i, own);
                        return SecondsOfRun(probe, hosts, options_.scratch);
                      },
                      {},
                      probe});
  }
}

Result<double> Measure::SampleProbe(const Probe& probe, size_t index) {
  const std::string name = fmt::format("probe-{}", index);
  const bool by_other = ReadiedByOther(probe);
  if (!made_[index]) {
    const bool there = probe.where == Where::kOther && !by_other;
    // Files that are read through the mount get their hints one by one: see IdentifyFiles.
    const bool local = probe.where == Where::kOwn || (probe.where == Where::kOther && by_other) ||
                       (probe.where == Where::kOwnThroughMount && probe.kind == ProbeKind::kWrite);
    const std::string placement = !mosa_  ? ""
                                  : there ? "node:" + others_node_
                                  : local ? "local"
                                          : "";
    MOSA_RETURN_IF_ERROR(
        Ask(0, {{"do", "make"}, {"path", DirectoryOf(0, name)}, {"placement", placement}})
            .status());
    made_[index] = true;
  }
  const size_t writer = by_other && workers_->count() > 1 ? 1 : 0;
  json words = {{"kind", predict::NameOf(probe.kind)},
                {"where", predict::NameOf(probe.where)},
                {"bytes", probe.bytes},
                {"at_once", probe.at_once},
                {"tag", fmt::format("{}", clock_.Monotonic().ns)},
                {"rounds", seconds_[index] > 0 ? RepeatsOf(probe, seconds_[index], kSampleSeconds,
                                                           scope_.room_bytes)
                                               : 1}};
  const Duration at_most =
      std::max(kAnswerMax, Milliseconds(static_cast<int64_t>(3e3 * ExpectedSeconds(probe))));
  const auto ask = [&](const char* what, size_t host) {
    words["do"] = what;
    words["directory"] = DirectoryOf(host, name);
    return workers_->Ask(host, words, at_most);
  };
  const Time begin = clock_.Monotonic();
  Status readied;
  if (NeedsFiles(probe.kind)) readied = ask("write", writer).status();
  const Result<json> answer = readied.ok() ? ask("operate", 0) : Result<json>(readied);
  // Also removes files of a failed sample: they would take the room of others.
  const Status removed = ask("remove", writer).status();
  if (!answer.ok()) return answer.status();
  MOSA_RETURN_IF_ERROR(removed);
  const uint64_t bytes = probe.bytes * probe.at_once * words.at("rounds").get<uint64_t>();
  if (probe.bytes >= kTellingBytes)
    seconds_per_byte_[probe.where] =
        predict::SecondsOf(clock_.Monotonic() - begin) / static_cast<double>(bytes);
  return answer->at("value").get<double>();
}

// ---- measuring

double Measure::ExpectedSeconds(const Probe& probe) const {
  if (probe.bytes == 0) return 0;
  const auto known = seconds_per_byte_.find(probe.where);
  double per_byte = known == seconds_per_byte_.end() ? 0 : known->second;
  if (known == seconds_per_byte_.end())
    for (const auto& [where, seconds] : seconds_per_byte_) per_byte = std::max(per_byte, seconds);
  return per_byte * static_cast<double>(probe.bytes * probe.at_once);
}

Status Measure::StillThere() {
  return Ask(0, {{"do", "look"}, {"path", DirectoryOf(0, kMark)}}).status();
}

Status Measure::MeasureAll() {
  schedule_.emplace(items_.size());
  made_.assign(items_.size(), false);
  seconds_.assign(items_.size(), 0);
  ProgressBar bar;
  const Time begun = clock_.Monotonic();
  while (const auto next = schedule_->Next(options_.until - clock_.Monotonic())) {
    if (cluster::InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
    const Time begin = clock_.Monotonic();
    if (begin >= options_.until) break;
    const Item& item = items_[*next];
    const double left = static_cast<double>((options_.until - begin).ns) / 1e9;
    const double expected = item.probe ? ExpectedSeconds(*item.probe) : 0;
    if (seconds_[*next] == 0 && item.probe && item.probe->bytes >= predict::kStreamBytes &&
        expected > kStreamSecondsMax) {
      schedule_->GiveUp(*next);
      notes_.push_back(fmt::format(
          "'{}' was not measured: it takes about {:.1f} s, and beyond {:.1f} s it adds little",
          item.what, expected, kStreamSecondsMax));
      continue;
    }
    if (seconds_[*next] == 0 && expected > left) {
      schedule_->GiveUp(*next);
      notes_.push_back(
          fmt::format("'{}' was not measured: it takes about {:.0f} s, but only {:.0f} s were left",
                      item.what, expected, left));
      continue;
    }
    // All figures are measured in turns until the time is over.
    const auto spent_s = static_cast<size_t>((begin - begun).ns / 1'000'000'000);
    bar.Show(spent_s, spent_s + static_cast<size_t>(left), left, "s: " + item.what);
    const Result<double> sample = item.sample();
    if (!sample.ok()) {
      if (sample.status().code() == StatusCode::kAborted) return sample.status();
      MOSA_RETURN_IF_ERROR(StillThere());
      schedule_->GiveUp(*next);
      notes_.push_back(
          fmt::format("'{}' was not measured: {}", item.what, MessageOf(sample.status())));
      continue;
    }
    seconds_[*next] = *sample;
    schedule_->Add(*next, *sample, clock_.Monotonic() - begin);
  }
  bar.End();
  return OkStatus();
}

// A message from a host's process that this program does not understand ends it like any error.
Status Measure::MeasureEverything() {
  try {
    MOSA_RETURN_IF_ERROR(LookAtHosts());
    MOSA_RETURN_IF_ERROR(Settle());
    AddProbeItems();
    AddNetworkItems();
    AddRunItems();
    return MeasureAll();
  } catch (const json::exception&) {
    return FailedPreconditionError(
        "a process on a host sent a message that this program does not understand: check that it "
        "runs the same version of Mosa");
  }
}

std::string Measure::Clear() {
  if (!workers_ || name_.empty()) return "";
  // If all hosts see one store, another host cleans up for a host that hangs.
  const size_t able = mosa_ || scope_.hosts > 1 ? workers_->count() : 1;
  std::string why;
  for (size_t host = 0; host < able; ++host) {
    const auto cleared = workers_->Ask(host, {{"do", "clear"}, {"path", DirectoryOf(host, "")}},
                                       kClearMax, IdentifyWorkers::OnSignal::kGoOn);
    if (cleared.ok()) return "";
    if (why.empty()) why = MessageOf(cleared.status());
  }
  return fmt::format("{} is left: remove it ({})", DirectoryOf(0, ""), why);
}

Result<Measurements> Measure::Run() {
  const Status status = MeasureEverything();
  const std::string left = Clear();
  if (!status.ok())
    return left.empty() ? status
                        : Status(status.code(), fmt::format("{}; {}", MessageOf(status), left));
  if (!left.empty()) notes_.push_back(left);
  return Gather();
}

// ---- what was found

Measurements Measure::Gather() const {
  Measurements found;
  found.direct.notes = notes_;
  found.known = predict::ReferencePlatform();
  predict::HostPlatform& host = found.known.host;
  const json& facts = facts_.front();
  host.cores = facts.at("cores");
  if (one_machine_) found.known.shared_cores = host.cores;
  const uint64_t sharing = one_machine_ ? options_.hosts_in_all : 1;
  host.page_cache_bytes =
      std::max<uint64_t>(1, facts.at("memory_available_kib").get<uint64_t>() * 1024 / sharing);
  host.store_bytes = std::max<uint64_t>(
      1, facts.at("store_bytes").get<uint64_t>() / (mosa_ ? options_.hosts_in_all : 1));
  found.known.client.passthrough = !mosa_ || scope_.passthrough;
  // A simulated store has as many nodes as the real one: files without hints spread over all of
  // them.
  found.deployment = deployment_;
  found.deployment.hosts =
      std::max<uint32_t>(2, mosa_ ? static_cast<uint32_t>(options_.hosts_in_all) : scope_.hosts);
  found.findings.run_hosts = static_cast<uint32_t>(HostsOfRuns().size());
  found.deployment.manager_apart = true;
  found.deployment.slots = options_.hosts.front().slots;
  // Guesses are made for Mosa.
  if (!mosa_) found.findings.guess_sigma *= 2;
  FillNetwork(found);
  for (size_t i = 0; i < items_.size(); ++i) {
    const predict::Measured measured = schedule_->At(i);
    if (measured.count == 0) continue;
    if (items_[i].probe) found.findings.probes.push_back({*items_[i].probe, measured});
    if (items_[i].run) found.findings.runs.push_back({*items_[i].run, measured});
  }
  size_t wide = 0, none = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const bool any = schedule_->At(i).count > 0;
    none += any || schedule_->is_dead(i) ? 0 : 1;
    wide += any && !schedule_->At(i).IsSettled() ? 1 : 0;
  }
  if (none > 0)
    found.direct.notes.push_back(
        fmt::format("there was no time for {} of {} measurements", none, items_.size()));
  if (wide > 0)
    found.direct.notes.push_back(
        fmt::format("{} of {} measurements have no 95 % interval within {:.0f} %", wide,
                    items_.size(), 100 * predict::kIntervalWanted));
  std::string hosts;
  for (size_t i = 0; i < workers_->count(); ++i) hosts += (i > 0 ? ", " : "") + workers_->name(i);
  found.known.machine = fmt::format(
      "{} cores, {}, Linux {}; {} ({}){}", host.cores, facts.at("processor").get<std::string>(),
      facts.at("kernel").get<std::string>(), mosa_ ? "Mosa" : options_.hosts.front().directory,
      hosts, one_machine_ ? ", all on one machine" : "");
  return found;
}

}  // namespace mosa::cli
