#include "common/model/layout.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace mosa {
namespace {

// Returns the part of `segment` from a later byte on, with its stripe positions renumbered.
Segment Later(const Segment& segment, uint64_t begin, uint64_t chunk_bytes) {
  const uint64_t passed = (begin / chunk_bytes - segment.begin / chunk_bytes) % segment.width;
  Segment later{begin, segment.width, {}};
  for (uint32_t copy = 0; copy < segment.copies(); ++copy) {
    for (uint64_t i = 0; i < segment.width; ++i)
      later.nodes.push_back(segment.nodes[copy * segment.width + (i + passed) % segment.width]);
  }
  return later;
}

}  // namespace

const Segment& Layout::SegmentAt(uint64_t offset) const {
  MOSA_CHECK(bound());
  const auto after = std::upper_bound(segments.begin(), segments.end(), offset,
                                      [](uint64_t o, const Segment& s) { return o < s.begin; });
  return after == segments.begin() ? segments.front() : *(after - 1);
}

uint64_t Layout::PositionAt(uint64_t offset) const {
  MOSA_CHECK(chunk_bytes > 0);
  const Segment& segment = SegmentAt(offset);
  return (offset / chunk_bytes - segment.begin / chunk_bytes) % segment.width;
}

NodeId Layout::NodeAt(uint64_t offset, uint32_t copy) const {
  const Segment& segment = SegmentAt(offset);
  MOSA_CHECK(copy < segment.copies());
  return segment.nodes[copy * segment.width + PositionAt(offset)];
}

uint64_t Layout::SegmentEnd(uint64_t offset) const {
  const Segment& segment = SegmentAt(offset);
  return &segment == &segments.back() ? UINT64_MAX : (&segment + 1)->begin;
}

std::vector<NodeId> Layout::Nodes() const {
  std::vector<NodeId> nodes;
  for (const Segment& segment : segments)
    nodes.insert(nodes.end(), segment.nodes.begin(), segment.nodes.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool Layout::HoldsAll(NodeId node) const {
  for (const Segment& segment : segments) {
    for (uint32_t position = 0; position < segment.width; ++position) {
      bool held = false;
      for (size_t i = position; i < segment.nodes.size(); i += segment.width)
        held = held || segment.nodes[i] == node;
      if (!held) return false;
    }
  }
  return bound();
}

bool Layout::OnOneNode() const {
  if (!bound()) return false;
  for (const Segment& segment : segments) {
    if (segment.nodes.size() != 1 || segment.nodes[0] != segments[0].nodes[0]) return false;
  }
  return true;
}

void Layout::Relocate(uint64_t begin, uint64_t end, Segment to) {
  MOSA_CHECK(bound() && chunk_bytes > 0 && begin < end);
  std::vector<Segment> result;
  const auto add = [&](Segment segment) {
    // Adjacent segments of width 1 on the same nodes are merged.
    const bool continues = !result.empty() && segment.width == 1 && result.back().width == 1 &&
                           segment.nodes == result.back().nodes;
    if (!continues) result.push_back(std::move(segment));
  };
  for (const Segment& segment : segments) {
    if (segment.begin < begin) add(segment);
  }
  to.begin = begin;
  add(std::move(to));
  if (end != UINT64_MAX) add(Later(SegmentAt(end), end, chunk_bytes));
  for (const Segment& segment : segments) {
    if (segment.begin > end) add(segment);
  }
  segments = std::move(result);
}

}  // namespace mosa
