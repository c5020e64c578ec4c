#include "manager/core/uncut_objects.h"

#include <algorithm>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

// A node that answers drops objects at once. A file waits this long for its nodes, and then goes to
// others.
constexpr Duration kDropAwaited = Seconds(1);

}  // namespace

// Precondition: the file is not placed on these nodes.
void UncutObjects::Note(FileId file, Inode& inode, const std::vector<NodeId>& nodes) {
  for (const NodeId id : nodes) {
    ObjectOn(*inode.bytes, id).uncut = true;
    Node* const node = nodes_.Find(id);
    if (node == nullptr) continue;
    Node::UncutDrop& drop = node->uncut[file];
    if (drop.number == 0 && nodes_.Answers(id))
      drop = nodes_.OrderUncutDrop(*node, file, *inode.bytes);
  }
  if (!nodes.empty()) step_.dirty.insert(file);
}

// Returns true if nodes of the file will be free for it in a moment.
bool UncutObjects::AwaitsDrops(FileId file, const Inode& inode) const {
  const std::vector<NodeId> nodes = UncutNodesOf(inode);
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node* const node = nodes_.Find(id);
    if (node == nullptr || !nodes_.Answers(id) || !nodes_.Stays(id)) return false;
    const auto drop = node->uncut.find(file);
    return drop != node->uncut.end() && drop->second.number != 0 &&
           step_.now - drop->second.ordered < kDropAwaited;
  });
}

void UncutObjects::OrderDrops(Node& node) {
  if (!nodes_.Answers(node.address.node)) return;  // It will register, or report that it answers.
  for (auto& [file, drop] : node.uncut) {
    const Inode* const inode = files_.Find(file);
    if (drop.number == 0 && inode && inode->bytes)
      drop = nodes_.OrderUncutDrop(node, file, *inode->bytes);
  }
}

// The node has registered and carries out no earlier order any more. If it has come back empty, no
// earlier right to store is valid there. Otherwise it drops also what it does not hold: a late
// store could still make the object.
void UncutObjects::TakeFrom(Node& node, bool new_incarnation) {
  nodes_.drops.erase(node.address.node);
  node.drops_sent = node.drops_done = 0;
  for (auto& [file, drop] : node.uncut) {
    drop = {};
    if (new_incarnation) Forget(node, file);
  }
  if (new_incarnation) node.uncut.clear();
  OrderDrops(node);
}

void UncutObjects::NoteDropsDone(Node& node, uint64_t drops_done) {
  if (drops_done <= node.drops_done) return;
  node.drops_done = drops_done;
  std::erase_if(node.uncut, [&](const auto& entry) {
    const uint64_t number = entry.second.number;
    if (number == 0 || number > drops_done) return false;
    Forget(node, entry.first);
    return true;
  });
}

void UncutObjects::Forget(Node& node, FileId file) {
  Inode* const inode = files_.Find(file);
  if (!inode || !inode->bytes) return;
  const NodeId id = node.address.node;
  std::erase_if(inode->bytes->objects,
                [id](const NodeObject& o) { return o.node == id && o.uncut; });
  step_.dirty.insert(file);
  copy_.reviews.insert(file);  // The node may get a copy.
}

// A truncation has reached the first copies only. Without further copies, a node that holds none of
// the file's bytes has only holes that were moved to other nodes.
void UncutObjects::NoteFurtherCopies(Inode& inode) {
  FileBytes& bytes = *inode.bytes;
  if (bytes.segments.empty()) return;
  const std::vector<NodeId> first = hints_.LayoutOf(inode).Nodes();
  for (auto& cells : bytes.copies)
    for (CopyCell& cell : cells)
      cell.uncut =
          cell.uncut || cell.data_version != 0 || MayHoldOtherBytes(bytes, cell.node, first);
  for (NodeObject& object : bytes.objects)
    if (!std::binary_search(first.begin(), first.end(), object.node) &&
        (object.allocated_bytes > 0 || !bytes.copies.empty()))
      object.uncut = true;
}

// A node whose stripe positions have no bytes any more has lost nothing, and what it holds are at
// most copies.
void UncutObjects::ForgetCommittedBeyondEnd(Inode& inode) {
  FileBytes& bytes = *inode.bytes;
  std::set<NodeId> kept;
  for (size_t i = 0; i < bytes.segments.size() && inode.size_bytes > 0; ++i)
    for (size_t position = 0; position < bytes.segments[i].width; ++position)
      if (HasBytes(bytes, inode.size_bytes, i, position))
        kept.insert(bytes.segments[i].nodes[position]);
  const std::vector<NodeId> first = hints_.LayoutOf(inode).Nodes();
  for (NodeObject& object : bytes.objects) {
    const bool is_first = std::binary_search(first.begin(), first.end(), object.node);
    if (kept.contains(object.node) || (inode.size_bytes > 0 && !is_first)) continue;
    const bool is_own = object.holds == ObjectHolds::kOwn;
    object = {.node = object.node,
              .damaged = object.damaged && !is_own && inode.size_bytes > 0,
              .uncut = object.uncut,
              .holds = is_own ? ObjectHolds::kOwn : ObjectHolds::kCopies};
  }
}

}  // namespace mosa::manager
