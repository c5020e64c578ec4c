// The process above a task's: it sees to it that the task ends with all that it started, whatever
// becomes of the runner.
//
// It is the reaper of the task's orphans, and reads a pipe, the lifeline, of which the runner alone
// has the other end. One byte there asks the task to end; the end of the pipe, for which the runner
// need only die, ends it. Once the task's first process has ended, by itself or not, all that
// descends from it is killed; then the keeper ends as that process did.
#ifndef MOSA_TOOLS_HOSTS_KEEPER_H_
#define MOSA_TOOLS_HOSTS_KEEPER_H_

#include <functional>

namespace mosa::cli {

struct Kept {
  int lifeline = -1;
  // Writing end of the standard input of a task elsewhere, which ends when this is closed. It is
  // given the time for that before the command that reaches it is ended. -1: the task is here.
  int remote_input = -1;
  // Stays open as long as the keeper lives, and nobody else here keeps it open. -1: nothing.
  int held = -1;
};

// For a process that was forked to be the keeper. `become_task` runs in a child of it.
[[noreturn]] void KeepTask(const Kept& kept, const std::function<void()>& become_task);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_KEEPER_H_
