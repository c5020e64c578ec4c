#include "manager/core/node_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mosa::manager {
namespace {

constexpr size_t kNodesMax = 4096;  // The limit of clients and of the protocol.
constexpr size_t kNodeTextBytesMax = 4096;

}  // namespace

std::optional<std::string> NodeEvents::WhyRefused(const NodeRegistration& registration) const {
  const std::string& name = registration.name;
  if (name.empty() || name.find_first_of(std::string_view(",\0", 2)) != std::string::npos ||
      std::max({name.size(), registration.address.size(), registration.socket_path.size(),
                registration.host_identity.size()}) > kNodeTextBytesMax)
    return "a node's name must not be empty or contain a comma or NUL, and its texts must have at "
           "most 4096 bytes";
  if (!registration.cluster_name.empty() &&
      registration.cluster_name != cluster_.record.cluster_name)
    return fmt::format(
        "node {}: its object directory belongs to cluster '{}', not to '{}'; give it another "
        "directory",
        name, registration.cluster_name, cluster_.record.cluster_name);
  const auto known = nodes_.by_name.find(name);
  if (known == nodes_.by_name.end()) {
    if (nodes_.by_id.size() < kNodesMax) return std::nullopt;
    return fmt::format("node {}: {} nodes are already known, which is the limit", name,
                       nodes_.by_id.size());
  }
  const Node& node = nodes_.by_id.at(known->second);
  if (node.address.incarnation == registration.incarnation || !node.connected ||
      !nodes_.IsReachable(known->second))
    return std::nullopt;
  return fmt::format("node {}: another live node at {} has that name; give each node its own name",
                     name, node.address.address);
}

void NodeEvents::Handle(const RegisterNode& command) {
  const NodeRegistration& registration = command.registration;
  const std::string& name = registration.name;
  if (const auto why = WhyRefused(registration)) return step_.RefuseNode(name, *why);
  const auto known = nodes_.by_name.find(name);
  const bool new_incarnation =
      known != nodes_.by_name.end() &&
      nodes_.by_id.at(known->second).address.incarnation != registration.incarnation;
  const NodeId id =
      known != nodes_.by_name.end() ? known->second : NodeId(cluster_.record.next_node_id++);
  step_.cluster_dirty = true;
  nodes_.by_name.insert_or_assign(name, id);
  Node& node = nodes_.by_id[id];
  if (new_incarnation || known == nodes_.by_name.end()) cluster_.BeginEpoch(node);
  // A new incarnation has none of the earlier objects.
  const Time listed_after = new_incarnation ? Step::kNever : nodes_.ListedAfter(node);
  if (new_incarnation) generations_.LoseUncommittedOf(node);
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
  node.last_heard = step_.now;
  step_.Schedule(step_.now + kNodeDeadAfter);
  nodes_.WriteNode(node);
  ToNode& answer = step_.effects.to_nodes.emplace_back();
  answer.node = id;
  answer.message = NodeRegistered{.node = id,
                                  .cluster_name = cluster_.record.cluster_name,
                                  .capability_key = {},
                                  .now = step_.now,
                                  .epoch = node.epoch};
  step_.effects.frequent_log.push_back(
      fmt::format("node {} at {} registers with {} objects{}", name, registration.address,
                  registration.objects.size(), new_incarnation ? "; it has restarted" : ""));
  uncut_objects_.TakeFrom(node, new_incarnation);
  const std::set<FileId> present = recovery_rules_.TakeObjects(id, registration);
  if (new_incarnation) nodes_.cut_objects.erase(id);
  // As above: a new incarnation has none of the earlier objects.
  generations_.LoseObjectsOf(id, new_incarnation ? std::set<FileId>() : present, listed_after);
  copy_queue_.ForgetBy(id);
  copy_queue_.StartScan();
  sessions_.PushNodes();
  step_.space_changed = true;
}

void NodeEvents::Handle(const NodeReport& command) {
  Node* node = nodes_.Find(command.node);
  if (!node || !node->connected) return;
  const NodeHeartbeat& heartbeat = command.heartbeat;
  node->last_heard = step_.now;
  node->used_bytes = heartbeat.used_bytes;
  node->limit_bytes = heartbeat.limit_bytes;
  // A drop triggers a heartbeat at once; its `used_bytes` may predate what clients have reported.
  if (heartbeat.measurements != node->last_heartbeat.measurements)
    node->consumed_before_bytes = std::exchange(node->consumed_bytes, 0);
  for (const FileId file : heartbeat.healed_objects) generations_.NoteHealed(command.node, file);
  for (const FileId file : heartbeat.corrupt_objects) generations_.NoteDamage(command.node, file);
  for (const FileId file : heartbeat.untold_objects) generations_.TakeUntold(*node, file);
  node->last_heartbeat = heartbeat;
  node->last_heartbeat.corrupt_objects.clear();
  node->last_heartbeat.healed_objects.clear();
  node->last_heartbeat.untold_objects.clear();
  if (node->address.state == NodeState::kSilent) SetNodeState(*node, NodeState::kLive);
  uncut_objects_.NoteDropsDone(*node, heartbeat.drops_done);
  step_.Schedule(step_.now + kNodeDeadAfter);
  if (!queues_.space.empty()) step_.space_changed = true;
}

void NodeEvents::Handle(const NodeStreamLost& command) {
  Node* node = nodes_.Find(command.node);
  if (!node) return;
  node->connected = false;
  copy_queue_.ForgetBy(command.node);
}

void NodeEvents::SetNodeState(Node& node, NodeState state) {
  node.address.state = state == NodeState::kLive && node.draining ? NodeState::kDraining : state;
  node.silent_since = state == NodeState::kSilent ? std::optional(step_.now) : std::nullopt;
  node.given_up = false;
  // Some files need another first copy, or may be brought up to date.
  copy_queue_.StartScan();
  if (node.silent_since) step_.Schedule(step_.now + kNodeDeadAfter);
  uncut_objects_.OrderDrops(node);
  step_.effects.log.push_back(
      state == NodeState::kSilent
          ? fmt::format("node {} is silent: not heard for 5 s", node.address.name)
          : fmt::format("node {} responds again", node.address.name));
  sessions_.PushNodes();
}

void NodeEvents::Handle(const DrainNode& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  const auto known = nodes_.by_name.find(command.name);
  if (known == nodes_.by_name.end())
    return step_.AnswerAdmin(NotFoundError(fmt::format("there is no node '{}'", command.name)));
  Node& node = nodes_.by_id.at(known->second);
  if (node.draining == command.drain) return step_.AnswerAdmin(OkStatus());
  if (command.drain) {
    if (const Status status = nodes_.MayDrain(node); !status.ok()) return step_.AnswerAdmin(status);
  }
  node.draining = command.drain;
  node.files_left.reset();
  if (nodes_.IsReachable(known->second))
    node.address.state = node.draining ? NodeState::kDraining : NodeState::kLive;
  step_.effects.log.push_back(fmt::format(
      "node {} {}", node.address.name, node.draining ? "is being drained" : "takes files again"));
  nodes_.WriteNode(node);
  sessions_.PushNodes();
  copy_queue_.StartScan();
  step_.space_changed = true;
  step_.AnswerAdmin(OkStatus());
}

}  // namespace mosa::manager
