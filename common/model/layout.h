// Layout: which nodes hold which bytes of a file.
//
// A layout is a list of segments in file order. Chunks are a grid over the whole file; within a
// segment, its i-th chunk (the first may be cut) lies at stripe position i % width, and every copy
// of that position is on the node `nodes[copy * width + position]`. A file on one node is one
// segment of width 1. When a node is full, the bytes for which it has no room go to a segment on
// other nodes; nothing that is stored moves. On each node, what it holds is kept in one sparse
// object at the file's own offsets.
#ifndef MOSA_COMMON_MODEL_LAYOUT_H_
#define MOSA_COMMON_MODEL_LAYOUT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/ids.h"

namespace mosa {

// Segments begin at whole pages, so that no page is on two nodes.
inline constexpr uint64_t kSegmentUnit = 4096;

struct Segment {
  uint64_t begin = 0;  // In bytes, a multiple of kSegmentUnit. The segment reaches to the next
                       // one's begin, the last one to the end.
  uint32_t width = 1;  // Stripe positions.
  std::vector<NodeId> nodes;  // copies() * width of them; see above.

  uint32_t copies() const { return static_cast<uint32_t>(nodes.size()) / width; }
  bool operator==(const Segment&) const = default;
};

struct Layout {
  uint64_t chunk_bytes = 0;
  std::vector<Segment>
      segments;        // Empty: not bound yet (nothing written, or the bytes are inline).
  std::string reason;  // Why the policy chose this: policy, score, what was rejected.

  bool bound() const { return !segments.empty(); }

  // The segment that holds byte `offset`. Precondition: bound().
  const Segment& SegmentAt(uint64_t offset) const;
  // The stripe position of byte `offset` in its segment. Preconditions: as above, chunk_bytes > 0.
  uint64_t PositionAt(uint64_t offset) const;
  // The node that holds copy `copy` of byte `offset`. Preconditions: as above, copy < the segment's
  // copies().
  NodeId NodeAt(uint64_t offset, uint32_t copy = 0) const;
  // Where the segment of byte `offset` ends; UINT64_MAX for the last.
  uint64_t SegmentEnd(uint64_t offset) const;
  // Every node named, ascending, each once.
  std::vector<NodeId> Nodes() const;
  // True if `node` has a copy of every byte.
  bool HoldsAll(NodeId node) const;
  // True if every chunk has its only copy on one node: the file is one plain file there.
  bool OnOneNode() const;

  // Puts bytes [begin, end) on the nodes of `to`, whose own begin does not count; what is on either
  // side stays where it is. Preconditions: bound(), chunk_bytes > 0, begin < end, both multiples of
  // kSegmentUnit or `end` UINT64_MAX, `to` well formed.
  void Relocate(uint64_t begin, uint64_t end, Segment to);

  bool operator==(const Layout&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_LAYOUT_H_
