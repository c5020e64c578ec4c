// The processes of a run's tasks: started on a host, watched, ended with all that they started.
//
// Each task is a session of its own. When its first process ends, what it left behind in its
// process group ends too; what moved to another group ends with the run at the latest. If this
// process dies, so do they. One thread; it becomes the reaper of its descendants' orphans.
#ifndef MOSA_TOOLS_MOSA_RUN_PROCESS_H_
#define MOSA_TOOLS_MOSA_RUN_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "tools/mosa/run_hosts.h"

namespace mosa::cli {

struct TaskCommand {
  const RunHost* host = nullptr;
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // Besides the host's and our own.
  std::string output_path;
  std::string error_path;
};

class TaskProcesses {
 public:
  TaskProcesses();
  // Ends whatever still runs, without grace.
  ~TaskProcesses();
  TaskProcesses(const TaskProcesses&) = delete;
  TaskProcesses& operator=(const TaskProcesses&) = delete;

  // Names the process of a started task. Whatever keeps the command itself from running is an exit
  // code 126 or 127 with a sentence in its error file, as shells do.
  Result<pid_t> Start(const TaskCommand& command);

  struct Ended {
    pid_t pid = 0;
    int exit_code = 0;  // Of the signal that ended it: 128 + signal, as shells do.
    int signal = 0;
  };
  // Waits at most that long for one or more to end; less if a signal comes.
  std::vector<Ended> Wait(Duration at_most);

  // Ends one task's processes; Wait() still reports it.
  void Kill(pid_t pid);
  // Ends all: TERM, at most `grace`, KILL. Reports those that were running.
  std::vector<Ended> EndAll(Duration grace);

  size_t running() const { return running_.size(); }

 private:
  struct Running {
    UniqueFd pidfd;
    UniqueFd lifeline;  // Of a task elsewhere: it ends when this is closed.
  };
  void SignalGroup(pid_t pid, int signal);
  std::vector<Ended> Reap();
  void EndOrphans();

  std::map<pid_t, Running> running_;
};

// As one word of a shell.
std::string Quote(const std::string& word);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_RUN_PROCESS_H_
