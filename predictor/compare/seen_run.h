// SeenRun: a run as its record shows it. Measured and simulated runs are brought into this form and
// then looked at by the same code, so that what is compared is the same thing.
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
  bool ran = false;  // To its end, in this run: else the rest says nothing.
  HostIndex host;
  Duration start, end;  // From the run's beginning. start <= end.
  Duration computing;   // If it is known: of simulated runs, as the workload says.
  std::optional<Duration>
      processor;  // Its own processor seconds, user and system: of measured runs.
  // Bytes of its inputs as they lay, and of its outputs as they lie.
  BytesByNodeName read, written;
  // The part of `read` that lay on other nodes, by input as in the workflow; inputs that are not
  // there are not known.
  std::vector<uint64_t> inputs_elsewhere;
};

// A machine in the time of a run; hosts that are namespaces share one.
struct SeenMachine {
  std::vector<std::string> hosts;      // Where tasks, storage nodes and mounts are.
  double others_share = 0;             // Share of its processors that neither tasks nor Mosa used.
  std::optional<double> waited_share;  // Share of time that some process waited for one.
  double stolen_share = 0;             // Share of its processors its own host took; none waits.
  bool has_runner = false;
  bool has_manager = false;
};

struct SeenRun {
  std::string name;                // For people.
  std::vector<std::string> hosts;  // By HostIndex. A host's node has its name.
  std::vector<SeenTask> tasks;     // As the workflow's.
  // Every task ran, at the first attempt, and no host was lost: what the run took as a whole, its
  // stages, and what lies between tasks can be compared.
  bool whole = true;
  Duration computing;  // In which any task computes, as Prediction's; of stages by name.
  std::map<std::string, Duration> stage_computing;
  std::vector<SeenMachine> machines;  // Whose use is known, of measured runs.
  RequestTimes requests;              // Empty: not known.
  bool knows_all_requests = true;     // Else some classes of these were left out.
  BytesByNodeName fetched;  // By host, what its mount read from other nodes, if it is known.
  std::map<uint64_t, uint64_t> bytes_by_chunk;  // File bytes by chunk size, if known.
  double factor = 1;  // What times are off by where no task computes: ModelFactor().
};

// Counts a file's bytes where a task on `host` finds them: on its own node what is there, the rest
// on the others in the proportion in which they hold it. Returns the bytes on others.
uint64_t AddFile(uint64_t size_bytes, const BytesByNodeName& held, const std::string& host,
                 BytesByNodeName& found);

// Preconditions: the prediction was made with layouts; `hosts` names the hosts that run tasks.
// Nodes on others keep the names that the prediction gave them. A task's end is when the runner
// notices it. Requests are there if it was predicted with residence.
SeenRun SeenOf(const Workflow& workflow, const Prediction& prediction, const Platform& platform,
               const Configuration& configuration, const std::vector<std::string>& hosts);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_SEEN_RUN_H_
