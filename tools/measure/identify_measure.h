// Measures a deployment for `mosa identify`, one sample after the other, until the result is good
// enough or the time is used up.
#ifndef MOSA_TOOLS_MEASURE_IDENTIFY_MEASURE_H_
#define MOSA_TOOLS_MEASURE_IDENTIFY_MEASURE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "predictor/identify/identify.h"
#include "predictor/identify/schedule.h"
#include "predictor/model/evidence.h"
#include "tools/hosts/hosts.h"
#include "tools/hosts/identify_workers.h"

namespace mosa::cli {

// The input of Identify(), and what else to report.
struct Measurements {
  predict::Platform known;  // Hosts and links as measured, guesses for the rest.
  predict::Configuration deployment;
  predict::Findings findings;
  predict::Evidence direct;  // What the fit does not use: links, and notes.
};

struct MeasureOptions {
  std::vector<RunHost> hosts;  // At most as many as allowed; not empty.
  size_t hosts_in_all = 1;     // All that share the store's room and hold its files.
  bool one_machine = false;    // All of those are on this machine.
  std::string scratch;         // A local directory.
  Time until;                  // On the monotonic clock: starts nothing that would end later.
};

class Measure {
 public:
  explicit Measure(MeasureOptions options) : options_(std::move(options)) {}

  // Returns the first error that prevents all measuring; Aborted after a signal
  // (cluster::InterruptGuard). A single measurement that fails becomes a note. Leaves nothing on
  // the store, even after a signal; if something cannot be removed, the error or a note says where
  // it is.
  Result<Measurements> Run();

 private:
  using Json = nlohmann::json;
  struct Item {
    std::string what;
    std::string unit;
    std::function<Result<double>()> sample;
    std::optional<predict::Probe> probe;
    std::optional<predict::RunProbe> run;
  };

  Status LookAtHosts();
  void NoteLoad();
  Status Settle();
  Status FindOthersNode();
  Status FindLayout();
  std::vector<RunHost> HostsOfRuns() const;
  void AddNetworkItems();
  void AddProbeItems();
  void AddRunItems();
  Status MeasureAll();
  Status MeasureEverything();
  Status StillThere();
  // Extrapolated from smaller probes; 0 if there are none.
  double ExpectedSeconds(const predict::Probe& probe) const;
  Result<double> SampleProbe(const predict::Probe& probe, size_t index);
  Result<double> Stream(const std::vector<std::pair<size_t, size_t>>& ways, uint32_t connections);
  Result<uint64_t> LinkBytes(double seconds);
  Result<double> StreamAfterPause();
  Result<double> Ping(size_t source, size_t target, bool loaded);
  Result<double> PingWhereStreamsMeet();
  Result<double> Unevenness(const std::vector<size_t>& sources, const std::vector<size_t>& targets);
  Json PingOf(size_t target, bool loaded) const;
  Json TargetOf(size_t host) const;
  std::string DirectoryOf(size_t host, const std::string& name) const;
  Measurements Gather() const;
  void FillNetwork(Measurements& found) const;
  Result<Json> Ask(size_t host, Json words) {
    return workers_->Ask(host, std::move(words), kAnswerMax);
  }
  // Removes what was made. Returns what is left and why, in words; empty: nothing.
  std::string Clear();

  static constexpr Duration kStartMax = Seconds(15);
  // At least; steps that move bytes get longer, by the time they are expected to take.
  static constexpr Duration kAnswerMax = Seconds(10);
  static constexpr Duration kClearMax = Seconds(5);  // Per host, even after a signal.

  const MeasureOptions options_;
  const SystemClock clock_;
  std::optional<IdentifyWorkers> workers_;
  std::vector<Json> facts_;             // By host.
  std::vector<uint16_t> ports_;         // By host; 0: it does not listen.
  std::vector<std::string> addresses_;  // Where it listens.
  std::string token_;
  std::string name_;  // Name of our directory, below each host's.
  std::string others_node_;
  predict::ProbeScope scope_;
  predict::Configuration deployment_;  // What is known of the store, for files without hints.
  bool mosa_ = false;
  bool one_machine_ = false;
  std::vector<Item> items_;
  std::vector<bool> made_;                             // By item: whether its directory exists.
  std::map<predict::Where, double> seconds_per_byte_;  // For whole samples, including their
                                                       // preparation.
  size_t runs_ = 0;                                    // Number begun so far.
  std::vector<double> seconds_;                        // By item: those of its last sample.
  std::map<std::pair<size_t, size_t>, uint64_t> stream_bytes_;
  double link_rate_ = 0;             // Bytes per second from the first host to the second.
  uint64_t burst_stream_bytes_ = 0;  // Length of the stream after a pause.
  std::optional<predict::Schedule> schedule_;
  std::vector<std::string> notes_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_MEASURE_H_
