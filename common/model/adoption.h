// Put-aside objects as users see them, and the outcome of adopting them. Plain values.
#ifndef MOSA_COMMON_MODEL_ADOPTION_H_
#define MOSA_COMMON_MODEL_ADOPTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa {

// Limit on files in one request or reply.
inline constexpr size_t kAdoptedFilesMax = 10'000;

// The part of a file that one node has put aside.
struct AsidePart {
  std::string node_name;
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  Time modified;  // In the node's clock.
  bool operator==(const AsidePart&) const = default;
};
struct AsideFile {
  FileId file;
  std::vector<AsidePart> parts;
  bool operator==(const AsideFile&) const = default;
};

struct AdoptOutcome {
  std::string path;     // The file that was created; empty if none was.
  std::string refusal;  // Why nothing was done; empty on success.
  bool operator==(const AdoptOutcome&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_ADOPTION_H_
