#include "manager/core/copy_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "manager/core/file_bytes.h"

namespace mosa::manager {

std::optional<NodeId> CopyView::LostAt(const Inode& inode) const {
  return UncoveredNode(inode, /*count_silent=*/true);
}

bool CopyView::IsValid(const Inode& inode, size_t segment, size_t cell) const {
  const FileBytes& bytes = *inode.bytes;
  const CopyCell& copy = bytes.copies[segment][cell];
  if (copy.node == kNoNode) return false;
  const size_t position = cell % bytes.segments[segment].width;
  // A position without bytes counts as copied, unless the node may hold bytes that were cut off.
  if (inode.size_bytes == 0 || !HasBytes(bytes, inode.size_bytes, segment, position))
    return !copy.uncut;
  return copy.data_version == inode.data_version && !copy.was_first;
}

bool CopyView::MustCopy(const Inode& inode, size_t segment, size_t cell) const {
  return inode.bytes->copies[segment][cell].node != kNoNode && !IsValid(inode, segment, cell);
}

// A reader can use any copy, so copies on nodes that answer come first. A position with fewer
// copies than others repeats its own.
Layout CopyView::ReaderLayoutOf(const Inode& inode) const {
  Layout layout = hints_.LayoutOf(inode);
  if (!inode.bytes || inode.bytes->copies.empty() || inode.bytes->is_inline) return layout;
  const FileBytes& bytes = *inode.bytes;
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    Segment& segment = layout.segments[i];
    std::vector<std::vector<NodeId>> holders(segment.width);
    size_t rows = 1;
    for (size_t position = 0; position < segment.width; ++position) {
      const NodeId first = segment.nodes[position];
      const bool usable =
          nodes_.IsReachable(first) && !IsLost(bytes, first) && !IsDamaged(bytes, first);
      if (usable) holders[position].push_back(first);
      for (size_t c = position; c < bytes.copies[i].size(); c += segment.width) {
        if (IsValid(inode, i, c) && nodes_.IsReachable(bytes.copies[i][c].node))
          holders[position].push_back(bytes.copies[i][c].node);
      }
      if (holders[position].empty()) holders[position].push_back(first);
      rows = std::max(rows, holders[position].size());
    }
    segment.nodes.clear();
    for (size_t row = 0; row < rows; ++row)
      for (const auto& nodes : holders) segment.nodes.push_back(nodes[row % nodes.size()]);
  }
  return layout;
}

// Returns the node, if any, whose lost bytes are in no copy on a node that answers. With
// `count_silent` a silent node counts as lost.
std::optional<NodeId> CopyView::UncoveredNode(const Inode& inode, bool count_silent) const {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return std::nullopt;
  const FileBytes& bytes = *inode.bytes;
  for (const NodeObject& object : bytes.objects) {
    const bool gone =
        object.lost || (count_silent && HasCommitted(object) && !nodes_.IsReachable(object.node));
    if (!gone) continue;
    for (size_t i = 0; i < bytes.segments.size(); ++i) {
      const Segment& segment = bytes.segments[i];
      for (size_t position = 0; position < segment.width; ++position) {
        if (segment.nodes[position] != object.node ||
            !HasBytes(bytes, inode.size_bytes, i, position))
          continue;
        bool covered = false;
        for (size_t c = position; !bytes.copies.empty() && c < bytes.copies[i].size();
             c += segment.width) {
          const bool answers = nodes_.IsReachable(bytes.copies[i][c].node);
          covered = covered || (IsValid(inode, i, c) && (answers || !count_silent));
        }
        if (!covered) return object.node;
      }
    }
  }
  return std::nullopt;
}

uint32_t CopyView::ValidCopies(const Inode& inode) const {
  if (!inode.bytes || inode.bytes->segments.empty()) return 1;
  const FileBytes& bytes = *inode.bytes;
  uint32_t fewest = UINT32_MAX;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Segment& segment = bytes.segments[i];
    for (size_t position = 0; position < segment.width; ++position) {
      if (!HasBytes(bytes, inode.size_bytes, i, position)) continue;
      const NodeId first = segment.nodes[position];
      const bool is_gone =
          !nodes_.IsReachable(first) || IsLost(bytes, first) || IsDamaged(bytes, first);
      uint32_t valid = is_gone ? 0 : 1;
      for (size_t c = position; !bytes.copies.empty() && c < bytes.copies[i].size();
           c += segment.width)
        valid += IsValid(inode, i, c) && nodes_.IsReachable(bytes.copies[i][c].node) ? 1 : 0;
      fewest = std::min(fewest, valid);
    }
  }
  return fewest;
}

// Returns true if a plan for this many copies would change nothing.
bool CopyView::HasEnoughHolders(const FileBytes& bytes, size_t segment, uint32_t wanted) const {
  const Segment& first = bytes.segments[segment];
  for (size_t position = 0; position < first.width; ++position) {
    uint32_t staying = nodes_.Stays(first.nodes[position]) ? 1 : 0;
    if (!bytes.copies.empty()) {
      const std::vector<CopyCell>& cells = bytes.copies[segment];
      for (size_t c = position; c < cells.size(); c += first.width)
        staying += nodes_.Stays(cells[c].node) ? 1 : 0;
    }
    if (staying < wanted) return false;
  }
  return true;
}

// Returns the nodes whose objects may hold bytes in a hole of the first copy at `offset`, such as
// what was punched out. The nodes of its segment hold none, unless they were also copies.
std::vector<NodeId> CopyView::NodesWithOlderBytes(const Inode& inode, uint64_t offset) const {
  const std::vector<NodeId> first = hints_.LayoutOf(inode).SegmentAt(offset).nodes;
  std::vector<NodeId> nodes;
  for (const NodeObject& object : inode.bytes->objects)
    if (object.holds != ObjectHolds::kOwn || std::ranges::count(first, object.node) == 0)
      nodes.push_back(object.node);
  return nodes;
}

