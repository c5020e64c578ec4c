#include "tools/mosa/identify_measure.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "predictor/identify/figures.h"
#include "predictor/model/cost.h"
#include "tools/cluster/process.h"
#include "tools/mosa/bench_progress.h"
#include "tools/mosa/identify_network.h"
#include "tools/mosa/identify_tasks.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Probe;
using predict::ProbeKind;
using predict::Where;

constexpr double kSampleSeconds = 0.03;  // Of small operations, one after the other.
constexpr double kStreamSeconds = 0.25;  // Of a stream between hosts.
constexpr uint64_t kStreamBytesMin = 4 << 20;
constexpr double kBurstSeconds =
    0.1;  // Of a stream that begins with a burst, and of the pause before.
constexpr uint64_t kBurstStreamBytesMin = 1 << 20;
constexpr double kBurstShareMin = 0.05;       // Less of that stream is none.
constexpr Duration kStreamMax = Seconds(40);  // A megabit a second carries those.
// Probes of fewer bytes say nothing of how long bytes take.
constexpr uint64_t kTellingBytes = 256 << 10;
constexpr uint64_t kStreamBytesMax = 256 << 20;
constexpr double kSharesSeconds = 0.2;  // In which streams that share a link are counted.
constexpr const char* kMeetingUnevenness = "unevenness of 4 streams from ";
constexpr const char* kLeavingUnevenness = "unevenness of 4 streams that leave ";
constexpr const char* kAfterPause = "stream after a pause from ";
constexpr uint32_t kPings = 50;
constexpr uint32_t kLoadedPings = 5;
constexpr uint32_t kMeetingConnections = 4;
// A directory that nobody makes a second time: while it is there, so is the place.
constexpr const char* kMark = "here";
// Less is nothing unusual.
constexpr double kBusyCoresMin = 0.2;
constexpr uint64_t kSampleRoomMax = 256 << 20;

std::string NewToken() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return "";
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Whose files the actor's operation is on.
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

