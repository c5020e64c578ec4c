// Files that are copied out of the store before it ends. Plain values.
#ifndef MOSA_COMMON_MODEL_STAGING_H_
#define MOSA_COMMON_MODEL_STAGING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/ids.h"

namespace mosa {

// MOSA_TASK of what copies files out: it is no reader of them.
inline constexpr std::string_view kStageTask = "mosa-stage";

// A file as it was copied out.
struct StagedFile {
  FileId file;
  uint64_t data_version = 0;
  bool operator==(const StagedFile&) const = default;
};

enum class StageOutcome : uint8_t {
  kStaged = 1,
  kChanged,  // It is another version by now, or gone.
  kBusy,     // It is open for writing, or mounts are being asked whether it is: ask again.
};

// A file that is to be kept, and is nowhere but in the store.
struct UnstagedFile {
  std::string path;
  FileId file;
  uint64_t size_bytes = 0;
  bool operator==(const UnstagedFile&) const = default;
};
struct UnstagedFiles {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<UnstagedFile> first;  // At most as many as were asked for, ascending by id.
  uint64_t kept_files = 0;          // With lifetime=keep, also if they are elsewhere too.
  uint64_t all_files = 0;           // Whatever their lifetime.
  uint64_t all_bytes = 0;
  bool operator==(const UnstagedFiles&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_STAGING_H_
