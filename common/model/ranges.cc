#include "common/model/ranges.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "common/base/check.h"

namespace mosa {

ByteRange WidenToPages(ByteRange range) {
  if (range.empty()) return range;
  return {range.begin / kPageBytes * kPageBytes,
          (range.end + kPageBytes - 1) / kPageBytes * kPageBytes};
}

namespace {

std::vector<NodeId> NodesAt(const Segment& segment, uint64_t position) {
  std::vector<NodeId> nodes;
  nodes.reserve(segment.copies());
  for (uint32_t copy = 0; copy < segment.copies(); ++copy)
    nodes.push_back(segment.nodes[copy * segment.width + position]);
  return nodes;
}

bool LieOn(std::span<const NodeId> nodes, const Segment& segment, uint64_t position) {
  if (nodes.size() != segment.copies()) return false;
  for (size_t copy = 0; copy < nodes.size(); ++copy)
    if (nodes[copy] != segment.nodes[copy * segment.width + position]) return false;
  return true;
}

}  // namespace

Piece FirstPiece(const Layout& layout, ByteRange range, uint64_t piece_bytes_max) {
  MOSA_CHECK(layout.bound() && layout.chunk_bytes > 0 && piece_bytes_max > 0 && !range.empty());
  range.end = range.begin + std::min(range.size(), piece_bytes_max);
  Piece piece{{range.begin, range.begin}, {}};
  while (piece.range.end < range.end) {
    const uint64_t at = piece.range.end;
    const Segment& segment = layout.SegmentAt(at);
    const uint64_t first = segment.width == 1 ? 0 : layout.PositionAt(at);
    if (piece.range.empty()) piece.nodes = NodesAt(segment, first);
    // Positions from the first one on that lie on the piece's nodes.
    uint32_t count = 0;
    while (count < segment.width && LieOn(piece.nodes, segment, (first + count) % segment.width))
      ++count;
    if (count == 0) break;
    const uint64_t segment_end =
        &segment == &layout.segments.back() ? UINT64_MAX : layout.SegmentEnd(at);
    const uint64_t run_end = count == segment.width
                                 ? segment_end
                                 : (at / layout.chunk_bytes + count) * layout.chunk_bytes;
    piece.range.end = std::min({run_end, segment_end, range.end});
    if (piece.range.end < segment_end) break;
  }
  return piece;
}

std::vector<Piece> SplitRange(const Layout& layout, ByteRange range, uint64_t piece_bytes_max) {
  std::vector<Piece> pieces;
  while (!range.empty()) {
    pieces.push_back(FirstPiece(layout, range, piece_bytes_max));
    range.begin = pieces.back().range.end;
  }
  return pieces;
}

std::vector<NodeId> NodesOf(const Layout& layout, ByteRange range) {
  std::vector<NodeId> nodes;
  while (!range.empty()) {
    const Segment& segment = layout.SegmentAt(range.begin);
    const uint64_t end = std::min(range.end, layout.SegmentEnd(range.begin));
    uint64_t first = 0;
    uint64_t positions = 1;
    if (segment.width > 1) {
      first = layout.PositionAt(range.begin);
      positions = (end - 1) / layout.chunk_bytes - range.begin / layout.chunk_bytes + 1;
    }
    for (uint64_t i = 0; i < std::min<uint64_t>(positions, segment.width); ++i)
      for (uint64_t at = (first + i) % segment.width; at < segment.nodes.size();
           at += segment.width)
        nodes.push_back(segment.nodes[at]);
    range.begin = end;
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void IntervalSet::Add(ByteRange range) {
  if (range.empty()) return;
  auto next = intervals_.upper_bound(range.begin);
  if (next != intervals_.begin()) {
    const auto before = std::prev(next);
    if (before->second >= range.begin) {
      range.begin = before->first;
      range.end = std::max(range.end, before->second);
      next = intervals_.erase(before);
    }
  }
  while (next != intervals_.end() && next->first <= range.end) {
    range.end = std::max(range.end, next->second);
    next = intervals_.erase(next);
  }
  intervals_[range.begin] = range.end;
}

void IntervalSet::Remove(ByteRange range) {
  if (range.empty()) return;
  auto it = intervals_.upper_bound(range.begin);
  if (it != intervals_.begin()) --it;
  while (it != intervals_.end() && it->first < range.end) {
    const ByteRange old{it->first, it->second};
    if (old.end <= range.begin) {
      ++it;
      continue;
    }
    it = intervals_.erase(it);
    if (old.begin < range.begin) intervals_[old.begin] = range.begin;
    if (old.end > range.end) it = std::next(intervals_.emplace(range.end, old.end).first);
  }
}

std::vector<ByteRange> IntervalSet::Missing(ByteRange range) const {
  std::vector<ByteRange> missing;
  uint64_t at = range.begin;
  auto it = intervals_.upper_bound(range.begin);
  if (it != intervals_.begin()) --it;
  for (; it != intervals_.end() && it->first < range.end && at < range.end; ++it) {
    if (it->second <= at) continue;
    if (it->first > at) missing.push_back({at, it->first});
    at = it->second;
  }
  if (at < range.end) missing.push_back({at, range.end});
  return missing;
}

uint64_t IntervalSet::MissingBytes(ByteRange range) const {
  uint64_t bytes = 0;
  for (const ByteRange& gap : Missing(range)) bytes += gap.size();
  return bytes;
}

std::optional<ByteRange> IntervalSet::NextFrom(uint64_t offset) const {
  auto next = intervals_.upper_bound(offset);
  if (next != intervals_.begin() && std::prev(next)->second > offset) --next;
  if (next == intervals_.end()) return std::nullopt;
  return ByteRange{std::max(offset, next->first), next->second};
}

bool IntervalSet::Overlaps(ByteRange range) const {
  const auto next = NextFrom(range.begin);
  return !range.empty() && next && next->begin < range.end;
}

std::vector<ByteRange> IntervalSet::All() const {
  std::vector<ByteRange> all;
  for (const auto& [begin, end] : intervals_) all.push_back({begin, end});
  return all;
}

}  // namespace mosa
