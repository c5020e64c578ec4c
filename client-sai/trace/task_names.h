// Finds the task of a process: MOSA_TASK in its environment or that of its nearest ancestor, else
// "sid:<session leader>:<command name>". Cached per process until its id is reused or it executes
// another command. Thread-safe.
#ifndef MOSA_CLIENT_SAI_TRACE_TASK_NAMES_H_
#define MOSA_CLIENT_SAI_TRACE_TASK_NAMES_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/mutex.h"

namespace mosa::sai {

struct ProcessStat;

class TaskNames {
 public:
  // Empty if the process is gone.
  std::string Of(uint32_t pid) { return ProcessOf(pid).task; }
  // False of a name that was made up from session and command, because MOSA_TASK is not set.
  static bool IsGiven(std::string_view task) { return !task.empty() && !task.starts_with(kMadeUp); }

  struct Process {
    std::string task;
    std::string command;       // The kernel's name for it.
    uint64_t start_ticks = 0;  // With the pid, identifies the process until the machine reboots.
  };
  // Returns the task, and identifies the process.
  Process ProcessOf(uint32_t pid);
  // Returns the process of the thread, or the thread id itself if the thread is gone.
  static uint32_t ProcessOfThread(uint32_t thread);

 private:
  struct Known {
    uint64_t start_ticks = 0;
    std::string command;
    uint32_t session = 0;
    std::optional<std::string> variable;  // From the process or its nearest ancestor that has it.
    std::chrono::steady_clock::time_point checked;
    Process AsProcess() const;
  };
  std::optional<std::string> FindVariable(uint32_t pid, const ProcessStat& stat,
                                          int ancestors_left);
  Known KnownOf(uint32_t pid);
  Known Remember(uint32_t pid, const ProcessStat& stat, int ancestors_left);

  static constexpr std::string_view kMadeUp = "sid:";
  static constexpr size_t kNamesMax = 4096;  // At the limit, all are forgotten.
  SystemMutex mutex_;
  std::unordered_map<uint32_t, Known> names_ ABSL_GUARDED_BY(mutex_);  // By process id.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_TRACE_TASK_NAMES_H_
