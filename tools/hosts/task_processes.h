// The processes of a run's tasks: started on a host, watched, ended with all that they started.
//
// Each task has a keeper of its own (keeper.h). When its first process ends, what it left
// behind ends too; elsewhere, what it left in its process group. If this process dies, so do they.
// One thread.
#ifndef MOSA_TOOLS_HOSTS_TASK_PROCESSES_H_
#define MOSA_TOOLS_HOSTS_TASK_PROCESSES_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "tools/hosts/hosts.h"

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
  // `held` is a descriptor that stays open until the last task has ended, even if this process is
  // killed: a lock on it says more than that this process lives. -1: none.
  explicit TaskProcesses(int held = -1) : held_(held) {}
  // Ends whatever still runs, without grace.
  ~TaskProcesses();
  TaskProcesses(const TaskProcesses&) = delete;
  TaskProcesses& operator=(const TaskProcesses&) = delete;

  // Names the started task. Whatever keeps the command itself from running is an exit code 126 or
  // 127 with a sentence in its error file, as shells do.
  Result<pid_t> Start(const TaskCommand& command);

  struct Ended {
    pid_t pid = 0;
    int exit_code = 0;  // If a signal ended it: 128 + signal, as in shells.
    int signal = 0;
    Duration processor;  // User and system time of it and of all children that ended here.
  };
  // Waits at most that long for one or more to end; less if a signal comes.
  std::vector<Ended> Wait(Duration at_most);

  // Ends one task's processes; Wait() still reports it.
  void Kill(pid_t pid);
  // Asks all to end, and ends what has not after `grace`. Reports those that were running.
  std::vector<Ended> EndAll(Duration grace);

  size_t running() const { return running_.size(); }

 private:
  struct Running {
    UniqueFd pidfd;
    UniqueFd lifeline;
  };
  std::vector<Ended> Reap();

  const int held_;
  std::map<pid_t, Running> running_;  // By the keeper's number.
};

// As one word of a shell.
std::string Quote(const std::string& word);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_TASK_PROCESSES_H_
