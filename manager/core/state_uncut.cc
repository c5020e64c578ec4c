// Objects with bytes that are no longer their file's. A file may be cut to nothing while a node
// that holds some of its bytes does not answer. It is then laid out anew, and every node drops its
// object, those that are silent when they answer again. So does a node whose copy is no longer
// needed. Until a node has reported that, the file gets no byte there: the old bytes would be read
// again in the holes between new ones.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

// A node that answers drops objects at once. A file waits this long for its nodes, and then goes to
// others.
constexpr Duration kDropAwaited = Seconds(1);

}  // namespace

// Returns true if the node is to drop its object, and has not reported that it has.
bool ManagerCore::State::IsUncutDrop(FileId file, NodeId id) const {
  const Node* const node = FindNode(id);
  return node && node->uncut.contains(file);
}

// Returns true if the node's object may hold bytes that are not those of its own stripe positions.
// `first`: the nodes of the first copies, ascending.
bool ManagerCore::State::MayHoldOtherBytes(const FileBytes& bytes, NodeId node,
                                           const std::vector<NodeId>& first) {
  const NodeObject* const object = FindObject(bytes, node);
  return object && (object->holds != ObjectHolds::kOwn ||
                    !std::binary_search(first.begin(), first.end(), node));
}

// A node whose stripe positions have no bytes any more has lost nothing, and what it holds are at
// most copies.
void ManagerCore::State::ForgetCommittedBeyondEnd(Inode& inode) {
  FileBytes& bytes = *inode.bytes;
  std::set<NodeId> kept;
  for (size_t i = 0; i < bytes.segments.size() && inode.size_bytes > 0; ++i)
    for (size_t position = 0; position < bytes.segments[i].width; ++position)
      if (HasBytes(bytes, inode.size_bytes, i, position))
        kept.insert(bytes.segments[i].nodes[position]);
  const std::vector<NodeId> first = LayoutOf(inode).Nodes();
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

// A truncation has reached the first copies only. Without further copies, a node that holds none of
// the file's bytes has only holes that were moved to other nodes.
void ManagerCore::State::NoteFurtherCopiesUncut(Inode& inode) {
  FileBytes& bytes = *inode.bytes;
  if (bytes.segments.empty()) return;
  const std::vector<NodeId> first = LayoutOf(inode).Nodes();
  for (auto& cells : bytes.copies)
    for (CopyCell& cell : cells)
      cell.uncut =
          cell.uncut || cell.data_version != 0 || MayHoldOtherBytes(bytes, cell.node, first);
  for (NodeObject& object : bytes.objects)
    if (!std::binary_search(first.begin(), first.end(), object.node) &&
        (object.allocated_bytes > 0 || !bytes.copies.empty()))
      object.uncut = true;
}

std::vector<NodeId> ManagerCore::State::UncutNodesOf(const Inode& inode) {
  std::vector<NodeId> nodes;
  if (!inode.bytes) return nodes;
  for (const NodeObject& object : inode.bytes->objects)
    if (object.uncut) nodes.push_back(object.node);
  return nodes;
}

// Returns why the request cannot lay its file out anew, if it asks for that.
std::optional<Failure> ManagerCore::State::MayLayOutAnew(const SetAttributesRequest& request,
                                                         const Inode& inode) {
  if (!request.lay_out_anew) return std::nullopt;
  if (request.size_bytes != 0U)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  fmt::format("file {} can be laid out anew only when it is cut to nothing",
                              request.file.value));
  if (!inode.bytes || inode.bytes->segments.empty()) return std::nullopt;
  if (inode.bytes->is_inline || inode.bytes->generation != request.generation)
    return Refuse(
        StatusCode::kAborted, ErrorReason::kStale,
        fmt::format("the bytes of file {} have moved: truncate it again", request.file.value));
  auto failure = MayUnbind(request.file, inode);
  if (!failure || failure->code == StatusCode::kAborted) return failure;
  return Refuse(
      StatusCode::kUnavailable, ErrorReason::kNodeLost,
      fmt::format("file {} keeps its size of {} bytes, because one of its nodes is silent "
                  "and {}: try again when the node answers, or close the file there",
                  request.file.value, inode.size_bytes, failure->message));
}

