// Turns a traced run into a workload that can be predicted: tasks with their files and operations,
// and the graph of which task read what another wrote.
//
// A file that several tasks wrote is split: what each of them wrote is a file of its own, "path",
// "path#2" and so on. So is what a file held before it was truncated. A task is split in time
// ("id", "id#2", ...) if it read something that could be written only after its own output had been
// read. If a task removes a file and then makes one of the same name, the workload's task removes
// the file just before it writes: a run that creates its outputs beforehand, to hint them, does the
// same. Pure.
#ifndef MOSA_PREDICTOR_TRACE_WORKLOAD_H_
#define MOSA_PREDICTOR_TRACE_WORKLOAD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "predictor/trace/traced_run.h"

namespace mosa::predict {

struct WorkloadOperation {
  enum class Kind : uint8_t { kRead = 1, kWrite, kCompute, kRemove };
  Duration before;  // Computing before the operation.
  Kind kind = Kind::kRead;
  uint32_t file = 0;  // Index into the workload's files.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

struct WorkloadTask {
  std::string id;
  std::string stage;
  std::vector<std::string> command;
  std::string host;
  Time start;                     // Since 1970; 0: unknown.
  std::vector<uint32_t> inputs;   // Sorted indices of files.
  std::vector<uint32_t> outputs;  // Sorted, too.
  std::vector<uint32_t> after;    // Indices of tasks: order that no file expresses.
  Duration runtime;  // From its first operation to the end of its last, or as recorded.
  uint32_t cores = 1;
  std::vector<WorkloadOperation> operations;  // Empty: unknown.
};

struct WorkloadFile {
  std::string path;  // Relative to the mount, or to the run's directory; UTF-8.
  uint64_t size_bytes = 0;
};

struct Workload {
  std::string name;
  std::string description;
  std::vector<WorkloadTask> tasks;
  std::vector<WorkloadFile> files;
};

// What a record of `mosa run` says about a task.
struct RecordedTask {
  std::string id;  // As MOSA_TASK had it.
  Duration runtime;
  std::string stage;                   // Empty: derived from the id.
  std::vector<std::string> command{};  // Empty: the kernel's name of the program.
  uint32_t cores = 1;
};

// Leaves out tasks that used no file. If a recorded runtime is longer than the span of the task's
// operations, the difference becomes computing before the first one.
Workload WorkloadOf(const TracedRun& run, std::string name,
                    const std::vector<RecordedTask>& recorded = {});

// Version of WfCommons' JSON schema; 1.6 adds sums and counts (`metrics`).
enum class WfFormat : uint8_t { k1_5 = 1, k1_6 };
constexpr std::string_view NameOf(WfFormat version) {
  return version == WfFormat::k1_5 ? "1.5" : "1.6";
}
// The readers in read.h make the same workflow of either version.
std::string ToWfFormat(const Workload& workload, WfFormat version = WfFormat::k1_5);
// Returns one sentence for the first name that the schema does not allow, though Mosa's readers do;
// empty if there is none.
std::string WfFormatFault(const Workload& workload, WfFormat version);
// Writes the side file of operations (predictor/workflow/operations.h).
std::string ToOperationsText(const Workload& workload);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_TRACE_WORKLOAD_H_
