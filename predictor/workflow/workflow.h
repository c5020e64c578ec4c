// A workflow as a graph: tasks that run commands and pass each other files.
//
// Readers (read.h) draft tasks and files by name. BuildWorkflow() resolves the names, checks the
// graph and orders it. Plain values, no I/O; `mosa run` and the predictor use the same ones.
#ifndef MOSA_PREDICTOR_WORKFLOW_WORKFLOW_H_
#define MOSA_PREDICTOR_WORKFLOW_WORKFLOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/strong_id.h"
#include "common/base/time.h"

namespace mosa::predict {

using TaskIndex = StrongId<struct WorkflowTaskTag, uint32_t>;
using PathIndex = StrongId<struct WorkflowPathTag, uint32_t>;
using HostIndex = StrongId<struct WorkflowHostTag, uint32_t>;

inline constexpr size_t kTasksMax = 1'000'000;

// Hints by name without their prefix, such as "placement" -> "local".
using HintMap = std::map<std::string, std::string>;

// One operation of a task on a file, and the computing before it.
struct TaskOperation {
  enum class Kind : uint8_t {
    kRead = 1,
    kWrite,
    kCompute,
    kRemove,  // An existing output is removed before it is written, which makes a new file.
  };
  Duration before;
  Kind kind = Kind::kCompute;
  PathIndex file;  // Unused by kCompute, like the fields below.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// Where a plan wants a task to run, and how long the task waits for a slot there before it goes to
// another host.
struct PlannedHost {
  HostIndex host;
  Duration patience;
};

// What a task takes of its host while it runs.
struct TaskNeeds {
  uint32_t cores = 1;         // Slots; all of a host that has fewer.
  uint64_t memory_bytes = 0;  // 0: not known.
  bool operator==(const TaskNeeds&) const = default;
};
inline constexpr uint32_t kTaskCoresMax = 4096;

struct Task {
  std::string id;
  std::string stage;                 // The name that tasks of one kind share.
  std::vector<std::string> command;  // A program and its arguments.
  std::vector<PathIndex> inputs;
  std::vector<PathIndex> outputs;
  std::optional<Duration> expected;  // Expected runtime, on all of its cores.
  TaskNeeds needs;
  // In order. Empty: it reads its inputs, computes and writes its outputs.
  std::vector<TaskOperation> operations;
  int line = 0;  // Line in the text it was read from; 0 if unknown.
  std::optional<PlannedHost> planned;

  // Set by BuildWorkflow():
  std::vector<TaskIndex> predecessors;  // From files and from explicit order; sorted.
  std::vector<TaskIndex> successors;
  std::vector<TaskIndex> stream_writers;  // Predecessors of which it reads nothing but streams.
  uint32_t level = 0;                     // Tasks on the longest path that leads here.
  uint32_t levels_to_end = 0;             // Tasks on the longest path from here on.
};

struct WorkflowFile {
  // Normal form, relative to the run's directory on the mount; absolute if no task writes it and it
  // lies outside.
  std::string path;
  // A directory that its writer fills: an output that is named with a slash at its end.
  bool is_directory = false;
  // It has the hint stream=append: tasks may read it while it is written.
  bool is_stream = false;
  std::optional<uint64_t> size_bytes;
  HintMap hints;  // The user's own hints.
  // In a replay of a run: the node that held all of it, whatever decided that. Empty: not known.
  std::string placed_on;
  std::optional<TaskIndex> producer;
  std::vector<TaskIndex> consumers;  // Sorted.
};

// Paths outside the mount do not belong to the store.
inline bool IsOnTheStore(const WorkflowFile& file) { return !file.path.starts_with('/'); }

// The path as a workflow names it: with a slash at its end if it is a directory.
inline std::string NameOf(const WorkflowFile& file) {
  return file.is_directory ? file.path + "/" : file.path;
}

struct Workflow {
  std::string name;
  std::vector<Task> tasks;
  std::vector<WorkflowFile> files;
  std::vector<TaskIndex> order;  // Every task after its predecessors.
  // Outputs have exactly the hints given here, and none from the graph.
  bool hints_are_whole = false;
  // Hosts read the inputs of tasks that are planned there ahead (read_ahead.h).
  bool reads_ahead = false;

  const Task& at(TaskIndex task) const { return tasks[task.value]; }
  const WorkflowFile& at(PathIndex file) const { return files[file.value]; }
};

struct TaskDraft {
  std::string id;
  std::string stage;  // Empty: StageOf(id).
  std::vector<std::string> command;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> after;  // Ids of tasks that must have finished.
  std::optional<Duration> expected;
  TaskNeeds needs;
  int line = 0;
};

struct FileDraft {
  std::string path;
  std::optional<uint64_t> size_bytes;
  HintMap hints;
  bool must_be_used = false;  // It is a fault if no task uses it.
  int line = 0;
};

struct WorkflowDraft {
  std::string name;
  // Absolute names of the run's directory. A path below one of them becomes relative to it.
  std::vector<std::string> directories;
  std::vector<TaskDraft> tasks;
  std::vector<FileDraft> files;  // Only files with properties to set; tasks name the others.
};

// A workflow, or one sentence per fault. If there are faults, the workflow must not be used.
struct BuildResult {
  Workflow workflow;
  std::vector<std::string> faults;
};
BuildResult BuildWorkflow(const WorkflowDraft& draft);

// InvalidArgument if a task needs more memory than each of these hosts has for tasks; 0: no limit.
Status CheckMemory(const Workflow& workflow, const std::vector<uint64_t>& memory_bytes);

// Files that some task reads and none writes: they must exist before the run.
std::vector<PathIndex> OutsideInputs(const Workflow& workflow);

// "task 'count' (line 7)".
std::string Describe(const Task& task);

// The part of a name that tasks of one kind share: "mProject_ID0000012" and "mProject-3" give
// "mProject".
std::string StageOf(std::string_view name);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_WORKFLOW_H_
