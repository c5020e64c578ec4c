// SeenRun: a run as its record shows it. Measured and simulated runs are converted to this form, so
// that the same code looks at both and compares like with like.
#ifndef MOSA_PREDICTOR_COMPARE_SEEN_RUN_H_
#define MOSA_PREDICTOR_COMPARE_SEEN_RUN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "predictor/compare/requests.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

using BytesByNodeName = std::map<std::string, uint64_t>;

struct SeenTask {
  bool ran = false;  // Whether it ran to its end; else the other fields mean nothing.
  HostIndex host;
  Duration start, end;  // From the run's beginning. start <= end.
  Duration computing;   // If known; for simulated runs, from the workload.
  Duration work;        // What the workload has it compute, on all its cores; only if simulated.
  std::optional<Duration>
      processor;  // Own processor seconds, user and system; only for measured runs.
  // Bytes of its inputs by where they lay, and of its outputs by where they lie.
  BytesByNodeName read, written;
};

// A machine during a run. Hosts that are namespaces share one.
struct SeenMachine {
  std::vector<std::string> hosts;      // Where tasks, storage nodes and mounts run.
  double others_share = 0;             // Share of its processors that neither tasks nor Mosa used.
  std::optional<double> waited_share;  // Share of time in which some process waited for one.
  double stolen_share = 0;             // Share of its processors taken by its own host; no process
                                       // waits.
  bool has_runner = false;
  bool has_manager = false;
};

struct SeenRun {
  std::string name;                // For display.
  std::vector<std::string> hosts;  // By HostIndex. The node on a host has its name.
  std::vector<SeenTask> tasks;     // In the workflow's order.
  // Every task ran, in the end, and no host was lost: the run as a whole, its stages, and the time
  // between tasks can be compared.
  bool whole = true;
  Duration computing;  // The time in which any task computes, as in Prediction; by stage.
  std::map<std::string, Duration> stage_computing;
  std::vector<SeenMachine> machines;  // Machines with known use; only for measured runs.
  RequestTimes requests;              // Empty: unknown.
  bool knows_all_requests = true;     // False: some classes were left out.
  BytesByNodeName fetched;  // By host, bytes that its mount read from other nodes, if known.
  std::map<uint64_t, uint64_t> bytes_by_chunk;  // File bytes by chunk size, if known.
  double factor = 1;  // The model's error for times in which no task computes: ModelFactor().
};

// Counts a file's bytes where a task on `host` finds them: on its own node what is there, and the
// rest on the others, in proportion to what they hold.
void AddFile(uint64_t size_bytes, const BytesByNodeName& held, const std::string& host,
             BytesByNodeName& found);

// Preconditions: the prediction was made with layouts; `hosts` names the hosts that run tasks.
// Nodes on other hosts keep the names of the prediction. A task ends when the runner notices it.
// Requests are included if the prediction was made with residence.
SeenRun SeenOf(const Workflow& workflow, const Prediction& prediction, const Platform& platform,
               const std::vector<std::string>& hosts);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_SEEN_RUN_H_