// By round trips: alone, beside a stream of the sender's, and where another's meets that one. Of
// two hosts nothing tells the last: then it is as where one leaves.
void FillQueues(double trip_s, double loaded_s, double met_s, predict::NetworkPlatform& network) {
  const auto ns = [](double seconds) {
    return static_cast<uint64_t>(std::max(0.0, seconds) * 1e9);
  };
  if (loaded_s == 0) return;
  network.out_queue_ns_max = ns(loaded_s - trip_s);
  network.in_queue_ns_max =
      met_s > 0 ? ns(met_s - std::max(loaded_s, trip_s)) : network.out_queue_ns_max;
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

// Before anything is measured, nothing of ours is at work.
void Measure::NoteLoad() {
  for (size_t i = 0; i < (one_machine_ ? 1 : facts_.size()); ++i) {
    const double busy = facts_[i].at("busy_cores");
    if (busy < kBusyCoresMin) continue;
    notes_.push_back(
        fmt::format("host {}: {:.1f} of {} cores were busy with something else, which is in all "
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

// How the store lays out a file of which nothing is said.
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
  // As wide as there are nodes: as wide as it gets, also on more of them.
  if (deployment_.stripe_width >= options_.hosts_in_all) deployment_.stripe_width = 0;
  return OkStatus();
}

// Those that see one store.
std::vector<RunHost> Measure::HostsOfRuns() const {
  std::vector<RunHost> hosts = options_.hosts;
  if (!mosa_ && scope_.hosts < hosts.size()) hosts.resize(scope_.hosts);
  return hosts;
}

// What the store calls the other host's node.
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

json Measure::TargetOf(size_t host) const {
  return {{"addresses", {addresses_[host]}}, {"port", ports_[host]}, {"token", token_}};
}

// Bytes per second of all ways at the same time, each from another host to the same one.
Result<double> Measure::Stream(const std::vector<std::pair<size_t, size_t>>& ways,
                               uint32_t connections) {
  // As a host answers one question at a time, ways from one host are connections of it.
  std::vector<IdentifyWorkers::Question> questions;
  uint64_t& bytes = stream_bytes_[ways.front()];
  bytes = std::max(bytes, kStreamBytesMin);
  for (const auto& [source, target] : ways) {
    json words = TargetOf(target);
    words["do"] = "stream";
    const uint64_t each = bytes / ways.size() / connections;
    words["bytes"] = each;
    // Of several at once some end before others have warmed up.
    words["warm_bytes"] = ways.size() * connections == 1 ? each / 4 : 0;
    words["connections"] = connections;
    questions.push_back({source, std::move(words)});
  }
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> answers, workers_->Ask(questions, kStreamMax));
  StreamSpan all;
  for (const json& answer : answers)
    all.Join({answer.at("bytes"), answer.at("begin_ns"), answer.at("end_ns")});
  const double rate = all.BytesPerSecond();
  bytes =
      static_cast<uint64_t>(std::clamp(rate * kStreamSeconds, static_cast<double>(kStreamBytesMin),
                                       static_cast<double>(kStreamBytesMax)));
  return rate;
}

json Measure::PingOf(size_t target, bool loaded) const {
  json words = TargetOf(target);
  words["do"] = "ping";
  words["count"] = loaded ? kLoadedPings : kPings;
  words["loaded"] = loaded;
  return words;
}

// How many bytes a link carries in that time.
Result<uint64_t> Measure::LinkBytes(double seconds) {
  if (link_rate_ == 0) {
    MOSA_ASSIGN_OR_RETURN(link_rate_, Stream({{0, 1}}, 1));
  }
  return static_cast<uint64_t>(
      std::min(link_rate_ * seconds, static_cast<double>(kStreamBytesMax)));
}

// Bytes per second of a short stream over links that were idle, from its first byte on: more than
// they can keep, if they allow bursts.
Result<double> Measure::StreamAfterPause() {
  MOSA_ASSIGN_OR_RETURN(const uint64_t bytes, LinkBytes(kBurstSeconds));
  burst_stream_bytes_ = std::max(bytes, kBurstStreamBytesMin);
  std::this_thread::sleep_for(std::chrono::duration<double>(kBurstSeconds));
  json words = TargetOf(1);
  words["do"] = "stream";
  words["bytes"] = burst_stream_bytes_;
  words["warm_bytes"] = 0;
  words["connections"] = 1;
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask(0, words));
  const StreamSpan whole{burst_stream_bytes_, answer.at("begin_ns"), answer.at("end_ns")};
  return whole.BytesPerSecond();
}

Result<double> Measure::Ping(size_t source, size_t target, bool loaded) {
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask(source, PingOf(target, loaded)));
  return answer.at("value").get<double>();
}

// From the second host to the first, beside its own stream and one of the third host.
Result<double> Measure::PingWhereStreamsMeet() {
  json stream = TargetOf(0);
  stream["do"] = "stream";
  // So long that it outlasts the other, and of several connections, which fill queues sooner.
  stream["bytes"] = std::max(stream_bytes_[{2, 0}], kStreamBytesMin);
  stream["warm_bytes"] = 0;
  stream["connections"] = kMeetingConnections;
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> answers,
                        workers_->Ask({{1, PingOf(0, true)}, {2, std::move(stream)}}, kStreamMax));
  return answers.front().at("value").get<double>();
}

// Of the logarithms of what each of two streams on every way gets while all are under way, the
// standard deviation.
Result<double> Measure::Unevenness(const std::vector<size_t>& sources,
                                   const std::vector<size_t>& targets) {
  // None of them ends within the time that counts: all of the link would not carry more.
  MOSA_ASSIGN_OR_RETURN(const uint64_t bytes, LinkBytes(1.5 * kSharesSeconds));
  std::vector<IdentifyWorkers::Question> questions;
  for (const size_t source : sources) {
    json words = {{"do", "shares"}, {"targets", json::array()}};
    for (const size_t target : targets) words["targets"].push_back(TargetOf(target));
    words["bytes"] = bytes;
    words["counted_ns"] = static_cast<int64_t>(kSharesSeconds * 1e9);
    words["connections"] = 2;
    questions.push_back({source, std::move(words)});
  }
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> answers, workers_->Ask(questions, kStreamMax));
  std::vector<double> logs;
  for (const json& answer : answers)
    for (const double rate : answer.at("rates").get<std::vector<double>>())
      logs.push_back(std::log(std::max(rate, 1.0)));
  const auto count = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
  double squares = 0;
  for (const double each : logs) squares += (each - mean) * (each - mean);
  return std::sqrt(squares / (count - 1));
}

