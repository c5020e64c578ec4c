// Room on nodes: free = limit - used - granted, per node.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr uint64_t kBlockBytes = 4096;
// Programs add these values up.
constexpr uint64_t kFilesFreeMax = uint64_t{1} << 32;
// A client without unused room when asked may have some later: it is asked again after this.
constexpr Duration kAskedAgainAfter = Seconds(1);
// A grant below this size, when more was wanted, means that the node is short of room.
constexpr uint64_t kSmallGrantBytes = 1 << 20;

}  // namespace

uint64_t ManagerCore::State::FreeBytes(const Node& node) const {
  const uint64_t taken =
      node.used_bytes + node.consumed_bytes + node.consumed_before_bytes + node.granted_bytes;
  return node.limit_bytes > taken ? node.limit_bytes - taken : 0;
}

ClusterView ManagerCore::State::ViewFor(const Session* session, bool count_grants_of_others) const {
  ClusterView view;
  view.nodes.reserve(nodes_.size());
  // All three are ordered by node id, so one pass suffices: a cluster may have thousands of nodes.
  static const std::map<NodeId, uint64_t> kNone;
  const std::map<NodeId, uint64_t>& grants = session ? session->grants : kNone;
  auto own = grants.begin();
  const std::map<NodeId, uint32_t>& anchored = groups_.anchored();
  auto anchor = anchored.begin();
  for (const auto& [id, node] : nodes_) {
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

void ManagerCore::State::GiveBack(Session& session, NodeId id, uint64_t bytes) {
  const auto held = session.grants.find(id);
  Node* node = FindNode(id);
  if (held == session.grants.end() || !node) return;
  const uint64_t back = std::min(bytes, held->second);
  held->second -= back;
  node->granted_bytes -= back;
  if (held->second == 0) session.grants.erase(held);
  space_changed_ = space_changed_ || back > 0;
}

// The client has used these bytes, so they are no longer granted. The node's next measurements will
// include them.
void ManagerCore::State::ReportConsumed(Session& session, NodeId id, uint64_t bytes) {
  Node* node = FindNode(id);
  if (!node || bytes == 0) return;
  const auto held = session.grants.find(id);
  const uint64_t consumed = held == session.grants.end() ? 0 : std::min(bytes, held->second);
  GiveBack(session, id, consumed);
  node->consumed_bytes =
      std::min(node->consumed_bytes + std::min(bytes, node->limit_bytes), node->limit_bytes);
}

// Asks other clients for unused grants. Returns true if any client was asked, now or earlier.
bool ManagerCore::State::RecallGrants(Node& node, ClientId except) {
  bool asked = false;
  for (auto& [client, session] : sessions_) {
    if (client == except || session.awaited || !session.grants.contains(node.address.node))
      continue;
    asked = true;
    const auto [asked_at, is_new] = node.grant_recalls.try_emplace(client, now_);
    if (!is_new && asked_at->second + kAskedAgainAfter > now_) continue;
    asked_at->second = now_;
    effects_.to_clients.push_back({client, Push(GrantRecallPush{node.address.node})});
  }
  return asked;
}

Reply ManagerCore::State::Apply(const GrantRequest& request) {
  Session& session = actor();
  Node* node = FindNode(request.node);
  if (!node)
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("there is no node {}", request.node.value));
  ReportConsumed(session, request.node, request.consumed_bytes);
  GiveBack(session, request.node, request.returned_bytes);
  node->grant_recalls.erase(session.start.client);
  if (node->address.state != NodeState::kLive) return GrantReply{};
  if (request.wanted_bytes == 0) return GrantReply{0, FreeBytes(*node), node->limit_bytes};

  const uint64_t wanted = std::min(request.wanted_bytes, options_.grant_bytes);
  const uint64_t free_bytes = FreeBytes(*node);
  // As room runs out, grants get smaller, so that no client takes the rest.
  const uint64_t fair = std::max(free_bytes / 4, std::min(free_bytes, kSmallGrantBytes));
  uint64_t granted = std::min(wanted, fair);
  if (granted < wanted) granted -= granted % kBlockBytes;
  if (granted < std::min(wanted, kSmallGrantBytes)) {
    const bool asked = RecallGrants(*node, session.start.client);
    // A request alone in its envelope may wait a moment for returned grants.
    if (asked && granted == 0 && may_wait_for_space_ && only_in_envelope_) {
      wait_ = Pending::Stage::kSpace;
      return EmptyReply{};
    }
  }
  session.grants[request.node] += granted;
  if (granted == 0 && session.grants[request.node] == 0) session.grants.erase(request.node);
  node->granted_bytes += granted;
  return GrantReply{granted, FreeBytes(*node), node->limit_bytes};
}

// Reruns waiting grant requests: all of them when room may have come back (they may go on waiting),
// else those that have waited long enough (they are answered with what there is).
void ManagerCore::State::RetrySpaceWaiters(bool only_expired) {
  if (space_queue_.empty()) return;
  std::deque<Waiter> queue = std::exchange(space_queue_, {});
  for (const Waiter& waiter : queue) {
    Session* session = FindSession(waiter.client);
    if (!session) continue;
    const auto found = session->pending.find(waiter.request);
    if (found == session->pending.end() || found->second.stage != Pending::Stage::kSpace) continue;
    const Time deadline = found->second.deadline;
    const bool expired = deadline <= now_;
    if (only_expired && !expired) {
      Schedule(deadline);
      space_queue_.push_back(waiter);
      continue;
    }
    RequestEnvelope envelope = std::move(found->second.envelope);
    session->pending.erase(found);
    may_wait_for_space_ = !expired;
    RunEnvelope(*session, envelope);
    may_wait_for_space_ = true;
    const auto again = session->pending.find(waiter.request);
    if (again != session->pending.end()) again->second.deadline = deadline;
  }
}

Reply ManagerCore::State::Apply(const StatFilesystemRequest&) {
  StatFilesystemReply reply;
  for (const auto& [id, node] : nodes_) {
    if (node.address.state != NodeState::kLive) continue;
    reply.limit_bytes += node.limit_bytes;
    reply.free_bytes += FreeBytes(node);
  }
  // Inline bytes are on the manager: they count as present and used room.
  reply.limit_bytes += quotas_.all().inline_bytes;
  reply.files = inodes_.size();
  const uint64_t names_max = quotas_.options().all.names;
  const uint64_t names = quotas_.all().names;
  const bool is_full = quotas_.is_refused() || names >= names_max;
  reply.files_free = is_full ? 0 : std::min(names_max - names, kFilesFreeMax);
  return reply;
}

}  // namespace mosa::manager
