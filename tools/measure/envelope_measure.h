// Measures single samples of MTC envelopes. Clients are processes on hosts, which are told to begin
// at one moment of their own clocks; a sample lasts until the last of them is done.
//
// A sample has its own directory and files. The next process, which is on another host if there are
// two, creates the files that are read or that writers find empty, and drops them from its page
// cache: the process that reads them has never seen them. That other process also checks what
// creating and writing left.
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

// Number of processes for this many clients: the same on each host, in turn, so that the one after
// the last client is on another host too.
constexpr size_t WorkersFor(uint32_t clients, size_t hosts) {
  return (clients + hosts - 1) / hosts * hosts;
}

struct EnvelopeSample {
  double seconds = 0;    // From the first client's beginning to the last one's end.
  bool together = true;  // Whether they began at one moment, within what matters.
  // The share of time that the processors of the clients' hosts were busy, with anything. Nothing
  // if the sample was too short to tell.
  std::optional<double> busy_share;
  // The largest share of its capacity that a link of a client's host moved in one direction.
  // Nothing if a limit or a counter is unknown.
  std::optional<double> link_share;
  Duration seen_late;  // Until another host saw what was created or written.
};

// Share of time that clients' processors were busy, by their ticks. Nothing if one has too few
// ticks.
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
  // `directory` is as in StoreWorkers; `warm`: clients have read the files before.
  EnvelopeMeasure(std::vector<MeasuredStore> systems, std::string directory, bool warm)
      : systems_(systems), workers_(std::move(systems), std::move(directory)), warm_(warm) {}

  // Starts this many clients, in turn on the hosts. Unavailable names a host where that fails.
  Status Start(uint32_t clients);
  // To be called before the first sample of each system.
  Result<std::vector<nlohmann::json>> Facts(size_t system);
  Status Settle(size_t system) { return workers_.Settle(system); }
  std::string Clear() { return workers_.Clear(); }
  // Repeats the sample a few times if clients did not begin together. DataLoss: a byte was wrong.
  // Unavailable: a client is gone, or one step takes longer than `at_most`.
  Result<EnvelopeSample> Sample(size_t system, const predict::EnvelopeCell& cell,
                                uint64_t operations, uint64_t seed, Duration at_most);

 private:
  using Json = nlohmann::json;

  // One sample: each client's part, except for the directory, which depends on the host.
  struct Parts {
    size_t system = 0;
    std::string name;  // Name of the directory, below ours.
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

  // Clocks that drift apart by 50 ppm differ by 1 ms after this time.
  static constexpr Duration kClocksGoodFor = Seconds(20);

  const std::vector<MeasuredStore> systems_;
  StoreWorkers workers_;
  const bool warm_;
  std::set<size_t> mosa_;  // Systems that are Mosa, which promises close-to-open consistency.
  const SystemClock clock_;
  std::vector<Duration> offsets_;  // By client: how far its clock is ahead of ours.
  Time clocks_read_;
  Duration notice_;  // Between telling clients to begin, and that time.
  uint64_t samples_ = 0;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_MEASURE_H_