void Measure::AddNetworkItems() {
  const auto listens = [this](size_t host) { return ports_[host] != 0; };
  const auto name = [this](size_t host) { return workers_->name(host); };
  for (size_t i = 0; i < workers_->count(); ++i) {
    for (size_t j = 0; j < workers_->count(); ++j) {
      if (i == j || !listens(j)) continue;
      items_.push_back({fmt::format("stream from {} to {}", name(i), name(j)),
                        "bytes/s",
                        [this, i, j] {
                          return Stream({{i, j}}, 1);
                        },
                        {},
                        {}});
      if (i < j)
        items_.push_back({fmt::format("round trip from {} to {}", name(i), name(j)),
                          "s",
                          [this, i, j] { return Ping(i, j, false); },
                          {},
                          {}});
    }
  }
  if (workers_->count() > 1 && listens(1)) {
    items_.push_back({fmt::format("4 streams from {} to {}", name(0), name(1)),
                      "bytes/s",
                      [this] {
                        return Stream({{0, 1}}, 4);
                      },
                      {},
                      {}});
    items_.push_back({fmt::format("{}{} to {}", kAfterPause, name(0), name(1)),
                      "bytes/s",
                      [this] { return StreamAfterPause(); },
                      {},
                      {}});
    items_.push_back({fmt::format("round trip from {} to {} beside a stream", name(0), name(1)),
                      "s",
                      [this] { return Ping(0, 1, true); },
                      {},
                      {}});
  }
  if (workers_->count() > 2 && listens(0)) {
    items_.push_back({fmt::format("streams from {} and {} to {}", name(1), name(2), name(0)),
                      "bytes/s",
                      [this] {
                        return Stream({{1, 0}, {2, 0}}, 1);
                      },
                      {},
                      {}});
    items_.push_back(
        {fmt::format("{}{} and {} to {}", kMeetingUnevenness, name(1), name(2), name(0)),
         "deviation of logarithms",
         [this] {
           return Unevenness({1, 2}, {0});
         },
         {},
         {}});
    if (listens(1) && listens(2))
      items_.push_back(
          {fmt::format("{}{} to {} and {}", kLeavingUnevenness, name(0), name(1), name(2)),
           "deviation of logarithms",
           [this] {
             return Unevenness({0}, {1, 2});
           },
           {},
           {}});
    items_.push_back({fmt::format("round trip from {} to {} where streams meet", name(1), name(0)),
                      "s",
                      [this] { return PingWhereStreamsMeet(); },
                      {},
                      {}});
  }
  if (!listens(0)) return;
  items_.push_back({"stream inside a host",
                    "bytes/s",
                    [this] {
                      return Stream({{0, 0}}, 1);
                    },
                    {},
                    {}});
  items_.push_back({"round trip inside a host", "s", [this] { return Ping(0, 0, false); }, {}, {}});
}

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
                        // Each sample has its own: in one that is used again, outputs of before
                        // would be removed first.
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
    // What is read through the mount gets its hint file by file: see IdentifyFiles.
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
  // Those of a sample that failed too: they would take the room of others.
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
  while (const auto next = schedule_->Next(options_.until - clock_.Monotonic())) {
    if (cluster::InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
    const Time begin = clock_.Monotonic();
    if (begin >= options_.until) break;
    const Item& item = items_[*next];
    const double left = static_cast<double>((options_.until - begin).ns) / 1e9;
    const double expected = item.probe ? ExpectedSeconds(*item.probe) : 0;
    if (seconds_[*next] == 0 && expected > left) {
      schedule_->GiveUp(*next);
      notes_.push_back(
          fmt::format("'{}' was not measured: it takes about {:.0f} s, of which {:.0f} were left",
                      item.what, expected, left));
      continue;
    }
    bar.Show(schedule_->settled(), items_.size(), left, item.what);
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

// What a host's process says that is not of this program's kind ends it like any error.
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
        "a host's process says what this program does not understand: is it of another version?");
  }
}

