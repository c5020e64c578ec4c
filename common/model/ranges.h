// Arithmetic on byte ranges: splits a range of a file by the layout, and keeps sets of bytes. Pure
// values.
#ifndef MOSA_COMMON_MODEL_RANGES_H_
#define MOSA_COMMON_MODEL_RANGES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/model/ids.h"
#include "common/model/layout.h"

namespace mosa {

// Bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
  bool operator==(const ByteRange&) const = default;
};

inline constexpr uint64_t kPageBytes = 4096;

constexpr uint64_t RoundUpToPage(uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// The smallest range of whole pages that contains `range`.
ByteRange WidenToPages(ByteRange range);

// A contiguous part of a range that lies in one set of objects.
struct Piece {
  ByteRange range;
  std::vector<NodeId> nodes;  // One per copy, in the layout's order.
  bool operator==(const Piece&) const = default;
};

// Returns the first piece of `range`, at most `piece_bytes_max` long. Takes time for the layout's
// positions, however long the range is. Preconditions: layout.bound(), layout.chunk_bytes > 0,
// range not empty.
Piece FirstPiece(const Layout& layout, ByteRange range, uint64_t piece_bytes_max = UINT64_MAX);
// Returns the pieces of `range` in file order, each at most `piece_bytes_max` long. Adjacent bytes
// on the same nodes form one piece. Meant for ranges of a few MiB: a striped file has a piece per
// chunk.
std::vector<Piece> SplitRange(const Layout& layout, ByteRange range,
                              uint64_t piece_bytes_max = UINT64_MAX);

// Returns the nodes that hold bytes of `range`, ascending, without duplicates. Preconditions as
// above.
std::vector<NodeId> NodesOf(const Layout& layout, ByteRange range);

// A set of bytes, kept as disjoint intervals. One owner.
class IntervalSet {
 public:
  void Add(ByteRange range);
  void Remove(ByteRange range);
  void Clear() { intervals_.clear(); }
  // The parts of `range` outside the set, ascending.
  std::vector<ByteRange> Missing(ByteRange range) const;
  uint64_t MissingBytes(ByteRange range) const;
  bool empty() const { return intervals_.empty(); }
  // True if some byte of `range` is in the set.
  bool Overlaps(ByteRange range) const;
  // The first interval that ends after `offset`, without the part before `offset`.
  std::optional<ByteRange> NextFrom(uint64_t offset) const;
  // All intervals, ascending.
  std::vector<ByteRange> All() const;

 private:
  std::map<uint64_t, uint64_t> intervals_;  // Begin -> end; neither overlapping nor adjacent.
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_RANGES_H_
