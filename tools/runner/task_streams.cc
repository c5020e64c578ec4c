#include "tools/runner/task_streams.h"

#include <algorithm>

namespace mosa::cli {

using predict::PathIndex;
using predict::TaskIndex;

bool TaskStreams::IsUsedBy(const RunRecord& record) {
  return record.system == predict::System::kWass && record.hosts.front().mosa;
}

bool TaskStreams::IsBeingWritten(PathIndex file) const {
  const auto& writer = workflow_.at(file).producer;
  return workflow_.at(file).is_stream && writer &&
         execution_.state(*writer) == predict::TaskState::kRunning;
}

std::vector<std::string> TaskStreams::Of(TaskIndex task) const {
  std::vector<PathIndex> streams;
  if (!execution_.uses_streams()) return {};
  for (const PathIndex output : workflow_.at(task).outputs)
    if (workflow_.at(output).is_stream) streams.push_back(output);
  return PathsOf(workflow_, streams);
}

Status TaskStreams::Begin(TaskIndex task, HostMount& mount) const {
  const std::vector<std::string> streams = Of(task);
  return streams.empty() ? OkStatus() : mount.BeginStreams(streams);
}

Status TaskStreams::End(TaskIndex task, HostMount& mount) const {
  const std::vector<std::string> streams = Of(task);
  return streams.empty() ? OkStatus() : mount.EndStreams(streams);
}

}  // namespace mosa::cli