std::string Measure::Clear() {
  if (!workers_ || name_.empty()) return "";
  // Where all hosts see one store, another one does it for a host that hangs.
  const size_t able = mosa_ || scope_.hosts > 1 ? workers_->count() : 1;
  std::string why;
  for (size_t host = 0; host < able; ++host) {
    const auto cleared = workers_->Ask(host, {{"do", "clear"}, {"path", DirectoryOf(host, "")}},
                                       kClearMax, IdentifyWorkers::OnSignal::kGoOn);
    if (cleared.ok()) return "";
    if (why.empty()) why = MessageOf(cleared.status());
  }
  return fmt::format("{} is left, remove it ({})", DirectoryOf(0, ""), why);
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

// Links: as good as the best that several streams get, as a host's link is what limits them.
void Measure::FillNetwork(Measurements& found) const {
  predict::Platform& known = found.known;
  double pairs = 0, pairs_squared = 0, best = 0, trips = 0, half = 0;
  int pair_count = 0, trip_count = 0;
  double loaded = 0, met = 0, inside_rate = 0, inside_trip = 0;
  predict::Measured after_pause;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    const predict::Measured measured = schedule_->At(i);
    if (item.probe || item.run || measured.count == 0) continue;
    found.direct.measurements.push_back({item.what, item.unit, measured.mean, measured.half_width,
                                         measured.count, measured.dropped, measured.IsSettled(),
                                         std::nullopt});
    const bool rate = item.unit == "bytes/s";
    if (item.what.starts_with(kMeetingUnevenness)) {
      known.network.in_unevenness = std::min(measured.mean, predict::kUnevennessMax);
    } else if (item.what.starts_with(kLeavingUnevenness)) {
      known.network.out_unevenness = std::min(measured.mean, predict::kUnevennessMax);
    } else if (item.what.starts_with(kAfterPause)) {
      after_pause = measured;
    } else if (item.what == "stream inside a host") {
      inside_rate = measured.mean;
    } else if (item.what == "round trip inside a host") {
      inside_trip = measured.mean;
    } else if (item.what.ends_with("beside a stream")) {
      loaded = measured.mean;
    } else if (item.what.ends_with("where streams meet")) {
      met = measured.mean;
    } else if (!rate) {
      trips += measured.mean;
      ++trip_count;
    } else {
      best = std::max(best, measured.mean);
      if (!item.what.starts_with("stream from")) continue;
      pairs += measured.mean;
      pairs_squared += measured.mean * measured.mean;
      // Of one sample by itself the other pairs' say more.
      if (measured.count > 1) half = std::max(half, measured.RelativeHalf());
      ++pair_count;
    }
  }
  if (inside_rate > 0) known.network.loopback.ns_per_byte = 1e9 / inside_rate;
  if (inside_trip > 0)
    known.network.loopback_latency_ns = static_cast<uint64_t>(inside_trip * 1e9 / 2);
  known.network.loopback.ns_per_call = 0;
  known.network.loopback.spread = 0.1;
  if (trip_count > 0)
    known.network.latency_ns = static_cast<uint64_t>(trips / trip_count * 1e9 / 2);
  if (trip_count > 0) FillQueues(trips / trip_count, loaded, met, known.network);
  if (trip_count > 0 && (loaded == 0 || met == 0))
    found.direct.notes.push_back(fmt::format(
        "nothing measured how long messages wait where streams of two hosts meet ({}): it is taken "
        "to be {:.3g} ms",
        workers_->count() > 2 ? "the measurement failed or had no time" : "it takes three hosts",
        static_cast<double>(known.network.in_queue_ns_max) / 1e6));
  if (pair_count == 0) return;
  const double mean = pairs / pair_count;
  const double variance = std::max(0.0, pairs_squared / pair_count - mean * mean);
  known.host.out_bytes_per_second = known.host.in_bytes_per_second =
      static_cast<uint64_t>(best > 1.1 * mean ? best : mean);
  known.network.spread = std::min(1.0, std::sqrt(variance / (mean * mean) + half * half / 4));
  // Of a stream that began with it: what the rate alone would not have carried in its time.
  const double share = after_pause.count > 1 ? 1 - mean / after_pause.mean : 0;
  if (share > kBurstShareMin && share > after_pause.RelativeHalf() + half)
    known.network.burst_bytes =
        static_cast<uint64_t>(share * static_cast<double>(burst_stream_bytes_));
}

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
  // A simulated store has as many nodes as the real one: files without hints are on all of them.
  found.deployment = deployment_;
  found.deployment.hosts =
      std::max<uint32_t>(2, mosa_ ? static_cast<uint32_t>(options_.hosts_in_all) : scope_.hosts);
  found.findings.run_hosts = static_cast<uint32_t>(HostsOfRuns().size());
  found.deployment.manager_apart = true;
  found.deployment.slots = options_.hosts.front().slots;
  // Guesses are of Mosa.
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
        fmt::format("for {} of {} measurements there was no time", none, items_.size()));
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
