// A node's description of the checksum blocks in a range of an object. A copying node uses it to
// decide which blocks to fetch. Plain values.
#ifndef MOSA_COMMON_MODEL_BLOCK_SUMS_H_
#define MOSA_COMMON_MODEL_BLOCK_SUMS_H_

#include <cstdint>
#include <vector>

#include "common/model/ids.h"
#include "common/model/ranges.h"

namespace mosa {

// Limit on the file range of one request.
inline constexpr uint64_t kSumsBytesMax = uint64_t{64} << 20;
// Limits on changed ranges in a reply, and on the ranges that a held request waits for.
inline constexpr size_t kChangedRangesMax = 256;
inline constexpr size_t kAboutRangesMax = 64;

struct BlockSum {
  uint32_t crc = 0;       // Covers the block up to the object's end; 0 without data.
  bool has_data = false;  // False: a hole, or beyond the object's end.
  // For a copy: all that its order assigns to it in the asked part of the block is present and
  // final.
  bool settled = false;
  bool damaged = false;  // Known to be corrupt; `crc` is not valid.
  bool operator==(const BlockSum&) const = default;
};

struct BlockSums {
  uint64_t object_bytes = 0;     // The object's size.
  std::vector<BlockSum> blocks;  // One per block that the asked range touches.
  // Only the node can change the object: no program on its host has it open for writing.
  bool quiet = false;
  uint64_t incarnation = 0;  // Incarnation of the node's store.
  // Counts changes of the object. `changed` lists the changes after the count that the request
  // named, up to `change`. With `all_changed`, any byte may have changed.
  uint64_t change = 0;
  bool all_changed = false;
  std::vector<ByteRange> changed;
  // For a copy in progress: the number of its order (0: none), and whether nothing more will arrive
  // beyond `object_bytes`.
  uint64_t order = 0;
  bool tail_settled = false;
  bool absent = false;  // The object does not exist; the other fields describe an empty one.
  bool operator==(const BlockSums&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_BLOCK_SUMS_H_
