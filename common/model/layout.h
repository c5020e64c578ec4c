// Layout: which nodes hold which bytes of a file.
//
// A layout is a list of segments in file order. Chunks form a grid over the whole file. Within a
// segment, the i-th chunk (the first may be partial) lies at stripe position i % width, and copy
// `copy` of that position is on node `nodes[copy * width + position]`. A file on one node is one
// segment of width 1. When a node is full, the bytes for which it has no room go to a new segment
// on other nodes; stored bytes do not move. Each node keeps its part in one sparse object, at the
// file's own offsets.
#ifndef MOSA_COMMON_MODEL_LAYOUT_H_
#define MOSA_COMMON_MODEL_LAYOUT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/ids.h"

namespace mosa {

// Segments begin at page boundaries, so that no page is split between nodes.
inline constexpr uint64_t kSegmentUnit = 4096;

struct Segment {
  // A byte offset, a multiple of kSegmentUnit. A segment ends where the next one begins; the last
  // has no end.
  uint64_t begin = 0;
  uint32_t width = 1;         // Stripe positions.
  std::vector<NodeId> nodes;  // copies() * width nodes; see above.

  uint32_t copies() const { return static_cast<uint32_t>(nodes.size()) / width; }
  bool operator==(const Segment&) const = default;
};

struct Layout {
  uint64_t chunk_bytes = 0;
  // Empty: not bound (nothing was written, or the bytes are inline).
  std::vector<Segment> segments;
  std::string reason;  // Why the policy chose this: policy, score, rejected nodes.

  bool bound() const { return !segments.empty(); }

  // The segment that holds byte `offset`. Precondition: bound().
  const Segment& SegmentAt(uint64_t offset) const;
  // The stripe position of byte `offset` in its segment. Preconditions: bound(), chunk_bytes > 0.
  uint64_t PositionAt(uint64_t offset) const;
  // The node that holds copy `copy` of byte `offset`. Preconditions: bound(), chunk_bytes > 0, copy
  // < the segment's copies().
  NodeId NodeAt(uint64_t offset, uint32_t copy = 0) const;
  // Where the segment that holds byte `offset` ends; UINT64_MAX for the last segment.
  uint64_t SegmentEnd(uint64_t offset) const;
  // All nodes in the layout, ascending, without duplicates.
  std::vector<NodeId> Nodes() const;
  // True if `node` holds a copy of every byte.
  bool HoldsAll(NodeId node) const;
  // True if one node holds the only copy of every byte: its object is the whole file.
  bool OnOneNode() const;

  // Assigns bytes [begin, end) to the nodes of `to`; `to.begin` is ignored. Bytes outside the range
  // stay where they are. Preconditions: bound(), chunk_bytes > 0, begin < end, both multiples of
  // kSegmentUnit (`end` may also be UINT64_MAX), `to` well formed.
  void Relocate(uint64_t begin, uint64_t end, Segment to);

  bool operator==(const Layout&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_LAYOUT_H_
