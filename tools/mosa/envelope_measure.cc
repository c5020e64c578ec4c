#include "tools/mosa/envelope_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::EnvelopeCell;
using predict::EnvelopeOperation;

constexpr int kClockReadings = 8;
// Until all have heard when to begin: as long as it turns out to take.
constexpr Duration kNoticeMin = Milliseconds(10);
constexpr Duration kNoticeMax = Milliseconds(250);
// Who begins later than this, and this share of the sample, makes it another one.
constexpr Duration kLateMax = Milliseconds(5);
constexpr double kLateShareMax = 0.05;
constexpr int kTrials = 3;

}  // namespace

std::string EnvelopeMeasure::DirectoryOf(size_t system, size_t worker) const {
  const std::vector<RunHost>& hosts = systems_[system].hosts;
  // Two names may be of one store.
  return fmt::format("{}/{}-{}", hosts[worker % hosts.size()].directory, directory_, system);
}

Status EnvelopeMeasure::Start(uint32_t clients) {
  made_.assign(systems_.size(), Made::kNo);
  const std::vector<RunHost>& hosts = systems_.front().hosts;
  std::vector<RunHost> placed;
  for (size_t i = 0; i < WorkersFor(clients, hosts.size()); ++i)
    placed.push_back(hosts[i % hosts.size()]);
  MOSA_ASSIGN_OR_RETURN(IdentifyWorkers workers, IdentifyWorkers::Start(placed, kStartMax));
  workers_.emplace(std::move(workers));
  return ReadClocks();
}

// The reading with the shortest round trip is the one that knows best.
Status EnvelopeMeasure::ReadClocks() {
  offsets_.clear();
  for (size_t i = 0; i < workers_->count(); ++i) {
    Duration shortest{std::numeric_limits<int64_t>::max()};
    Duration offset;
    for (int reading = 0; reading < kClockReadings; ++reading) {
      const Time asked = clock_.Monotonic();
      MOSA_ASSIGN_OR_RETURN(const json answer, workers_->Ask(i, {{"do", "clock"}}, kAnswerMax));
      const Duration trip = clock_.Monotonic() - asked;
      if (trip >= shortest) continue;
      shortest = trip;
      offset = Time{answer.at("ns").get<int64_t>()} - (asked + trip / 2);
    }
    offsets_.push_back(offset);
    notice_ = std::max({notice_, kNoticeMin, shortest * 3});
  }
  clocks_read_ = clock_.Monotonic();
  return OkStatus();
}

Result<std::vector<json>> EnvelopeMeasure::Facts(size_t system) {
  const std::vector<RunHost>& hosts = systems_[system].hosts;
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t i = 0; i < hosts.size(); ++i)
    questions.push_back(
        {i, {{"do", "facts"}, {"directory", hosts[i].directory}, {"mount", hosts[i].mount_point}}});
  return workers_->Ask(questions, kAnswerMax);
}

Status EnvelopeMeasure::Settle(size_t system) {
  made_[system] = Made::kPerhaps;
  // What was ended without a chance to remove it.
  MOSA_RETURN_IF_ERROR(
      workers_->Ask(0, {{"do", "clear"}, {"path", DirectoryOf(system, 0)}}, kAnswerMax).status());
  MOSA_RETURN_IF_ERROR(
      workers_
          ->Ask(0, {{"do", "make"}, {"path", DirectoryOf(system, 0)}, {"placement", ""}},
                kAnswerMax)
          .status());
  made_[system] = Made::kYes;
  const std::vector<RunHost>& hosts = systems_[system].hosts;
  for (size_t i = 1; i < hosts.size(); ++i) {
    const auto seen =
        workers_->Ask(i, {{"do", "look"}, {"path", DirectoryOf(system, i)}}, kAnswerMax);
    if (seen.status().code() != StatusCode::kNotFound) {
      MOSA_RETURN_IF_ERROR(seen.status());
      continue;
    }
    return FailedPreconditionError(
        fmt::format("host {} does not see in {} what host {} writes in {}: is the same store "
                    "mounted on both?",
                    hosts[i].name, hosts[i].directory, hosts[0].name, hosts[0].directory));
  }
  return OkStatus();
}

IdentifyWorkers::Question EnvelopeMeasure::QuestionOf(const std::string& step, const Parts& parts,
                                                      size_t client, size_t worker) const {
  json words = ToJson(parts.clients[client]);
  words["do"] = "envelope";
  words["step"] = step;
  words["directory"] = DirectoryOf(parts.system, worker) + "/" + parts.name;
  return {worker, std::move(words)};
}

// Of all clients at the same time; what is prepared or looked at for a client the next one does.
Status EnvelopeMeasure::Step(const std::string& step, const Parts& parts, Duration at_most) {
  const bool by_next = step == "prepare" || step == "check-stored";
  const bool shared = parts.clients.front().operation == EnvelopeOperation::kSharedRead;
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t client = 0; client < parts.clients.size(); ++client) {
    const size_t worker = (client + (by_next ? 1 : 0)) % workers_->count();
    questions.push_back(QuestionOf(step, parts, client, worker));
    questions.back().words["warm"] = warm_;
    if (step == "prepare" && shared) break;
  }
  return workers_->Ask(questions, at_most).status();
}

