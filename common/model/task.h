// Names of tasks, by which mounts tell the manager who makes and reads files.
#ifndef MOSA_COMMON_MODEL_TASK_H_
#define MOSA_COMMON_MODEL_TASK_H_

#include <cstddef>

namespace mosa {

// Longer names are cut off.
inline constexpr size_t kTaskBytesMax = 1024;

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_TASK_H_
