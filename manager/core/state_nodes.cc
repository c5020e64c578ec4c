// Storage nodes: registration, their objects, and whether they respond.
#include <fmt/format.h>

#include <algorithm>

#include "common/model/ranges.h"
#include "manager/core/state.h"
#include "manager/core/state_recovery.h"

namespace mosa::manager {
namespace {

constexpr size_t kNodesMax = 4096;  // The limit of clients and of the protocol.
constexpr size_t kNodeTextBytesMax = 4096;
// Maximum delay between a node's message and the note of its arrival.
constexpr Duration kListingSlack = Seconds(5);

}  // namespace

Node* ManagerCore::State::FindNode(NodeId id) {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}
const Node* ManagerCore::State::FindNode(NodeId id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

NodeId ManagerCore::State::NodeOfSession(const Session& session) const {
  if (session.start.node_name.empty()) return kNoNode;
  const auto found = node_names_.find(session.start.node_name);
  return found == node_names_.end() ? kNoNode : found->second;
}

void ManagerCore::State::RefuseNode(const std::string& name, std::string message) {
  effects_.frequent_log.push_back(message);
  effects_.refused_nodes.push_back(
      {name, Refuse(StatusCode::kFailedPrecondition, ErrorReason::kInvalid, std::move(message))});
}

void ManagerCore::State::Handle(const RegisterNode& command) {
  const NodeRegistration& registration = command.registration;
  const std::string& name = registration.name;
  if (name.empty() || name.find_first_of(std::string_view(",\0", 2)) != std::string::npos ||
      std::max({name.size(), registration.address.size(), registration.socket_path.size(),
                registration.host_identity.size()}) > kNodeTextBytesMax)
    return RefuseNode(name,
                      "a node's name must not be empty or contain a comma or NUL, and its texts "
                      "must have at most 4096 bytes");
  if (!registration.cluster_name.empty() && registration.cluster_name != cluster_.cluster_name)
    return RefuseNode(name, fmt::format("node {}: its object directory belongs to cluster '{}', "
                                        "not to '{}'; give it another directory",
                                        name, registration.cluster_name, cluster_.cluster_name));
  const auto known = node_names_.find(name);
  if (known == node_names_.end() && nodes_.size() >= kNodesMax)
    return RefuseNode(name, fmt::format("node {}: {} nodes are already known, which is the limit",
                                        name, nodes_.size()));
  bool new_incarnation = false;
  if (known != node_names_.end()) {
    const Node& node = nodes_.at(known->second);
    new_incarnation = node.address.incarnation != registration.incarnation;
    if (new_incarnation && node.connected && IsReachable(known->second))
      return RefuseNode(
          name,
          fmt::format("node {}: another live node at {} has that name; give each node its own name",
                      name, node.address.address));
  }
  const NodeId id = known != node_names_.end() ? known->second : NodeId(cluster_.next_node_id++);
  cluster_dirty_ = true;
  node_names_.insert_or_assign(name, id);
  Node& node = nodes_[id];
  if (new_incarnation || known == node_names_.end()) BeginEpoch(node);
  // A new incarnation has none of the earlier objects.
  const Time listed_after = new_incarnation ? kNever : ListedAfter(node);
  if (new_incarnation) LoseUncommittedOf(node);
  node.address = {.node = id,
                  .name = name,
                  .address = registration.address,
                  .socket_path = registration.socket_path,
                  .host_identity = registration.host_identity,
                  .incarnation = registration.incarnation,
                  .state = node.draining ? NodeState::kDraining : NodeState::kLive};
  node.limit_bytes = registration.limit_bytes;
  node.used_bytes = registration.used_bytes;
  node.connected = true;
  node.silent_since.reset();
  node.given_up = false;
  node.last_heard = now_;
  Schedule(now_ + kNodeDeadAfter);
  WriteNode(node);
  ToNode& answer = effects_.to_nodes.emplace_back();
  answer.node = id;
  answer.message = NodeRegistered{.node = id,
                                  .cluster_name = cluster_.cluster_name,
                                  .capability_key = {},
                                  .now = now_,
                                  .epoch = node.epoch};
  effects_.frequent_log.push_back(fmt::format("node {} at {} registers with {} objects{}", name,
                                              registration.address, registration.objects.size(),
                                              new_incarnation ? "; it has restarted" : ""));
  TakeUncut(node, new_incarnation);
  const std::set<FileId> present = RecoveryRules{*this}.TakeObjects(id, registration);
  if (new_incarnation) cut_objects_.erase(id);
  // As above: a new incarnation has none of the earlier objects.
  LoseObjectsOf(id, new_incarnation ? std::set<FileId>() : present, listed_after);
  ForgetCopiesBy(id);
  StartCopyScan();
  PushNodes();
  space_changed_ = true;
}

// Earlier statements about the node's objects refer to another incarnation, or to none.
void ManagerCore::State::BeginEpoch(Node& node) {
  node.epoch = ++counters_.epoch;
  node.consumed_bytes = node.consumed_before_bytes = 0;
  node.settled_below = 0;
  node.came_empty = grace_end_.has_value();
  effects_.writes.Put(CountersKey(), Encode(counters_));
}

void ManagerCore::State::NoteStall(Duration time) {
  const Time begin = now_ - time;
  if (begin - kListingSlack > stall_end_) stall_begin_ = begin;
  stall_end_ = now_;
  for (auto& [id, node] : nodes_) {
    node.last_heard = now_;
    if (node.silent_since) node.silent_since = *node.silent_since + time;
  }
}

// A node lists its objects after its last message; what was committed since may have been stored
// after the list was made. A message noted just after a stall may be older than the stall.
Time ManagerCore::State::ListedAfter(const Node& node) const {
  const Time heard = node.last_heard - kListingSlack;
  return heard < stall_end_ ? std::min(heard, stall_begin_ - kListingSlack) : heard;
}

// Marks objects as lost that files had on the node and that are not in `present`. Considers only
// files unchanged since `listed_after`, for which the list is conclusive.
void ManagerCore::State::LoseObjectsOf(NodeId id, const std::set<FileId>& present,
                                       Time listed_after) {
  size_t lost = 0;
  for (auto& [file, inode] : inodes_) {
    if (!inode->bytes || inode->change_time >= listed_after || present.contains(file)) continue;
    LoseUncommittedHole(id, file, *inode);
    for (NodeObject& object : inode->bytes->objects) {
      if (object.node != id) continue;
      for (auto& cells : inode->bytes->copies) {
        for (CopyCell& cell : cells) {
          if (cell.node != id || (cell.data_version == 0 && !cell.uncut)) continue;
          cell = {id, 0};  // Nothing is left there.
          Touch(file);
        }
      }
      if (object.lost || object.allocated_bytes == 0) continue;
      Touch(file);
      object.damaged = false;
      object.lost = HasCommitted(object);
      if (!object.lost) object = {.node = id, .uncut = object.uncut};
      if (UncoveredNode(*inode, false)) ++lost;
    }
  }
  if (lost > 0)
    effects_.log.push_back(
        fmt::format("node {} has lost the bytes of {} files: 'mosa lost' lists "
                    "them",
                    NameOf(id), lost));
}

// The node has no object of the file. Where nothing was committed there, that is a hole. But a
// writer that died may have stored bytes in it, and copies may have them: they are compared again.
void ManagerCore::State::LoseUncommittedHole(NodeId id, FileId file, Inode& inode) {
  const FileBytes& bytes = *inode.bytes;
  if (bytes.copies.empty() || inode.size_bytes == 0) return;
  bool is_hole = false;
  for (size_t i = 0; i < bytes.segments.size(); ++i)
    for (size_t position = 0; position < bytes.segments[i].width; ++position)
      is_hole = is_hole || (bytes.segments[i].nodes[position] == id &&
                            HasBytes(bytes, inode.size_bytes, i, position));
  const bool has_bytes =
      std::any_of(bytes.objects.begin(), bytes.objects.end(),
                  [id](const NodeObject& o) { return o.node == id && HasCommitted(o); });
  if (!is_hole || has_bytes) return;
  RaiseVersion(file, inode, /*committed=*/false);
  ReviewCopiesLater(file, inode);
  Touch(file);
}

// The node has come back empty. Nothing else would reveal that stored and uncommitted bytes are
// missing. It may have stored bytes after it was last heard from, also of files made since.
void ManagerCore::State::LoseUncommittedOf(const Node& node) {
  const NodeId id = node.address.node;
  for (const FileId file : fences_.FilesWithAbsent()) {
    const Inode* inode = Find(file);
    const std::vector<NodeId> stored_on = inode ? LayoutOf(*inode).Nodes() : std::vector<NodeId>();
    if (std::binary_search(stored_on.begin(), stored_on.end(), id)) FenceAbsentWriters(file);
  }
  for (const auto& [file, writers] : write_opens_) LoseStoresOn(id, file, *Find(file));
}

// Bytes that writers have stored on the node can no longer be committed. What they store there from
// now on can: of earlier bytes the file has lost only committed ones, which is known already.
void ManagerCore::State::LoseStoresOn(NodeId node, FileId file, Inode& inode) {
  if (!inode.bytes) return;
  const bool stores = !inode.bytes->is_inline || FreezeOf(file);
  const std::vector<NodeId> first = LayoutOf(inode).Nodes();
  if (!stores || !std::binary_search(first.begin(), first.end(), node)) return;
  FenceWriters(file, inode, {});
  Touch(file);
}

// A writer declares its open after the restart. Nodes may have come back empty before that.
void ManagerCore::State::LoseStoresOnEmptyNodes(FileId file, Inode& inode) {
  if (!grace_end_) return;
  for (const auto& [id, node] : nodes_)
    if (node.came_empty) LoseStoresOn(id, file, inode);
}

void ManagerCore::State::ForgetWhoCameEmpty() {
  for (auto& [id, node] : nodes_)
    if (std::exchange(node.came_empty, false)) WriteNode(node);
}

void ManagerCore::State::Handle(const NodeReport& command) {
  Node* node = FindNode(command.node);
  if (!node || !node->connected) return;
  const NodeHeartbeat& heartbeat = command.heartbeat;
  node->last_heard = now_;
  node->used_bytes = heartbeat.used_bytes;
  node->limit_bytes = heartbeat.limit_bytes;
  // A drop triggers a heartbeat at once; its `used_bytes` may predate what clients have reported.
  if (heartbeat.measurements != node->last_heartbeat.measurements)
    node->consumed_before_bytes = std::exchange(node->consumed_bytes, 0);
  for (const FileId file : heartbeat.healed_objects) NoteHealed(command.node, file);
  for (const FileId file : heartbeat.corrupt_objects) NoteDamage(command.node, file);
  for (const FileId file : heartbeat.untold_objects) TakeUntold(*node, file);
  node->last_heartbeat = heartbeat;
  node->last_heartbeat.corrupt_objects.clear();
  node->last_heartbeat.healed_objects.clear();
  node->last_heartbeat.untold_objects.clear();
  if (node->address.state == NodeState::kSilent) SetNodeState(*node, NodeState::kLive);
  NoteDropsDone(*node, heartbeat.drops_done);
  Schedule(now_ + kNodeDeadAfter);
  if (!space_queue_.empty()) space_changed_ = true;
}

// A program has stored into the object, and no mount will commit that. Readers must read the file
// again, and copies must follow.
void ManagerCore::State::TakeUntold(const Node& node, FileId file) {
  Inode* const inode = Find(file);
  if (!inode || !inode->bytes || inode->bytes->is_inline) return;
  const std::vector<NodeId> first = LayoutOf(*inode).Nodes();
  if (!std::binary_search(first.begin(), first.end(), node.address.node)) {
    effects_.frequent_log.push_back(
        fmt::format("node {}: a program stored into the copy of file {}, but the node does not "
                    "hold the file's first copy: these stores are discarded",
                    node.address.name, file.value));
    return;
  }
  RaiseVersion(file, *inode, /*committed=*/false);
  NodeObject& object = ObjectOn(*inode->bytes, node.address.node);
  if (object.holds == ObjectHolds::kCopies) object.holds = ObjectHolds::kBoth;
  object.allocated_bytes = std::max(object.allocated_bytes, kPageBytes);
  inode->modify_time = inode->change_time = now_;
  ReviewCopiesLater(file, *inode);
  Touch(file);
  effects_.log.push_back(
      fmt::format("node {}: a program stored into file {} after its last close, and its mount has "
                  "ended: the file is now at version {}",
                  node.address.name, file.value, inode->data_version));
}

void ManagerCore::State::Handle(const NodeStreamLost& command) {
  Node* node = FindNode(command.node);
  if (!node) return;
  node->connected = false;
  ForgetCopiesBy(command.node);
}

void ManagerCore::State::SetNodeState(Node& node, NodeState state) {
  node.address.state = state == NodeState::kLive && node.draining ? NodeState::kDraining : state;
  node.silent_since = state == NodeState::kSilent ? std::optional(now_) : std::nullopt;
  node.given_up = false;
  // Some files need another first copy, or may be brought up to date.
  StartCopyScan();
  if (node.silent_since) Schedule(now_ + kNodeDeadAfter);
  OrderUncutDrops(node);
  effects_.log.push_back(
      state == NodeState::kSilent
          ? fmt::format("node {} is silent: not heard for 5 s", node.address.name)
          : fmt::format("node {} responds again", node.address.name));
  PushNodes();
}

// OK if the other nodes have room for everything that would have to move.
Status ManagerCore::State::MayDrain(const Node& node) const {
  uint64_t free_bytes = 0;
  size_t others = 0;
  for (const auto& [id, other] : nodes_) {
    if (id == node.address.node || !Stays(id) || !IsReachable(id)) continue;
    free_bytes += FreeBytes(other);
    ++others;
  }
  if (others == 0)
    return FailedPreconditionError(fmt::format(
        "node {} is the only one that takes files: start another one first", node.address.name));
  if (free_bytes < node.used_bytes)
    return ResourceExhaustedError(
        fmt::format("node {} holds {} bytes, and the {} other nodes have free space for {}: remove "
                    "files or add nodes",
                    node.address.name, node.used_bytes, others, free_bytes));
  return OkStatus();
}

void ManagerCore::State::Handle(const DrainNode& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  const auto known = node_names_.find(command.name);
  if (known == node_names_.end())
    return AnswerAdmin(NotFoundError(fmt::format("there is no node '{}'", command.name)));
  Node& node = nodes_.at(known->second);
  if (node.draining == command.drain) return AnswerAdmin(OkStatus());
  if (command.drain) {
    if (const Status status = MayDrain(node); !status.ok()) return AnswerAdmin(status);
  }
  node.draining = command.drain;
  node.files_left.reset();
  if (IsReachable(known->second))
    node.address.state = node.draining ? NodeState::kDraining : NodeState::kLive;
  effects_.log.push_back(fmt::format("node {} {}", node.address.name,
                                     node.draining ? "is being drained" : "takes files again"));
  WriteNode(node);
  PushNodes();
  StartCopyScan();
  space_changed_ = true;
  AnswerAdmin(OkStatus());
}

void ManagerCore::State::PushNodes() {
  if (sessions_.empty()) return;
  NodesPush push;
  push.nodes.reserve(nodes_.size());
  for (const auto& [id, node] : nodes_) push.nodes.push_back(node.address);
  for (const auto& [client, session] : sessions_) {
    if (!session.awaited) effects_.to_clients.push_back({client, Push(push)});
  }
}

void ManagerCore::State::SendOrder(NodeId node, NodeOrder order) {
  ToNode& to = effects_.to_nodes.emplace_back();
  to.node = node;
  to.message.emplace<NodeOrder>(std::move(order));
}

void ManagerCore::State::OrderDrop(const FileBytes& bytes, FileId file) {
  std::set<NodeId> nodes = NamedNodes(bytes);
  for (const NodeObject& object : bytes.objects) nodes.insert(object.node);
  for (const NodeId id : nodes) {
    // A node that is away reports its objects when it comes back.
    const Node* node = FindNode(id);
    if (node && node->connected) drops_[id].files.push_back(file);
  }
}

void ManagerCore::State::SendDrops() {
  for (auto& [id, order] : std::exchange(drops_, {})) {
    Node* const node = FindNode(id);
    if (node == nullptr) continue;
    order.number = ++node->drops_sent;
    SendOrder(id, std::move(order));
  }
}

}  // namespace mosa::manager