Result<EnvelopeSample> EnvelopeMeasure::Go(const Parts& parts, Duration at_most) {
  const Time begin = clock_.Monotonic() + notice_;
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t client = 0; client < parts.clients.size(); ++client) {
    questions.push_back(QuestionOf("go", parts, client, client));
    questions.back().words["begin_ns"] = (begin + offsets_[client]).ns;
  }
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> spans, workers_->Ask(questions, at_most));
  Time first{std::numeric_limits<int64_t>::max()};
  Time last{std::numeric_limits<int64_t>::min()};
  Time told = begin, begun = begin;  // The last ones.
  for (size_t client = 0; client < spans.size(); ++client) {
    const json& span = spans[client];
    const auto moment = [&](const char* name) {
      return Time{span.at(name).get<int64_t>()} - offsets_[client];
    };
    told = std::max(told, moment("told_ns"));
    first = std::min(first, moment("begin_ns"));
    begun = std::max(begun, moment("begin_ns"));
    last = std::max(last, moment("end_ns"));
  }
  if (notice_ < kNoticeMax) notice_ = std::min(kNoticeMax, notice_ + (told - begin) * 2);
  const double seconds = static_cast<double>(std::max<int64_t>((last - first).ns, 1)) / 1e9;
  const double late = static_cast<double>((begun - first - kLateMax).ns) / 1e9;
  return EnvelopeSample{seconds, late <= kLateShareMax * seconds};
}

Result<EnvelopeSample> EnvelopeMeasure::Measured(const Parts& parts, Duration at_most) {
  MOSA_RETURN_IF_ERROR(Step("prepare", parts, at_most));
  MOSA_RETURN_IF_ERROR(Step("ready", parts, at_most));
  MOSA_ASSIGN_OR_RETURN(const EnvelopeSample sample, Go(parts, at_most));
  MOSA_RETURN_IF_ERROR(Step("check", parts, at_most));
  MOSA_RETURN_IF_ERROR(Step("check-stored", parts, at_most));
  return sample;
}

Result<EnvelopeSample> EnvelopeMeasure::SampleOnce(size_t system, const EnvelopeCell& cell,
                                                   uint64_t operations, uint64_t seed,
                                                   Duration at_most) {
  Parts parts{system, fmt::format("{}", ++samples_), {}};
  for (uint32_t client = 0; client < cell.clients; ++client)
    parts.clients.push_back(
        {cell.operation, cell.size_bytes, operations / cell.clients, client, "", seed});
  const std::string directory = DirectoryOf(system, 0) + "/" + parts.name;
  MOSA_RETURN_IF_ERROR(
      workers_->Ask(0, {{"do", "make"}, {"path", directory}, {"placement", ""}}, kAnswerMax)
          .status());
  const Result<EnvelopeSample> sample = Measured(parts, at_most);
  if (!sample.ok()) return sample;
  MOSA_RETURN_IF_ERROR(workers_->Ask(0, {{"do", "clear"}, {"path", directory}}, at_most).status());
  return sample;
}

Result<EnvelopeSample> EnvelopeMeasure::Sample(size_t system, const EnvelopeCell& cell,
                                               uint64_t operations, uint64_t seed,
                                               Duration at_most) {
  if (clock_.Monotonic() - clocks_read_ > kClocksGoodFor) MOSA_RETURN_IF_ERROR(ReadClocks());
  for (int trial = 1;; ++trial) {
    MOSA_ASSIGN_OR_RETURN(const EnvelopeSample sample,
                          SampleOnce(system, cell, operations, seed, at_most));
    if (sample.together || trial == kTrials) return sample;
  }
}

std::string EnvelopeMeasure::ClearOne(size_t system, Time until) {
  std::string why;
  const size_t able = std::min(systems_[system].hosts.size(), workers_->count());
  for (size_t host = 0; host < able; ++host) {
    const Duration at_most = std::min(kClearMax, until - clock_.Monotonic());
    const auto cleared = workers_->Ask(host, {{"do", "clear"}, {"path", DirectoryOf(system, host)}},
                                       at_most, OnSignal::kGoOn);
    // Where the store is not mounted any more there is nothing, and another host has it.
    if (cleared.ok() && cleared->value("found", false)) return "";
    if (!cleared.ok()) why = MessageOf(cleared.status());
  }
  if (why.empty() && made_[system] == Made::kPerhaps) return "";
  if (why.empty())
    return fmt::format("{} may be left, remove it: no host sees it any more, is the store mounted?",
                       DirectoryOf(system, 0));
  return fmt::format("{} is left, remove it ({})", DirectoryOf(system, 0), why);
}

std::string EnvelopeMeasure::Clear() {
  if (!workers_) return "";
  const Time until = clock_.Monotonic() + kClearAllMax;
  // Who is still at a sample would make files in what is being removed.
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t i = 0; i < workers_->count(); ++i) questions.push_back({i, {{"do", "clock"}}});
  const bool whole = workers_->Ask(questions, kClearMax, OnSignal::kGoOn).ok();
  std::string left;
  for (size_t system = 0; system < made_.size(); ++system) {
    if (made_[system] == Made::kNo) continue;
    std::string own = ClearOne(system, until);
    if (!own.empty() && !whole) {
      // Somebody who is gone may have been the only one who could.
      auto fresh = IdentifyWorkers::Start({systems_[system].hosts.front()}, kClearMax);
      if (fresh.ok()) {
        workers_.emplace(*std::move(fresh));
        own = ClearOne(system, until);
      }
    }
    if (!own.empty()) left += (left.empty() ? "" : "; ") + own;
  }
  return left;
}

}  // namespace mosa::cli
