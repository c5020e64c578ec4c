// Starting, watching and ending processes, such that a process number that was given to another
// process in the meantime is never mistaken for ours.
//
// Functions may be called from one thread only (they fork).
#ifndef MOSA_TOOLS_CLUSTER_PROCESS_H_
#define MOSA_TOOLS_CLUSTER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa::cluster {

// A process for as long as the machine is up: numbers are used again, with another start.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // Since boot, as in /proc/PID/stat.
};

// Its start, or 0 if there is no such process or it has ended and was not yet waited for.
uint64_t StartTicks(pid_t pid);
bool IsAlive(const ProcessId& process);

// Sends `signal` if it is alive. Never reaches another process with its number.
void Signal(const ProcessId& process, int signal);

// Signals all (TERM), waits at most `grace` for all of them, then kills the rest.
void EndAll(const std::vector<ProcessId>& processes, Duration grace);

// Runs a program to its end with `input` as its standard input; returns what it printed.
// FailedPrecondition with the last line of its errors if it did not succeed, NotFound if it is not
// installed.
Result<std::string> RunCommand(const std::vector<std::string>& argv, const std::string& input = "");

struct DaemonCommand {
  std::vector<std::string> argv;
  std::string net_namespace;  // A namespace's name; empty: the caller's.
  std::string output_path;    // Its standard output and error are appended here.
};

// Starts a process in a session of its own. It begins to run `argv` only after `record` has
// returned OK, and ends by itself if this process dies before: no process ever runs unrecorded.
Result<ProcessId> SpawnDaemon(const DaemonCommand& command,
                              const std::function<Status(ProcessId)>& record);

// Enters the network namespace of that name (/run/netns). Only the calling process moves.
Status EnterNetNamespace(const std::string& name);

// Processes in the network namespace of that name, but for this one.
std::vector<ProcessId> ProcessesInNetNamespace(const std::string& name);

// While one exists, INT, TERM and HUP only make Interrupted() true.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  // The signal that came first, or 0.
  static int Interrupted();
};

// Waits about `time`, less if a signal comes.
void Pause(Duration time);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_PROCESS_H_
