// Staging: files that are copied out of the store before it ends. Plain values.
#ifndef MOSA_COMMON_MODEL_STAGING_H_
#define MOSA_COMMON_MODEL_STAGING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/ids.h"

namespace mosa {

// A file in the version that was copied out.
struct StagedFile {
  FileId file;
  uint64_t data_version = 0;
  bool operator==(const StagedFile&) const = default;
};

enum class StageOutcome : uint8_t {
  kStaged = 1,
  kChanged,  // The version has changed, or the file is gone.
  kBusy,     // Open for writing, or mounts have not yet said whether it is: ask again.
};

// A file that is to be kept and exists only in the store.
struct UnstagedFile {
  std::string path;
  FileId file;
  uint64_t size_bytes = 0;
  bool operator==(const UnstagedFile&) const = default;
};
struct UnstagedFiles {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<UnstagedFile> first;  // Limited by the request; ascending by id.
  uint64_t kept_files = 0;          // Files with lifetime=keep, staged or not.
  uint64_t all_files = 0;           // Files of any lifetime.
  uint64_t all_bytes = 0;
  bool operator==(const UnstagedFiles&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_STAGING_H_
