#include "common/model/node_bytes.h"

#include <algorithm>

namespace mosa {
namespace {

// The number of bytes of stripe position `position` in [begin, end).
uint64_t PositionBytes(uint64_t begin, uint64_t end, uint64_t chunk_bytes, uint32_t width,
                       uint32_t position) {
  const uint64_t first = begin / chunk_bytes;
  const uint64_t chunks = (end - 1) / chunk_bytes - first + 1;
  if (position >= chunks) return 0;
  uint64_t bytes = (chunks - position + width - 1) / width * chunk_bytes;
  if (position == 0) bytes -= begin - first * chunk_bytes;
  if ((chunks - 1) % width == position) bytes -= (first + chunks) * chunk_bytes - end;
  return bytes;
}

}  // namespace

std::vector<NodeBytes> BytesByNode(const Layout& layout, uint64_t size_bytes) {
  std::vector<NodeBytes> held;
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    const Segment& segment = layout.segments[i];
    const bool is_last = i + 1 == layout.segments.size();
    const uint64_t end = is_last ? size_bytes : std::min(size_bytes, layout.segments[i + 1].begin);
    if (segment.begin >= end) continue;
    for (uint32_t position = 0; position < segment.width; ++position) {
      const uint64_t bytes =
          PositionBytes(segment.begin, end, layout.chunk_bytes, segment.width, position);
      if (bytes == 0) continue;
      for (size_t c = position; c < segment.nodes.size(); c += segment.width) {
        const NodeId node = segment.nodes[c];
        bool again = node == kNoNode;
        for (size_t d = position; d < c; d += segment.width)
          again = again || segment.nodes[d] == node;
        if (!again) held.push_back({node, bytes, i == 0 ? 1U : 0U});
      }
    }
  }
  std::sort(held.begin(), held.end(),
            [](const NodeBytes& a, const NodeBytes& b) { return a.node < b.node; });
  size_t kept = 0;
  for (size_t i = 0; i < held.size(); ++i) {
    if (kept > 0 && held[kept - 1].node == held[i].node) {
      held[kept - 1].bytes += held[i].bytes;
      held[kept - 1].positions += held[i].positions;
    } else {
      held[kept++] = held[i];
    }
  }
  held.resize(kept);
  return held;
}

}  // namespace mosa
