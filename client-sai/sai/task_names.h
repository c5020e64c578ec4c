// Which task a process belongs to: MOSA_TASK in its environment or its nearest ancestor's, else
// "sid:<session leader>:<command name>". Remembered per process until
// it is another one or has become another command. Thread-safe.
#ifndef MOSA_CLIENT_SAI_SAI_TASK_NAMES_H_
#define MOSA_CLIENT_SAI_SAI_TASK_NAMES_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace mosa::sai {

class TaskNames {
 public:
  // Empty if the process is gone.
  std::string Of(uint32_t pid) { return ProcessOf(pid).task; }

  struct Process {
    std::string task;
    std::string command;       // As the kernel calls it.
    uint64_t start_ticks = 0;  // With its number the process, for as long as the machine is up.
  };
  // The same, and which process it is.
  Process ProcessOf(uint32_t pid);

 private:
  struct Known {
    uint64_t start_ticks = 0;
    std::string command;
    std::string name;
    Process AsProcess() const { return {name, command, start_ticks}; }
    std::chrono::steady_clock::time_point checked;
  };
  static constexpr size_t kNamesMax = 4096;  // At the limit all are forgotten.
  std::mutex mutex_;
  std::unordered_map<uint32_t, Known> names_;  // By process id; guarded by mutex_.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_TASK_NAMES_H_
