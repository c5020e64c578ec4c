// Which task a process belongs to: MOSA_TASK in its environment or its nearest ancestor's, else
// "sid:<session leader>:<command name>". Remembered per process and start time. Thread-safe.
#ifndef MOSA_CLIENT_SAI_SAI_TASK_NAMES_H_
#define MOSA_CLIENT_SAI_SAI_TASK_NAMES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace mosa::sai {

class TaskNames {
 public:
  // Empty if the process is gone.
  std::string Of(uint32_t pid);

 private:
  static constexpr size_t kNamesMax = 4096;  // At the limit all are forgotten.
  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint64_t>, std::string> names_;  // Guarded by mutex_.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_TASK_NAMES_H_