// An empty file needs no node that is gone. Its next byte goes elsewhere.
void ManagerCore::State::LayOutAnewIfGone(FileId file, Inode& inode) {
  if (!inode.bytes || inode.size_bytes > 0 || inode.bytes->is_inline ||
      write_opens_.contains(file) || FreezeOf(file))
    return;
  const std::vector<NodeId> first = LayoutOf(inode).Nodes();
  if (std::all_of(first.begin(), first.end(), [this](NodeId id) { return IsReachable(id); }))
    return;
  Unbind(file, inode, FirstObjects::kNotCut);
}

// Precondition: the file is not placed on these nodes.
void ManagerCore::State::NoteUncut(FileId file, Inode& inode, const std::vector<NodeId>& nodes) {
  for (const NodeId id : nodes) {
    ObjectOn(*inode.bytes, id).uncut = true;
    Node* const node = FindNode(id);
    if (node == nullptr) continue;
    Node::UncutDrop& drop = node->uncut[file];
    if (drop.number == 0 && Answers(id)) drop = OrderUncutDrop(*node, file, *inode.bytes);
  }
  if (!nodes.empty()) dirty_.insert(file);
}

// Returns true if nodes of the file will be free for it in a moment.
bool ManagerCore::State::AwaitsDrops(FileId file, const Inode& inode) const {
  const std::vector<NodeId> nodes = UncutNodesOf(inode);
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node* const node = FindNode(id);
    if (node == nullptr || !Answers(id) || !Stays(id)) return false;
    const auto drop = node->uncut.find(file);
    return drop != node->uncut.end() && drop->second.number != 0 &&
           now_ - drop->second.ordered < kDropAwaited;
  });
}

void ManagerCore::State::ForgetUncut(Node& node, FileId file) {
  Inode* const inode = Find(file);
  if (!inode || !inode->bytes) return;
  const NodeId id = node.address.node;
  std::erase_if(inode->bytes->objects,
                [id](const NodeObject& o) { return o.node == id && o.uncut; });
  dirty_.insert(file);
  copy_.reviews.insert(file);  // The node may get a copy.
}

void ManagerCore::State::OrderUncutDrops(Node& node) {
  if (!Answers(node.address.node)) return;  // It will register, or report that it answers.
  for (auto& [file, drop] : node.uncut) {
    const Inode* const inode = Find(file);
    if (drop.number == 0 && inode && inode->bytes) drop = OrderUncutDrop(node, file, *inode->bytes);
  }
}

// What a mount still stores by an earlier layout must not make the object again.
Node::UncutDrop ManagerCore::State::OrderUncutDrop(Node& node, FileId file,
                                                   const FileBytes& bytes) {
  DropObjectsOrder& order = drops_[node.address.node];
  order.files.push_back(file);
  order.generations[file] = bytes.generation;
  return {node.drops_sent + 1, now_};  // SendDrops() numbers the order so.
}

// The node has registered and carries out no earlier order any more. If it has come back empty, no
// earlier right to store is valid there. Otherwise it drops also what it does not hold: a late
// store could still make the object.
void ManagerCore::State::TakeUncut(Node& node, bool new_incarnation) {
  drops_.erase(node.address.node);
  node.drops_sent = node.drops_done = 0;
  for (auto& [file, drop] : node.uncut) {
    drop = {};
    if (new_incarnation) ForgetUncut(node, file);
  }
  if (new_incarnation) node.uncut.clear();
  OrderUncutDrops(node);
}

void ManagerCore::State::NoteDropsDone(Node& node, uint64_t drops_done) {
  if (drops_done <= node.drops_done) return;
  node.drops_done = drops_done;
  std::erase_if(node.uncut, [&](const auto& entry) {
    const uint64_t number = entry.second.number;
    if (number == 0 || number > drops_done) return false;
    ForgetUncut(node, entry.first);
    return true;
  });
}

}  // namespace mosa::manager
