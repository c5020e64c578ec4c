#include "manager/core/grants.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

void Grants::Release(Session& session) {
  for (const auto& [id, bytes] : std::exchange(session.grants, {})) {
    if (Node* node = nodes_.Find(id)) node->granted_bytes -= bytes;
    step_.space_changed = true;
  }
}

void Grants::GiveBack(Session& session, NodeId id, uint64_t bytes) {
  const auto held = session.grants.find(id);
  Node* node = nodes_.Find(id);
  if (held == session.grants.end() || !node) return;
  const uint64_t back = std::min(bytes, held->second);
  held->second -= back;
  node->granted_bytes -= back;
  if (held->second == 0) session.grants.erase(held);
  step_.space_changed = step_.space_changed || back > 0;
}

// The client has used these bytes, so they are no longer granted. The node's next measurements will
// include them.
void Grants::ReportConsumed(Session& session, NodeId id, uint64_t bytes) {
  Node* node = nodes_.Find(id);
  if (!node || bytes == 0) return;
  const auto held = session.grants.find(id);
  const uint64_t consumed = held == session.grants.end() ? 0 : std::min(bytes, held->second);
  GiveBack(session, id, consumed);
  node->consumed_bytes =
      std::min(node->consumed_bytes + std::min(bytes, node->limit_bytes), node->limit_bytes);
}

// Asks other clients for unused grants. Returns true if any client was asked, now or earlier.
bool Grants::RecallGrants(Node& node, ClientId except) {
  bool asked = false;
  for (auto& [client, session] : sessions_.by_client) {
    if (client == except || session.awaited || !session.grants.contains(node.address.node))
      continue;
    asked = true;
    const auto [asked_at, is_new] = node.grant_recalls.try_emplace(client, step_.now);
    if (!is_new && asked_at->second + kAskedAgainAfter > step_.now) continue;
    asked_at->second = step_.now;
    step_.effects.to_clients.push_back({client, Push(GrantRecallPush{node.address.node})});
  }
  return asked;
}

Reply Grants::Apply(const GrantRequest& request) {
  Session& session = *step_.actor;
  Node* node = nodes_.Find(request.node);
  if (!node)
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("there is no node {}", request.node.value));
  ReportConsumed(session, request.node, request.consumed_bytes);
  GiveBack(session, request.node, request.returned_bytes);
  node->grant_recalls.erase(session.start.client);
  if (node->address.state != NodeState::kLive) return GrantReply{};
  if (request.wanted_bytes == 0) return GrantReply{0, nodes_.FreeBytes(*node), node->limit_bytes};

  const uint64_t wanted = std::min(request.wanted_bytes, cluster_.options.grant_bytes);
  const uint64_t free_bytes = nodes_.FreeBytes(*node);
  // As room runs out, grants get smaller, so that no client takes the rest.
  const uint64_t fair = std::max(free_bytes / 4, std::min(free_bytes, kSmallGrantBytes));
  uint64_t granted = std::min(wanted, fair);
  if (granted < wanted) granted -= granted % kBlockBytes;
  if (granted < std::min(wanted, kSmallGrantBytes)) {
    const bool asked = RecallGrants(*node, session.start.client);
    // A request alone in its envelope may wait a moment for returned grants.
    if (asked && granted == 0 && step_.may_wait_for_space && step_.only_in_envelope) {
      step_.wait = Pending::Stage::kSpace;
      return EmptyReply{};
    }
  }
  session.grants[request.node] += granted;
  if (granted == 0 && session.grants[request.node] == 0) session.grants.erase(request.node);
  node->granted_bytes += granted;
  return GrantReply{granted, nodes_.FreeBytes(*node), node->limit_bytes};
}

Reply Grants::Apply(const StatFilesystemRequest&) {
  StatFilesystemReply reply;
  for (const auto& [id, node] : nodes_.by_id) {
    if (node.address.state != NodeState::kLive) continue;
    reply.limit_bytes += node.limit_bytes;
    reply.free_bytes += nodes_.FreeBytes(node);
  }
  // Inline bytes are on the manager: they count as present and used room.
  reply.limit_bytes += quotas_.all().inline_bytes;
  reply.files = files_.inodes.size();
  const uint64_t names_max = quotas_.options().all.names;
  const uint64_t names = quotas_.all().names;
  const bool is_full = quotas_.is_refused() || names >= names_max;
  reply.files_free = is_full ? 0 : std::min(names_max - names, kFilesFreeMax);
  return reply;
}

}  // namespace mosa::manager
