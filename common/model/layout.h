// Layout: which nodes hold which chunks of a file.
//
// A layout is a list of segments in file order. Within a segment, chunk i of the segment lies at
// stripe position i % width; every copy of that position is on the node `nodes[copy * width +
// position]`. A file on one node is one segment of width 1. When a node fills up, a new segment
// begins on other nodes, and what is stored from its first chunk on moves there. On each node, the
// chunks that it holds are kept in one sparse object at the file's own offsets.
#ifndef MOSA_COMMON_MODEL_LAYOUT_H_
#define MOSA_COMMON_MODEL_LAYOUT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/ids.h"

namespace mosa {

struct Segment {
  ChunkIndex first_chunk;  // The segment reaches to the next segment's first chunk, the last one to
                           // the end.
  uint32_t width = 1;      // Stripe positions.
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

  // The segment that holds `chunk`. Precondition: bound().
  const Segment& SegmentOf(ChunkIndex chunk) const;
  // The node that holds copy `copy` of `chunk`. Precondition: bound(), copy < the segment's
  // copies().
  NodeId NodeOf(ChunkIndex chunk, uint32_t copy = 0) const;
  // Every node named, ascending, each once.
  std::vector<NodeId> Nodes() const;
  // True if every chunk has its only copy on one node: the file is one plain file there.
  bool OnOneNode() const;

  bool operator==(const Layout&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_LAYOUT_H_
