#include "common/model/layout.h"

#include <algorithm>

#include "common/base/check.h"

namespace mosa {

const Segment& Layout::SegmentOf(ChunkIndex chunk) const {
  MOSA_CHECK(bound());
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), chunk,
                       [](ChunkIndex c, const Segment& s) { return c < s.first_chunk; });
  return after == segments.begin() ? segments.front() : *(after - 1);
}

NodeId Layout::NodeOf(ChunkIndex chunk, uint32_t copy) const {
  const Segment& segment = SegmentOf(chunk);
  MOSA_CHECK(copy < segment.copies());
  const uint64_t position = (chunk.value - segment.first_chunk.value) % segment.width;
  return segment.nodes[copy * segment.width + position];
}

std::vector<NodeId> Layout::Nodes() const {
  std::vector<NodeId> nodes;
  for (const Segment& segment : segments)
    nodes.insert(nodes.end(), segment.nodes.begin(), segment.nodes.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool Layout::OnOneNode() const {
  if (!bound()) return false;
  for (const Segment& segment : segments) {
    if (segment.nodes.size() != 1 || segment.nodes[0] != segments[0].nodes[0]) return false;
  }
  return true;
}

}  // namespace mosa
