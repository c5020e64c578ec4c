// What nodes have put aside, as people see it, and what becomes of it. Plain values.
#ifndef MOSA_COMMON_MODEL_ADOPTION_H_
#define MOSA_COMMON_MODEL_ADOPTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa {

// Files in one question or answer.
inline constexpr size_t kAdoptedFilesMax = 10'000;

// What one node has put aside of a file.
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
  std::string path;     // The file that was made; empty if none was.
  std::string refusal;  // Why nothing was done; empty if it was.
  bool operator==(const AdoptOutcome&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_ADOPTION_H_
