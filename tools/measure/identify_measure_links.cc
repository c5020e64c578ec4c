// What `mosa identify` measures of links and their queues, and what that tells of the platform.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>

#include "tools/measure/identify_measure.h"
#include "tools/measure/identify_network.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr double kStreamSeconds = 0.25;  // For a stream between hosts.
constexpr uint64_t kStreamBytesMin = 4 << 20;
constexpr double kBurstSeconds =
    0.1;  // Length of a stream that begins with a burst, and of the pause before.
constexpr uint64_t kBurstStreamBytesMin = 1 << 20;
constexpr double kBurstShareMin = 0.05;       // A smaller share is not a burst.
constexpr Duration kStreamMax = Seconds(40);  // Enough for a link of one megabit per second.
constexpr uint64_t kStreamBytesMax = 256 << 20;
constexpr double kSharesSeconds = 0.2;  // Time in which streams that share a link are counted.
constexpr const char* kMeetingUnevenness = "unevenness of 4 streams from ";
constexpr const char* kLeavingUnevenness = "unevenness of 4 streams that leave ";
constexpr const char* kAfterPause = "stream after a pause from ";
constexpr uint32_t kPings = 50;
constexpr uint32_t kLoadedPings = 5;
constexpr uint32_t kMeetingConnections = 4;

// From round trips: alone, beside a stream of the sender, and where another host's stream meets it.
// With two hosts nothing measures the last: it is then taken to equal the second.
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

json Measure::TargetOf(size_t host) const {
  return {{"addresses", {addresses_[host]}}, {"port", ports_[host]}, {"token", token_}};
}

// Bytes per second over all ways at the same time, each from a different host to the same one.
Result<double> Measure::Stream(const std::vector<std::pair<size_t, size_t>>& ways,
                               uint32_t connections) {
  // A host answers one question at a time, so ways from one host become connections of one
  // question.
  std::vector<IdentifyWorkers::Question> questions;
  uint64_t& bytes = stream_bytes_[ways.front()];
  bytes = std::max(bytes, kStreamBytesMin);
  for (const auto& [source, target] : ways) {
    json words = TargetOf(target);
    words["do"] = "stream";
    const uint64_t each = bytes / ways.size() / connections;
    words["bytes"] = each;
    // With several at once, some end before others have warmed up.
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

// How many bytes a link carries in this time.
Result<uint64_t> Measure::LinkBytes(double seconds) {
  if (link_rate_ == 0) {
    MOSA_ASSIGN_OR_RETURN(link_rate_, Stream({{0, 1}}, 1));
  }
  return static_cast<uint64_t>(
      std::min(link_rate_ * seconds, static_cast<double>(kStreamBytesMax)));
}

// Bytes per second of a short stream over idle links, counted from its first byte: more than they
// can sustain, if they allow bursts.
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

// Round trips from the second host to the first, beside its own stream and one of the third host.
Result<double> Measure::PingWhereStreamsMeet() {
  json stream = TargetOf(0);
  stream["do"] = "stream";
  // Long enough to outlast the other, and over several connections, which fill queues sooner.
  stream["bytes"] = std::max(stream_bytes_[{2, 0}], kStreamBytesMin);
  stream["warm_bytes"] = 0;
  stream["connections"] = kMeetingConnections;
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> answers,
                        workers_->Ask({{1, PingOf(0, true)}, {2, std::move(stream)}}, kStreamMax));
  return answers.front().at("value").get<double>();
}

// The standard deviation of the logarithms of the rates that two streams on every way get while all
// of them run.
Result<double> Measure::Unevenness(const std::vector<size_t>& sources,
                                   const std::vector<size_t>& targets) {
  // None of them ends within the counted time: the whole link would not carry more.
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
  const auto add = [this](std::string what, const char* unit,
                          std::function<Result<double>()> sample) {
    items_.push_back({std::move(what), unit, std::move(sample), {}, {}});
  };
  for (size_t i = 0; i < workers_->count(); ++i) {
    for (size_t j = 0; j < workers_->count(); ++j) {
      if (i == j || !listens(j)) continue;
      add(fmt::format("stream from {} to {}", name(i), name(j)), "bytes/s", [this, i, j] {
        return Stream({{i, j}}, 1);
      });
      if (i < j)
        add(fmt::format("round trip from {} to {}", name(i), name(j)), "s",
            [this, i, j] { return Ping(i, j, false); });
    }
  }
  if (workers_->count() > 1 && listens(1)) {
    add(fmt::format("4 streams from {} to {}", name(0), name(1)), "bytes/s", [this] {
      return Stream({{0, 1}}, 4);
    });
    add(fmt::format("{}{} to {}", kAfterPause, name(0), name(1)), "bytes/s",
        [this] { return StreamAfterPause(); });
    add(fmt::format("round trip from {} to {} beside a stream", name(0), name(1)), "s",
        [this] { return Ping(0, 1, true); });
  }
  if (workers_->count() > 2 && listens(0)) {
    add(fmt::format("streams from {} and {} to {}", name(1), name(2), name(0)), "bytes/s", [this] {
      return Stream({{1, 0}, {2, 0}}, 1);
    });
    add(fmt::format("{}{} and {} to {}", kMeetingUnevenness, name(1), name(2), name(0)),
        "deviation of logarithms", [this] {
          return Unevenness({1, 2}, {0});
        });
    if (listens(1) && listens(2))
      add(fmt::format("{}{} to {} and {}", kLeavingUnevenness, name(0), name(1), name(2)),
          "deviation of logarithms", [this] {
            return Unevenness({0}, {1, 2});
          });
    add(fmt::format("round trip from {} to {} where streams meet", name(1), name(0)), "s",
        [this] { return PingWhereStreamsMeet(); });
  }
  if (!listens(0)) return;
  add("stream inside a host", "bytes/s", [this] { return Stream({{0, 0}}, 1); });
  add("round trip inside a host", "s", [this] { return Ping(0, 0, false); });
}

// A link is as fast as the best rate of several streams, since a host's link is what limits them.
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
      // With a single sample, the other pairs tell more.
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
        "how long messages wait where streams of two hosts meet was not measured ({}): {:.3g} ms "
        "is assumed",
        workers_->count() > 2 ? "the measurement failed or had no time" : "this needs three hosts",
        static_cast<double>(known.network.in_queue_ns_max) / 1e6));
  if (pair_count == 0) return;
  const double mean = pairs / pair_count;
  const double variance = std::max(0.0, pairs_squared / pair_count - mean * mean);
  known.host.out_bytes_per_second = known.host.in_bytes_per_second =
      static_cast<uint64_t>(best > 1.1 * mean ? best : mean);
  known.network.spread = std::min(1.0, std::sqrt(variance / (mean * mean) + half * half / 4));
  // The burst: what the rate alone would not have carried of a stream that began with it.
  const double share = after_pause.count > 1 ? 1 - mean / after_pause.mean : 0;
  if (share > kBurstShareMin && share > after_pause.RelativeHalf() + half)
    known.network.burst_bytes =
        static_cast<uint64_t>(share * static_cast<double>(burst_stream_bytes_));
}

}  // namespace mosa::cli
