// Processes that read files ahead on their hosts, as ReadAhead decides. They run with the least
// priority, and not as tasks, so that they do not count as readers of files that go after so many.
// One thread.
#ifndef MOSA_TOOLS_RUNNER_HOST_READERS_H_
#define MOSA_TOOLS_RUNNER_HOST_READERS_H_

#include <sys/types.h>

#include <map>
#include <vector>

#include "predictor/workflow/read_ahead.h"
#include "tools/hosts/hosts.h"
#include "tools/hosts/task_processes.h"

namespace mosa::cli {

class HostReaders {
 public:
  // All arguments must outlive this.
  HostReaders(const predict::Workflow& workflow, const std::vector<RunHost>& hosts,
              TaskProcesses& processes)
      : workflow_(workflow),
        hosts_(hosts),
        processes_(processes),
        files_(workflow, static_cast<uint32_t>(hosts.size())) {}

  // Which files are there, and which tasks have started.
  predict::ReadAhead& files() { return files_; }
  // Starts a reader on each host that has none and should have one. `lost`: by host.
  void Start(const std::vector<bool>& lost);
  // Ends the reader on a host that is lost.
  void Lose(predict::HostIndex host);
  // True if it was a reader.
  bool Handle(const TaskProcesses::Ended& ended);

 private:
  const predict::Workflow& workflow_;
  const std::vector<RunHost>& hosts_;
  TaskProcesses& processes_;
  predict::ReadAhead files_;
  std::map<pid_t, predict::HostIndex> readers_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_HOST_READERS_H_
