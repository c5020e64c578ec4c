// Starts, watches and ends processes, such that a process with a reused number is never mistaken
// for ours.
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

// Identifies a process for as long as the machine is up: numbers are reused, with another start.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // Since boot, as in /proc/PID/stat.
};

// The start of a process; 0 if it does not exist, or has ended and was not yet waited for.
uint64_t StartTicks(pid_t pid);
bool IsAlive(const ProcessId& process);

// Sends `signal` if the process is alive. Never reaches another process with its number.
void Signal(const ProcessId& process, int signal);

// Signals all (TERM), waits at most `grace` for all of them, then kills the rest.
void EndAll(const std::vector<ProcessId>& processes, Duration grace);

// Runs a program to its end with `input` as its standard input; returns its output.
// FailedPrecondition, with the last line of its errors, if it fails; NotFound if it is not
// installed.
Result<std::string> RunCommand(const std::vector<std::string>& argv, const std::string& input = "");

struct DaemonCommand {
  std::vector<std::string> argv;
  std::string net_namespace;  // A namespace's name; empty: the caller's.
  std::string output_path;    // Its standard output and error are appended here.
};

// Starts a process in a session of its own. It runs `argv` only after `record` has returned OK, and
// ends by itself if this process dies before: no process ever runs unrecorded.
Result<ProcessId> SpawnDaemon(const DaemonCommand& command,
                              const std::function<Status(ProcessId)>& record);

// Enters the network namespace of that name (/run/netns). Moves only the calling process.
Status EnterNetNamespace(const std::string& name);

// Processes in the network namespace of that name, except this one.
std::vector<ProcessId> ProcessesInNetNamespace(const std::string& name);

// While one exists, INT, TERM and HUP only set Interrupted().
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  // The first signal, or 0.
  static int Interrupted();
};

// Waits about `time`, or less if a signal comes.
void Pause(Duration time);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_PROCESS_H_
