// Measures single samples of MTC envelopes: clients are processes on hosts, which are told to begin
// at one moment of their own clocks; a sample lasts until the last of them is done.
//
// A sample has a directory and files of its own. Files that are read, or that writers find empty,
// are made by the next process, which is on another host if there are two, and are dropped from its
// pages: the process that reads them has never seen them. What creating and writing left is looked
// at by that other process, too.
#ifndef MOSA_TOOLS_MEASURE_ENVELOPE_MEASURE_H_
#define MOSA_TOOLS_MEASURE_ENVELOPE_MEASURE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "predictor/envelope/envelope.h"
#include "tools/measure/envelope_client.h"
#include "tools/measure/store_workers.h"

namespace mosa::cli {

// Processes for so many clients: as many on each host, in turn, so that after the last, too, the
// next one is on another host.
constexpr size_t WorkersFor(uint32_t clients, size_t hosts) {
  return (clients + hosts - 1) / hosts * hosts;
}

struct EnvelopeSample {
  double seconds = 0;    // From the first client's beginning to the last one's end.
  bool together = true;  // Whether they began at one moment, as far as that matters.
  // The share of their time that the processors of clients' hosts worked, on anything. Nothing: it
  // was too short to say.
  std::optional<double> busy_share;
  // The largest share of what a link of a client's host can move in one direction that any moved.
  // Nothing: a limit or a counter is not known.
  std::optional<double> link_share;
  Duration seen_late;  // Until another host saw what was created or written.
};

// Share of time that clients' processors were busy, by their ticks. Nothing: one has too few ticks.
class BusyShare {
 public:
  void Add(const ProcessorTicks& ticks, uint64_t processors);
  std::optional<double> share() const;

 private:
  ProcessorTicks sum_;
  bool is_short_ = false;
};

// One thread.
class EnvelopeMeasure {
 public:
  // `directory` is as StoreWorkers has it; `warm`: clients have read before what they read.
  EnvelopeMeasure(std::vector<MeasuredStore> systems, std::string directory, bool warm)
      : systems_(systems), workers_(std::move(systems), std::move(directory)), warm_(warm) {}

  // Starts so many clients, in turn on the hosts. Unavailable names a host where it cannot.
  Status Start(uint32_t clients);
  // Before the first sample of each.
  Result<std::vector<nlohmann::json>> Facts(size_t system);
  Status Settle(size_t system) { return workers_.Settle(system); }
  std::string Clear() { return workers_.Clear(); }
  // Again, a few times, if clients did not begin together. DataLoss: a byte was wrong. Unavailable:
  // a client is gone, or it takes longer than `at_most` for one step.
  Result<EnvelopeSample> Sample(size_t system, const predict::EnvelopeCell& cell,
                                uint64_t operations, uint64_t seed, Duration at_most);

 private:
  using Json = nlohmann::json;

  // One sample: each client's part, but for the directory, which is its host's.
  struct Parts {
    size_t system = 0;
    std::string name;  // The directory's, below ours.
    std::vector<ClientSample> clients;
  };

  Status ReadClocks();
  // As in EnvelopeSample, for one client.
  std::optional<double> LinkShareOf(size_t system, size_t client, const Json& span) const;
  IdentifyWorkers::Question QuestionOf(const std::string& step, const Parts& parts, size_t client,
                                       size_t worker) const;
  Result<std::vector<Json>> Step(const std::string& step, const Parts& parts, Duration at_most);
  Result<EnvelopeSample> Go(const Parts& parts, Duration at_most);
  Result<EnvelopeSample> Measured(const Parts& parts, Duration at_most);
  Result<EnvelopeSample> SampleOnce(size_t system, const predict::EnvelopeCell& cell,
                                    uint64_t operations, uint64_t seed, Duration at_most);

  // Clocks that drift apart by 50 millionths are 1 ms off then.
  static constexpr Duration kClocksGoodFor = Seconds(20);

  const std::vector<MeasuredStore> systems_;
  StoreWorkers workers_;
  const bool warm_;
  std::set<size_t> mosa_;  // Systems that are Mosa: close-to-open is promised there.
  const SystemClock clock_;
  std::vector<Duration> offsets_;  // By client: what its clock is ahead of ours.
  Time clocks_read_;
  Duration notice_;  // Between telling clients to begin, and that moment.
  uint64_t samples_ = 0;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_MEASURE_H_
