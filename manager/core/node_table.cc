#include "manager/core/node_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr size_t kReasonBytesMax = 1000;

// Maximum delay between a node's message and the note of its arrival.
constexpr Duration kListingSlack = Seconds(5);

}  // namespace

// Returns " n1 n2", as far as a reason has room for it.
std::string NodeTable::NamesOf(const std::vector<NodeId>& nodes) const {
  std::string names;
  for (const NodeId node : nodes)
    if (names.size() < kReasonBytesMax && Find(node)) names += " " + NameOf(node);
  return names;
}

bool NodeTable::IsReachable(NodeId id) const {
  const Node* node = Find(id);
  return node &&
         (node->address.state == NodeState::kLive || node->address.state == NodeState::kDraining);
}

// Also true for a node that has been silent only briefly.
bool NodeTable::Stays(NodeId id) const {
  const Node* node = Find(id);
  return node && !node->draining && !node->given_up;
}

uint32_t NodeTable::CountStayingNodes() const {
  return static_cast<uint32_t>(std::count_if(
      by_id.begin(), by_id.end(), [this](const auto& entry) { return Stays(entry.first); }));
}

bool NodeTable::Answers(NodeId id) const {
  const Node* node = Find(id);
  return node && node->connected && IsReachable(id);
}

void NodeTable::WriteNode(const Node& node) {
  const NodeId id = node.address.node;
  step_.effects.writes.Put(
      NodeKey(id), Encode(NodeRecord{node.address, node.limit_bytes, node.draining, node.epoch}));
  const NodeNotesRecord notes{node.came_empty, node.settled_below};
  if (notes == NodeNotesRecord{}) {
    step_.effects.writes.Delete(NodeNotesKey(id));
  } else {
    step_.effects.writes.Put(NodeNotesKey(id), Encode(notes));
  }
}

Node* NodeTable::Find(NodeId id) {
  const auto found = by_id.find(id);
  return found == by_id.end() ? nullptr : &found->second;
}

const Node* NodeTable::Find(NodeId id) const {
  const auto found = by_id.find(id);
  return found == by_id.end() ? nullptr : &found->second;
}

NodeId NodeTable::NodeOfSession(const Session& session) const {
  if (session.start.node_name.empty()) return kNoNode;
  const auto found = by_name.find(session.start.node_name);
  return found == by_name.end() ? kNoNode : found->second;
}

void NodeTable::NoteStall(Duration time) {
  const Time begin = step_.now - time;
  if (begin - kListingSlack > stall_end) stall_begin = begin;
  stall_end = step_.now;
  for (auto& [id, node] : by_id) {
    node.last_heard = step_.now;
    if (node.silent_since) node.silent_since = *node.silent_since + time;
  }
}

// A node lists its objects after its last message; what was committed since may have been stored
// after the list was made. A message noted just after a stall may be older than the stall.
Time NodeTable::ListedAfter(const Node& node) const {
  const Time heard = node.last_heard - kListingSlack;
  return heard < stall_end ? std::min(heard, stall_begin - kListingSlack) : heard;
}

void NodeTable::ForgetWhoCameEmpty() {
  for (auto& [id, node] : by_id)
    if (std::exchange(node.came_empty, false)) WriteNode(node);
}

// OK if the other nodes have room for everything that would have to move.
Status NodeTable::MayDrain(const Node& node) const {
  uint64_t free_bytes = 0;
  size_t others = 0;
  for (const auto& [id, other] : by_id) {
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

void NodeTable::OrderDrop(const FileBytes& bytes, FileId file) {
  std::set<NodeId> nodes = NamedNodes(bytes);
  for (const NodeObject& object : bytes.objects) nodes.insert(object.node);
  for (const NodeId id : nodes) {
    // A node that is away reports its objects when it comes back.
    const Node* node = Find(id);
    if (node && node->connected) drops[id].files.push_back(file);
  }
}

void NodeTable::SendDrops() {
  for (auto& [id, order] : std::exchange(drops, {})) {
    Node* const node = Find(id);
    if (node == nullptr) continue;
    order.number = ++node->drops_sent;
    step_.SendOrder(id, std::move(order));
  }
}

uint64_t NodeTable::FreeBytes(const Node& node) const {
  const uint64_t taken =
      node.used_bytes + node.consumed_bytes + node.consumed_before_bytes + node.granted_bytes;
  return node.limit_bytes > taken ? node.limit_bytes - taken : 0;
}

ClusterView NodeTable::ViewFor(const Session* session, bool count_grants_of_others) const {
  ClusterView view;
  view.nodes.reserve(by_id.size());
  // All three are ordered by node id, so one pass suffices: a cluster may have thousands of nodes.
  static const std::map<NodeId, uint64_t> kNone;
  const std::map<NodeId, uint64_t>& grants = session ? session->grants : kNone;
  auto own = grants.begin();
  const std::map<NodeId, uint32_t>& anchored = groups_.anchored();
  auto anchor = anchored.begin();
  for (const auto& [id, node] : by_id) {
    while (own != grants.end() && own->first < id) ++own;
    while (anchor != anchored.end() && anchor->first < id) ++anchor;
    const uint64_t own_bytes = own != grants.end() && own->first == id ? own->second : 0;
    const uint64_t others_bytes = node.granted_bytes - own_bytes;
    const uint64_t free_bytes =
        FreeBytes(node) + own_bytes + (count_grants_of_others ? others_bytes : 0);
    NodeView& seen = view.nodes.emplace_back();
    seen.node = id;
    seen.name = node.address.name;
    seen.free_bytes = std::min(free_bytes, node.limit_bytes);
    seen.accepts = node.address.state == NodeState::kLive;
    seen.reclaimable_bytes = count_grants_of_others ? 0 : others_bytes;
    seen.groups = anchor != anchored.end() && anchor->first == id ? anchor->second : 0;
  }
  return view;
}

// Returns true if the node is to drop its object, and has not reported that it has.
bool NodeTable::IsUncutDrop(FileId file, NodeId id) const {
  const Node* const node = Find(id);
  return node && node->uncut.contains(file);
}

// What a mount still stores by an earlier layout must not make the object again.
Node::UncutDrop NodeTable::OrderUncutDrop(Node& node, FileId file, const FileBytes& bytes) {
  DropObjectsOrder& order = drops[node.address.node];
  order.files.push_back(file);
  order.generations[file] = bytes.generation;
  return {node.drops_sent + 1, step_.now};  // SendDrops() numbers the order so.
}

const std::string& NodeTable::NameOf(NodeId id) const {
  static const std::string kUnknown = "?";
  const Node* node = Find(id);
  return node ? node->address.name : kUnknown;
}

}  // namespace mosa::manager