// Returns the node, if any, that found damage in bytes of which no node that answers has a valid
// copy.
std::optional<NodeId> CopyView::DamagedAt(const Inode& inode) const {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return std::nullopt;
  const FileBytes& bytes = *inode.bytes;
  if (std::none_of(bytes.objects.begin(), bytes.objects.end(),
                   [](const NodeObject& o) { return o.damaged; }))
    return std::nullopt;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Segment& segment = bytes.segments[i];
    for (size_t position = 0; position < segment.width; ++position) {
      if (!IsDamaged(bytes, segment.nodes[position]) ||
          !HasBytes(bytes, inode.size_bytes, i, position))
        continue;
      bool has_other = false;
      for (size_t c = position; !bytes.copies.empty() && c < bytes.copies[i].size();
           c += segment.width)
        has_other =
            has_other || (IsValid(inode, i, c) && nodes_.IsReachable(bytes.copies[i][c].node));
      if (!has_other) return segment.nodes[position];
    }
  }
  return std::nullopt;
}

std::string CopyView::DamageOf(const Inode& inode) const {
  const auto node = DamagedAt(inode);
  if (!node) return "";
  return fmt::format(
      "node {} found damaged blocks that no other copy has, so reads of them fail; run task '{}', "
      "which wrote the file, again",
      nodes_.NameOf(*node), texts_.TextOf(inode.task));
}

// Returns the nodes in `layout` on which no byte of the file was committed, ascending. Each segment
// of `layout` names first copies, or others, of the same segment of the file.
std::vector<NodeId> CopyView::EmptyNodesOf(const Inode& inode, const Layout& layout) const {
  std::vector<NodeId> empty;
  if (!layout.bound()) return empty;
  const FileBytes& bytes = *inode.bytes;
  MOSA_CHECK(layout.segments.size() == bytes.segments.size());
  std::set<NodeId> serves_copies;
  for (size_t i = 0; i < layout.segments.size() && !bytes.copies.empty(); ++i) {
    const std::vector<NodeId>& nodes = layout.segments[i].nodes;
    const std::vector<NodeId>& first = bytes.segments[i].nodes;
    for (size_t k = 0; k < nodes.size(); ++k)
      if (nodes[k] != first[k % first.size()]) serves_copies.insert(nodes[k]);
  }
  for (const NodeId node : layout.Nodes()) {
    if (node == kNoNode) continue;
    const NodeObject* const object = FindObject(bytes, node);
    if (!object || (!object->lost && object->allocated_bytes == 0) ||
        (!HasCommitted(*object) && !serves_copies.contains(node)))
      empty.push_back(node);
  }
  return empty;
}

std::vector<std::string> CopyView::NodeNamesOf(const Inode& inode) const {
  if (!inode.bytes) return {};
  if (inode.bytes->is_inline)
    return inode.bytes->inline_node == kNoNode
               ? std::vector<std::string>()
               : std::vector<std::string>{nodes_.NameOf(inode.bytes->inline_node)};
  const FileBytes& bytes = *inode.bytes;
  // Counts the parts that each node has of the file, in first copies and in valid further copies.
  std::map<NodeId, size_t> parts;
  size_t parts_max = 0;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Segment& segment = bytes.segments[i];
    for (const NodeId node : segment.nodes) ++parts[node];
    parts_max += segment.width;
    for (size_t c = 0; !bytes.copies.empty() && c < bytes.copies[i].size(); ++c)
      if (IsValid(inode, i, c)) ++parts[bytes.copies[i][c].node];
  }
  std::vector<NodeObject> objects = bytes.objects;
  std::erase_if(objects, [&parts](const NodeObject& o) {
    return o.lost || o.allocated_bytes == 0 || !parts.contains(o.node);
  });
  const auto rank = [&](const NodeObject& o) {
    return std::pair(parts.at(o.node) >= parts_max, o.allocated_bytes);
  };
  std::stable_sort(objects.begin(), objects.end(),
                   [&](const NodeObject& a, const NodeObject& b) { return rank(a) > rank(b); });
  std::vector<std::string> names;
  for (const NodeObject& object : objects) names.push_back(nodes_.NameOf(object.node));
  return names;
}

Result<std::string> CopyView::ChunkLocationsOf(const Inode& inode) const {
  const Layout layout = hints_.LayoutOf(inode);
  if (!layout.bound() || inode.size_bytes == 0) return std::string();
  const uint64_t chunk_bytes = layout.chunk_bytes / hints_.RunChunksOf(inode);
  const uint64_t chunks = (inode.size_bytes - 1) / chunk_bytes + 1;
  std::string text;
  for (uint64_t at = 0; at < inode.size_bytes;) {
    const NodeId node = layout.NodeAt(at);
    // A segment on one node is one range; other segments change nodes with each run of chunks.
    uint64_t end = std::min(layout.SegmentEnd(at), inode.size_bytes);
    if (layout.SegmentAt(at).width > 1)
      end = std::min(end, (at / layout.chunk_bytes + 1) * layout.chunk_bytes);
    text += fmt::format("{}{}-{}:{}", text.empty() ? "" : ",", at / chunk_bytes,
                        (end - 1) / chunk_bytes, nodes_.NameOf(node));
    if (text.size() > kAttributeValueBytesMax)
      return ResourceExhaustedError(fmt::format(
          "the list of {} chunks is longer than {} bytes: read user.mosa.layout instead", chunks,
          kAttributeValueBytesMax));
    at = end;
  }
  return text;
}

}  // namespace mosa::manager
