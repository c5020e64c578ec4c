#include "predictor/workflow/streams.h"

#include <algorithm>
#include <cstdint>

namespace mosa::predict {
namespace {

// A step is at least so long, or moves at least so many bytes of one stream: writers tell readers
// of what they have written about as often (client-sai/core/stream.h).
constexpr Duration kStepMin = Milliseconds(100);
constexpr uint64_t kStepBytesMin = uint64_t{1} << 20;

bool IsStream(const WorkflowFile& file) { return file.is_stream && IsOnTheStore(file); }

// Where step `step` of so many begins.
int64_t BeginOf(int64_t whole, int64_t step, int64_t steps) {
  return whole / steps * step + whole % steps * step / steps;
}

int64_t BytesOf(const WorkflowFile& file) {
  return static_cast<int64_t>(std::min<uint64_t>(file.size_bytes.value_or(0), INT64_MAX));
}

}  // namespace

bool HasStreams(const Workflow& workflow) { return std::ranges::any_of(workflow.files, IsStream); }

Workflow WithoutStreams(Workflow workflow) {
  for (WorkflowFile& file : workflow.files) {
    if (!file.is_stream) continue;
    file.is_stream = false;
    file.hints.erase("stream");
  }
  for (Task& task : workflow.tasks) task.stream_writers.clear();
  return workflow;
}

std::vector<TaskOperation> StreamSteps(const Workflow& workflow, const Task& task) {
  using Kind = TaskOperation::Kind;
  std::vector<TaskOperation> operations;
  std::vector<PathIndex> read, written;
  int64_t longest = 0;
  for (const PathIndex input : task.inputs) {
    const WorkflowFile& file = workflow.at(input);
    if (!IsOnTheStore(file)) continue;
    if (IsStream(file)) {
      read.push_back(input);
      longest = std::max(longest, BytesOf(file));
    } else {
      operations.push_back({{}, Kind::kRead, input, 0, static_cast<uint64_t>(BytesOf(file))});
    }
  }
  for (const PathIndex output : task.outputs) {
    if (!IsStream(workflow.at(output))) continue;
    written.push_back(output);
    longest = std::max(longest, BytesOf(workflow.at(output)));
  }
  if (!task.operations.empty() || (read.empty() && written.empty())) return {};
  const Duration compute = task.expected.value_or(Duration());
  const int64_t steps = std::clamp<int64_t>(
      std::max<int64_t>(longest / int64_t{kStepBytesMin}, compute.ns / kStepMin.ns), 1,
      kStreamStepsMax);
  const auto part_of = [&](PathIndex path, Kind kind, int64_t step) {
    const int64_t bytes = BytesOf(workflow.at(path));
    const int64_t begin = BeginOf(bytes, step, steps);
    const int64_t end = BeginOf(bytes, step + 1, steps);
    return TaskOperation{
        {}, kind, path, static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin)};
  };
  for (int64_t step = 0; step < steps; ++step) {
    for (const PathIndex path : read) operations.push_back(part_of(path, Kind::kRead, step));
    const int64_t begin = BeginOf(compute.ns, step, steps);
    operations.push_back(
        {Nanoseconds(BeginOf(compute.ns, step + 1, steps) - begin), Kind::kCompute, {}, 0, 0});
    for (const PathIndex path : written) operations.push_back(part_of(path, Kind::kWrite, step));
  }
  return operations;
}

}  // namespace mosa::predict
