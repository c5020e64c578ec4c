#include "tools/measure/envelope_measure.h"

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
// Time for all clients to hear when to begin; adapted to what this takes.
constexpr Duration kNoticeMin = Milliseconds(10);
constexpr Duration kNoticeMax = Milliseconds(250);
// A sample is repeated if a client begins later than this plus this share of the sample.
constexpr Duration kLateMax = Milliseconds(5);
constexpr double kLateShareMax = 0.05;
constexpr int kTrials = 3;
constexpr uint64_t kTicksMin = 5;  // Per processor: fewer give no share.
// A rate above this stands for an unknown limit.
constexpr uint64_t kLinkKnownMax = 1'999'999'999;

}  // namespace

void BusyShare::Add(const ProcessorTicks& ticks, uint64_t processors) {
  is_short_ = is_short_ || ticks.all < kTicksMin * std::max<uint64_t>(1, processors);
  sum_.busy += ticks.busy;
  sum_.all += ticks.all;
}

std::optional<double> BusyShare::share() const {
  if (is_short_ || sum_.all == 0) return std::nullopt;
  return static_cast<double>(sum_.busy) / static_cast<double>(sum_.all);
}

std::optional<double> EnvelopeMeasure::LinkShareOf(size_t system, size_t client,
                                                   const json& span) const {
  const std::vector<RunHost>& hosts = systems_[system].hosts;
  const uint64_t link = hosts[client % hosts.size()].link_bytes_per_second;
  const double ns =
      static_cast<double>(span.at("end_ns").get<int64_t>() - span.at("begin_ns").get<int64_t>());
  if (link == 0 || link > kLinkKnownMax || span.at("link_bytes").is_null() || ns <= 0)
    return std::nullopt;
  return span.at("link_bytes").get<double>() / (static_cast<double>(link) * ns / 1e9);
}

Status EnvelopeMeasure::Start(uint32_t clients) {
  MOSA_RETURN_IF_ERROR(workers_.Start(WorkersFor(clients, workers_.hosts().size())));
  return ReadClocks();
}

Result<std::vector<json>> EnvelopeMeasure::Facts(size_t system) {
  auto facts = workers_.Facts(system);
  if (facts.ok() && facts->front().at("mosa").get<bool>()) mosa_.insert(system);
  return facts;
}

// The reading with the shortest round trip is the most exact.
Status EnvelopeMeasure::ReadClocks() {
  offsets_.clear();
  for (size_t i = 0; i < workers_->count(); ++i) {
    Duration shortest{std::numeric_limits<int64_t>::max()};
    Duration offset;
    for (int reading = 0; reading < kClockReadings; ++reading) {
      const Time asked = clock_.Monotonic();
      MOSA_ASSIGN_OR_RETURN(const json answer,
                            workers_->Ask(i, {{"do", "clock"}}, StoreWorkers::kAnswerMax));
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

IdentifyWorkers::Question EnvelopeMeasure::QuestionOf(const std::string& step, const Parts& parts,
                                                      size_t client, size_t worker) const {
  json words = ToJson(parts.clients[client]);
  words["do"] = "envelope";
  words["step"] = step;
  words["directory"] = workers_.DirectoryOf(parts.system, worker) + "/" + parts.name;
  return {worker, std::move(words)};
}

// Runs a step on all clients at once; the next client does the preparing and checking for a client.
Result<std::vector<json>> EnvelopeMeasure::Step(const std::string& step, const Parts& parts,
                                                Duration at_most) {
  const bool by_next = step == "prepare" || step == "check-stored";
  const bool shared = parts.clients.front().operation == EnvelopeOperation::kSharedRead;
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t client = 0; client < parts.clients.size(); ++client) {
    const size_t worker = (client + (by_next ? 1 : 0)) % workers_->count();
    questions.push_back(QuestionOf(step, parts, client, worker));
    questions.back().words["warm"] = warm_;
    questions.back().words["may_be_late"] = !mosa_.contains(parts.system);
    if (step == "prepare" && shared) break;
  }
  return workers_->Ask(questions, at_most);
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
  Time told = begin, begun = begin;  // The latest.
  BusyShare busy;
  std::optional<double> link_share = 0;
  for (size_t client = 0; client < spans.size(); ++client) {
    const json& span = spans[client];
    const auto moment = [&](const char* name) {
      return Time{span.at(name).get<int64_t>()} - offsets_[client];
    };
    told = std::max(told, moment("told_ns"));
    first = std::min(first, moment("begin_ns"));
    begun = std::max(begun, moment("begin_ns"));
    last = std::max(last, moment("end_ns"));
    busy.Add({span.at("busy_ticks").get<uint64_t>(), span.at("all_ticks").get<uint64_t>()},
             span.at("processors").get<uint64_t>());
    const auto own = LinkShareOf(parts.system, client, span);
    link_share = own && link_share ? std::optional(std::max(*own, *link_share)) : std::nullopt;
  }
  if (notice_ < kNoticeMax) notice_ = std::min(kNoticeMax, notice_ + (told - begin) * 2);
  const double seconds = static_cast<double>(std::max<int64_t>((last - first).ns, 1)) / 1e9;
  const double late = static_cast<double>((begun - first - kLateMax).ns) / 1e9;
  return EnvelopeSample{seconds, late <= kLateShareMax * seconds, busy.share(), link_share, {}};
}

Result<EnvelopeSample> EnvelopeMeasure::Measured(const Parts& parts, Duration at_most) {
  MOSA_RETURN_IF_ERROR(Step("prepare", parts, at_most).status());
  MOSA_RETURN_IF_ERROR(Step("ready", parts, at_most).status());
  MOSA_ASSIGN_OR_RETURN(EnvelopeSample sample, Go(parts, at_most));
  MOSA_RETURN_IF_ERROR(Step("check", parts, at_most).status());
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> stored, Step("check-stored", parts, at_most));
  for (const json& answer : stored)
    sample.seen_late = std::max(sample.seen_late, Duration{answer.at("late_ns").get<int64_t>()});
  return sample;
}

Result<EnvelopeSample> EnvelopeMeasure::SampleOnce(size_t system, const EnvelopeCell& cell,
                                                   uint64_t operations, uint64_t seed,
                                                   Duration at_most) {
  Parts parts{system, fmt::format("{}", ++samples_), {}};
  for (uint32_t client = 0; client < cell.clients; ++client)
    parts.clients.push_back(
        {cell.operation, cell.size_bytes, operations / cell.clients, client, "", seed});
  const std::string directory = workers_.DirectoryOf(system, 0) + "/" + parts.name;
  MOSA_RETURN_IF_ERROR(workers_
                           ->Ask(0, {{"do", "make"}, {"path", directory}, {"placement", ""}},
                                 StoreWorkers::kAnswerMax)
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

}  // namespace mosa::cli
