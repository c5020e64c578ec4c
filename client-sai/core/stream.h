// What mounts do with files that are read while they are written (the hint stream=append). Pure.
#ifndef MOSA_CLIENT_SAI_CORE_STREAM_H_
#define MOSA_CLIENT_SAI_CORE_STREAM_H_

#include <cstdint>

#include "common/base/time.h"
#include "common/model/attributes.h"

namespace mosa::sai {

// A writer tells the manager of what it has written after so many bytes, and at most so often else.
inline constexpr uint64_t kPublishBytes = uint64_t{1} << 20;
inline constexpr Duration kPublishAfter = Milliseconds(100);

// True if an open of a file in this state reads and writes past the kernel's pages, which would end
// at the size that the kernel knows.
constexpr bool OpensAsStream(StreamState stream, bool write) {
  if (write) return stream != StreamState::kNone;
  return MayGrow(stream) || stream == StreamState::kBroken;
}

// What a read at the end of the file does.
enum class AtEnd : uint8_t { kEnds, kWaits, kFails };
constexpr AtEnd ReadAtEnd(StreamState stream) {
  if (stream == StreamState::kBroken) return AtEnd::kFails;
  return MayGrow(stream) ? AtEnd::kWaits : AtEnd::kEnds;
}

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_STREAM_H_
