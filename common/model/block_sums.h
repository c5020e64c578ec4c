// What a node says of the checksum blocks of a part of an object, so that another one can tell
// which of them it must fetch. Plain values.
#ifndef MOSA_COMMON_MODEL_BLOCK_SUMS_H_
#define MOSA_COMMON_MODEL_BLOCK_SUMS_H_

#include <cstdint>
#include <vector>

#include "common/model/ids.h"
#include "common/model/ranges.h"

namespace mosa {

// One request covers at most this much of the file.
inline constexpr uint64_t kSumsBytesMax = uint64_t{64} << 20;
// Limits for an answer, and for the ranges that a held question waits for.
inline constexpr size_t kChangedRangesMax = 256;
inline constexpr size_t kAboutRangesMax = 64;

struct BlockSum {
  uint32_t crc = 0;       // Covers the block as far as the object reaches; 0 without data.
  bool has_data = false;  // Else it is a hole, or lies beyond the object's end.
  bool settled = false;   // For a copy: what it must hold by its order, within the asked
                          // part of the block, is there and will not change.
  bool damaged = false;   // Known to be corrupt; there is no checksum.
  bool operator==(const BlockSum&) const = default;
};

struct BlockSums {
  uint64_t object_bytes = 0;     // Where the object ends.
  std::vector<BlockSum> blocks;  // One per block that the asked range touches.
  // Nobody can change the object but through the node: no program of its host has it open for
  // writing.
  bool quiet = false;
  uint64_t incarnation = 0;  // The node store's incarnation.
  // Counts changes of the object; `changed` is what has changed after the count that the asker
  // named, up to this one; with `all_changed` it may be anything.
  uint64_t change = 0;
  bool all_changed = false;
  std::vector<ByteRange> changed;
  // For a copy that is being made: the number of its order (0: it has none), and whether nothing
  // more will come beyond `object_bytes`.
  uint64_t order = 0;
  bool tail_settled = false;
  bool absent = false;  // There is no such object; all else is as for an empty one.
  bool operator==(const BlockSums&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_BLOCK_SUMS_H_
