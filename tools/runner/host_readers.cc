#include "tools/runner/host_readers.h"

#include "common/model/task_names.h"

namespace mosa::cli {

using predict::HostIndex;

void HostReaders::Start(const std::vector<bool>& lost) {
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    if (lost[i]) continue;
    const auto file = files_.Next(HostIndex{i});
    if (!file) continue;
    TaskCommand command;
    command.host = &hosts_[i];
    // What it reads must not leave its host.
    command.argv = {"sh", "-c", "exec nice -n 19 cat -- \"$1\" > /dev/null", "sh",
                    workflow_.at(*file).path};
    command.environment["MOSA_TASK"] = kReadAheadTask;
    command.output_path = command.error_path = "/dev/null";
    const auto pid = processes_.Start(command);
    if (pid.ok())
      readers_.emplace(*pid, HostIndex{i});
    else
      files_.End(HostIndex{i}, false);
  }
}

void HostReaders::Lose(HostIndex host) {
  for (const auto& [pid, on] : readers_)
    if (on == host) processes_.Kill(pid);
}

bool HostReaders::Handle(const TaskProcesses::Ended& ended) {
  const auto reader = readers_.find(ended.pid);
  if (reader == readers_.end()) return false;
  files_.End(reader->second, ended.exit_code == 0 && ended.signal == 0);
  readers_.erase(reader);
  return true;
}

}  // namespace mosa::cli
