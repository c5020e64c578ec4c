// A traced run as a workload that can be predicted: tasks with their files and operations, and the
// graph of which task read what which other wrote.
//
// A file that several tasks wrote is taken apart: what each of them wrote is a file of its own,
// "path", "path#2", ..., and so is what a file was before it was cut. Where a task has read what
// could only be written after what it had written itself was read, it is taken apart in time:
// "id", "id#2", .... A task that removes a file and then makes one of the same name removes, in the
// workload, what is there before it writes: in a run that made its outputs beforehand, to hint
// them, it does so. Pure.
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
  Duration before;  // What the task computes first.
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
  Time start;                     // Since 1970; 0: it is not known.
  std::vector<uint32_t> inputs;   // Sorted indices of files.
  std::vector<uint32_t> outputs;  // The same.
  std::vector<uint32_t> after;    // Indices of tasks, besides what files say.
  Duration runtime;  // From its first operation to the end of its last, or as recorded.
  std::vector<WorkloadOperation> operations;  // None: it is not known.
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

// What a record of `mosa run` says of a task.
struct RecordedTask {
  std::string id;  // As MOSA_TASK had it.
  Duration runtime;
  std::string stage;                   // Empty: as its id tells.
  std::vector<std::string> command{};  // Empty: as the kernel calls the program.
};

// Tasks that have read and written nothing are left out. The part of a recorded runtime that lies
// before the first or behind the last operation is computed first.
Workload WorkloadOf(const TracedRun& run, std::string name,
                    const std::vector<RecordedTask>& recorded = {});

// The JSON schema of WfCommons; 1.6 adds sums and counts (`metrics`).
enum class WfFormat : uint8_t { k1_5 = 1, k1_6 };
constexpr std::string_view NameOf(WfFormat version) {
  return version == WfFormat::k1_5 ? "1.5" : "1.6";
}
// Readers of ours (read.h) make the same workflow of either.
std::string ToWfFormat(const Workload& workload, WfFormat version = WfFormat::k1_5);
// One sentence for the first name that the schema does not allow, though readers of ours do; empty
// if there is none.
std::string WfFormatFault(const Workload& workload, WfFormat version);
// The side file of operations, as predictor/workflow/operations.h reads it.
std::string ToOperationsText(const Workload& workload);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_TRACE_WORKLOAD_H_
