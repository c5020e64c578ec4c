// The attributes of a file, as stat(2) shows them. Plain values. Times are in the manager's time
// base.
#ifndef MOSA_COMMON_MODEL_ATTRIBUTES_H_
#define MOSA_COMMON_MODEL_ATTRIBUTES_H_

#include <cstdint>

#include "common/base/time.h"

namespace mosa {

enum class FileType : uint8_t {
  kRegular = 1,
  kDirectory,
  kSymlink,
  kFifo,
  kSocket,
  kCharacterDevice,
  kBlockDevice
};

// Where a file with the hint stream=append is in its life. Programs that read it wait at its end
// for more, until it has ended.
enum class StreamState : uint8_t {
  kNone = 0,  // No stream: reads end at the file's end.
  kExpected,  // Nobody has opened it for writing yet.
  kOpen,      // Somebody has it open for writing.
  kEnded,     // Everybody who wrote has closed it.
  kBroken,    // A mount that had it open for writing is gone, so bytes may be missing.
};
constexpr bool MayGrow(StreamState stream) {
  return stream == StreamState::kExpected || stream == StreamState::kOpen;
}

struct Attributes {
  FileType type = FileType::kRegular;
  uint32_t permissions = 0;  // The low 12 bits of st_mode.
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t link_count = 0;
  uint32_t device = 0;  // st_rdev of device files.
  // A symlink's is the length of its target, a directory's its number of entries.
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;  // Bytes that the file occupies: st_blocks * 512.
  Time access_time;
  Time modify_time;
  Time change_time;
  Time birth_time;
  // Counts commits of this file's bytes. Pages cached under one version stay valid until it
  // changes.
  uint64_t data_version = 0;
  // Those of a shared directory ("Shared directories" in session.h): the session is not told when
  // they change.
  bool shared = false;
  StreamState stream = StreamState::kNone;
  bool operator==(const Attributes&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_ATTRIBUTES_H_
