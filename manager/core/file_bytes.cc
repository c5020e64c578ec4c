#include "manager/core/file_bytes.h"

#include <algorithm>
#include <utility>

namespace mosa::manager {

Attributes StoredAttributes(const Inode& inode) {
  return {.type = inode.type,
          .permissions = inode.permissions,
          .uid = inode.uid,
          .gid = inode.gid,
          .link_count = inode.link_count,
          .device = inode.device,
          .size_bytes = inode.size_bytes,
          .allocated_bytes = 0,
          .access_time = inode.access_time,
          .modify_time = inode.modify_time,
          .change_time = inode.change_time,
          .birth_time = inode.birth_time,
          .data_version = inode.data_version};
}

FileBytes& BytesOf(Inode& inode) {
  if (!inode.bytes) inode.bytes = std::make_unique<FileBytes>();
  return *inode.bytes;
}

const NodeObject* FindObject(const FileBytes& bytes, NodeId node) {
  const auto at = std::lower_bound(bytes.objects.begin(), bytes.objects.end(), node,
                                   [](const NodeObject& o, NodeId id) { return o.node < id; });
  return at != bytes.objects.end() && at->node == node ? &*at : nullptr;
}

// Returns the record of the file's object on `node`; adds an empty one if there is none.
NodeObject& ObjectOn(FileBytes& bytes, NodeId node) {
  const auto at = std::lower_bound(bytes.objects.begin(), bytes.objects.end(), node,
                                   [](const NodeObject& o, NodeId id) { return o.node < id; });
  if (at != bytes.objects.end() && at->node == node) return *at;
  return *bytes.objects.insert(at, {node, false, 0});
}

// Returns true if bytes were committed there that are not copies.
bool HasCommitted(const NodeObject& object) {
  return object.lost || (object.allocated_bytes > 0 && object.holds != ObjectHolds::kCopies);
}

// Copies of what is first on other nodes may come into the object, or stay there.
void NoteCopies(NodeObject& object) {
  if (object.holds == ObjectHolds::kOwn)
    object.holds = HasCommitted(object) ? ObjectHolds::kBoth : ObjectHolds::kCopies;
}

bool HasBytes(const FileBytes& bytes, uint64_t size_bytes, size_t segment, size_t position) {
  if (segment == 0 && position == 0) return true;
  const Segment& s = bytes.segments[segment];
  const uint64_t first =
      position == 0 ? s.begin : (s.begin / bytes.chunk_bytes + position) * bytes.chunk_bytes;
  const bool is_last = segment + 1 == bytes.segments.size();
  return first < (is_last ? size_bytes : std::min(size_bytes, bytes.segments[segment + 1].begin));
}

bool IsLost(const FileBytes& bytes, NodeId node) {
  return std::any_of(bytes.objects.begin(), bytes.objects.end(),
                     [node](const NodeObject& o) { return o.node == node && o.lost; });
}

std::set<NodeId> NamedNodes(const FileBytes& bytes) {
  std::set<NodeId> nodes;
  for (const Segment& segment : bytes.segments)
    nodes.insert(segment.nodes.begin(), segment.nodes.end());
  for (const auto& cells : bytes.copies)
    for (const CopyCell& cell : cells) nodes.insert(cell.node);
  nodes.erase(kNoNode);
  return nodes;
}

bool IsFirstCopyLost(const Inode& inode) {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return false;
  const FileBytes& bytes = *inode.bytes;
  for (size_t i = 0; i < bytes.segments.size(); ++i)
    for (size_t position = 0; position < bytes.segments[i].width; ++position)
      if (IsLost(bytes, bytes.segments[i].nodes[position]) &&
          HasBytes(bytes, inode.size_bytes, i, position))
        return true;
  return false;
}

void KeepCells(FileBytes& bytes, const std::vector<Segment>& before) {
  if (bytes.copies.empty()) return;
  std::vector<std::vector<CopyCell>> kept(bytes.segments.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto same = std::find(before.begin(), before.end(), bytes.segments[i]);
    if (same != before.end())
      kept[i] = std::move(bytes.copies[static_cast<size_t>(same - before.begin())]);
  }
  bytes.copies = std::move(kept);
}

// Inline bytes arrive with the commit, and an empty file shows none.
bool ShowsBytesOfNodes(const Inode& inode) {
  return inode.bytes && !inode.bytes->segments.empty() && !inode.bytes->is_inline &&
         inode.size_bytes > 0;
}

// Returns true if some copy counts as valid and the file is not marked `may_differ`.
bool HasUnmarkedCopies(const Inode& inode) {
  if (!inode.bytes || inode.bytes->may_differ || inode.size_bytes == 0) return false;
  const auto is_valid = [&](const CopyCell& cell) {
    return cell.node != kNoNode && cell.data_version == inode.data_version && !cell.was_first;
  };
  return std::any_of(
      inode.bytes->copies.begin(), inode.bytes->copies.end(),
      [&](const auto& cells) { return std::any_of(cells.begin(), cells.end(), is_valid); });
}

bool HoldsLastCommit(const Inode& inode, const CopyCell& cell) {
  return cell.node != kNoNode && cell.data_version != 0 &&
         cell.data_version + inode.bytes->raised_uncommitted >= inode.data_version;
}

bool IsDamaged(const FileBytes& bytes, NodeId node) {
  return std::any_of(bytes.objects.begin(), bytes.objects.end(),
                     [node](const NodeObject& o) { return o.node == node && o.damaged; });
}

bool TellsOfObjects(const CommitRequest& request) {
  return !request.inline_data && (request.data_changed || !request.nodes.empty());
}

// Returns true if the node's object may hold bytes that are not those of its own stripe positions.
// `first`: the nodes of the first copies, ascending.
bool MayHoldOtherBytes(const FileBytes& bytes, NodeId node, const std::vector<NodeId>& first) {
  const NodeObject* const object = FindObject(bytes, node);
  return object && (object->holds != ObjectHolds::kOwn ||
                    !std::binary_search(first.begin(), first.end(), node));
}

std::vector<NodeId> UncutNodesOf(const Inode& inode) {
  std::vector<NodeId> nodes;
  if (!inode.bytes) return nodes;
  for (const NodeObject& object : inode.bytes->objects)
    if (object.uncut) nodes.push_back(object.node);
  return nodes;
}

}  // namespace mosa::manager
