// Objects that were not cut: a file was cut to nothing while a node that holds some of its bytes
// did not answer. The file is laid out anew on other nodes, and the node drops the object when it
// answers again. Until it has reported that, the file gets no byte there: what was cut off would be
// read again in the holes between new bytes.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {

std::vector<NodeId> ManagerCore::State::UncutNodesOf(const Inode& inode) {
  std::vector<NodeId> nodes;
  if (!inode.bytes) return nodes;
  for (const NodeObject& object : inode.bytes->objects)
    if (object.uncut) nodes.push_back(object.node);
  return nodes;
}

std::optional<Failure> ManagerCore::State::MayLeaveUncut(FileId file, const Inode& inode,
                                                         const SetAttributesRequest& request) {
  if (request.uncut_nodes.empty()) return std::nullopt;
  const std::set<NodeId> named = inode.bytes ? NamedNodes(*inode.bytes) : std::set<NodeId>();
  const bool all_named = std::all_of(request.uncut_nodes.begin(), request.uncut_nodes.end(),
                                     [&](NodeId node) { return named.contains(node); });
  if (request.size_bytes != 0U || !all_named || inode.bytes->is_inline)
    return Refuse(
        StatusCode::kInvalidArgument, ErrorReason::kInvalid,
        fmt::format("objects of file {} cannot be left uncut: the file must have its bytes "
                    "there and be cut to nothing",
                    file.value));
  std::string reason = "another mount has it open for writing";
  if (!IsOpenForWritingElsewhere(file)) {
    auto failure = MayUnbind(file, inode);
    if (!failure || failure->code == StatusCode::kAborted) return failure;
    reason = failure->message;
  }
  return Refuse(StatusCode::kUnavailable, ErrorReason::kNodeLost,
                fmt::format("file {} keeps its size of {} bytes, because{} did not answer and {}: "
                            "try again when it answers, or close the file there",
                            file.value, inode.size_bytes, NamesOf(request.uncut_nodes), reason));
}

// Precondition: the file is not placed on these nodes any more, or is about to be laid out anew.
void ManagerCore::State::NoteUncut(FileId file, Inode& inode, const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return;
  if (!inode.bytes->segments.empty()) Unbind(file, inode);
  for (const NodeId id : nodes) {
    ObjectOn(*inode.bytes, id).uncut = true;
    Node* const node = FindNode(id);
    if (node == nullptr) continue;
    node->uncut.try_emplace(file, 0);
    OrderUncutDrops(*node);
  }
  dirty_.insert(file);
}

void ManagerCore::State::ForgetUncut(Node& node, FileId file) {
  Inode* const inode = Find(file);
  if (!inode || !inode->bytes) return;
  const NodeId id = node.address.node;
  std::erase_if(inode->bytes->objects,
                [id](const NodeObject& o) { return o.node == id && o.uncut; });
  dirty_.insert(file);
}

void ManagerCore::State::OrderUncutDrops(Node& node) {
  if (!Answers(node.address.node)) return;  // It will register, or report that it answers.
  std::vector<FileId> files;
  for (const auto& [file, order] : node.uncut)
    if (order == 0) files.push_back(file);
  if (files.empty()) return;
  SendOrder(node.address.node, DropObjectsOrder{files});
  for (const FileId file : files) node.uncut[file] = node.drops_sent;
}

// The node has registered with these objects. It carries out no earlier order any more.
void ManagerCore::State::TakeUncut(Node& node, const std::vector<FileId>& present) {
  node.drops_sent = 0;
  if (node.uncut.empty()) return;
  const std::set<FileId> held(present.begin(), present.end());
  for (auto at = node.uncut.begin(); at != node.uncut.end();) {
    at->second = 0;
    const FileId file = at->first;
    const bool is_held = held.contains(file);
    at = is_held ? std::next(at) : node.uncut.erase(at);
    if (!is_held) ForgetUncut(node, file);
  }
  OrderUncutDrops(node);
}

void ManagerCore::State::NoteDropsDone(Node& node, uint64_t drops_done) {
  std::erase_if(node.uncut, [&](const auto& entry) {
    if (entry.second == 0 || entry.second > drops_done) return false;
    ForgetUncut(node, entry.first);
    return true;
  });
}

}  // namespace mosa::manager
