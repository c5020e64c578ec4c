// Names of tasks, as MOSA_TASK has them: of processes that are no tasks of a workflow, and of runs
// whose tasks are reported to the store (MOSA_TASK=RUN/TASK).
#ifndef MOSA_COMMON_MODEL_TASK_NAMES_H_
#define MOSA_COMMON_MODEL_TASK_NAMES_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace mosa {

// Processes that copy files out, and those that read files ahead for tasks.
inline constexpr std::string_view kStageTask = "mosa-stage";
inline constexpr std::string_view kReadAheadTask = "mosa-read-ahead";

// Whether the task counts as a reader of a file.
inline bool CountsAsReader(std::string_view task) {
  return task != kStageTask && task != kReadAheadTask;
}

// `mosa run` names its runs "mosa-run-" and 16 hexadecimal digits.
inline constexpr std::string_view kOwnRunPrefix = "mosa-run-";
inline constexpr size_t kOwnRunDigits = 16;

// `number` must be random: a store must not see a name twice.
inline std::string OwnRunName(uint64_t number) {
  return fmt::format("{}{:016x}", kOwnRunPrefix, number);
}

// The task's id in its workflow: MOSA_TASK without the name of a run of `mosa run`.
inline std::string_view WithoutOwnRun(std::string_view task) {
  const size_t size = kOwnRunPrefix.size() + kOwnRunDigits;
  if (!task.starts_with(kOwnRunPrefix) || task.size() <= size || task[size] != '/') return task;
  const std::string_view digits = task.substr(kOwnRunPrefix.size(), kOwnRunDigits);
  const bool own = std::all_of(digits.begin(), digits.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return own ? task.substr(size + 1) : task;
}

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_TASK_NAMES_H_
