#include <algorithm>

#include "predictor/run/ask.h"

namespace mosa::predict {
namespace {

// More chunks than this are counted as evenly spread.
constexpr uint64_t kChunksCountedMax = 4096;

// The bytes [begin, end) of a segment, by position.
std::vector<uint64_t> BytesByPosition(uint64_t begin, uint64_t end, uint64_t chunk,
                                      uint32_t width) {
  std::vector<uint64_t> bytes(width, 0);
  if (width == 1 || (end - begin) / chunk > kChunksCountedMax) {
    for (uint64_t& share : bytes) share = (end - begin) / width;
    return bytes;
  }
  for (uint64_t at = begin; at < end;) {
    const uint64_t next = std::min((at / chunk + 1) * chunk, end);
    bytes[(at / chunk - begin / chunk) % width] += next - at;
    at = next;
  }
  return bytes;
}

}  // namespace

std::map<NodeId, uint64_t> HeldBytes(const Layout& layout, uint64_t size_bytes) {
  std::map<NodeId, uint64_t> held;
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    const Segment& segment = layout.segments[i];
    const uint64_t next =
        i + 1 < layout.segments.size() ? layout.segments[i + 1].begin : size_bytes;
    const uint64_t end = std::min(next, size_bytes);
    if (segment.begin >= end) continue;
    const auto bytes = BytesByPosition(segment.begin, end, layout.chunk_bytes, segment.width);
    for (size_t node = 0; node < segment.nodes.size(); ++node)
      if (bytes[node % segment.width] > 0) held[segment.nodes[node]] += bytes[node % segment.width];
  }
  return held;
}

}  // namespace mosa::predict
