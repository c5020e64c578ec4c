// One file copied whole or not at all: it is written under a temporary name, read back, and then
// renamed. Holes stay holes; mode, time of change and, for root, the owner are the source's.
//
// A copy's time of access is its source's time of status change (st_ctime). Every change of a file
// gives it another one, and no program can set it: so a later run knows a copy of just this state.
//
// Errors name the file: ResourceExhausted if there is no room, Aborted if the source changed
// meanwhile, DataLoss if bytes cannot be read or come back different, FailedPrecondition if
// something else is in the target's place. On failure nothing is left behind.
#ifndef MOSA_TOOLS_STAGE_COPY_H_
#define MOSA_TOOLS_STAGE_COPY_H_

#include <sys/stat.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/hint_values.h"

namespace mosa::cli {

// A system call on `path` has failed, by errno: "cannot read /x: Permission denied".
Status Cannot(const std::string& what, const std::string& path);

struct CopyJob {
  std::string source;
  std::string target;
  std::string temporary;         // A new name in the target's directory.
  std::vector<HintValue> hints;  // Set on the new file before it has bytes.
  bool sync = false;             // The target's file system keeps bytes back until fsync.
  bool compare = false;          // Bytes decide whether the target is equal: not size and times.
};
nlohmann::json ToJson(const CopyJob& job);
CopyJob CopyJobFrom(const nlohmann::json& json);

struct CopyResult {
  uint64_t size_bytes = 0;
  bool skipped = false;            // It was there already.
  std::optional<uint32_t> crc32c;  // All bytes, holes as zeros; absent if they were not read.
  uint64_t inode = 0;              // The file that was found under the source's name.
};

// The source is a regular file or a symbolic link. What is there already is left as it is if it is
// a copy of this state of the source, or has the same size, time of change and bytes.
Result<CopyResult> CopyFile(const CopyJob& job);

// Gives an open file or directory the owner, mode and times of `source`. Where the owner cannot be
// set, setuid and setgid are left out.
Status TakeOver(int fd, const std::string& path, const struct stat& source);

// Makes renames in these directories durable.
Status SyncDirectories(const std::vector<std::string>& directories);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_STAGE_COPY_H_
