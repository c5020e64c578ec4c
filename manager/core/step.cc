#include "manager/core/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mosa::manager {

void Step::Answer(Session& session, RequestId id, std::vector<Reply> replies) {
  effects.to_clients.push_back({session.start.client, ReplyEnvelope{id, std::move(replies), now}});
}

void Step::AnswerAdmin(Status status, uint64_t rule, bool settled) {
  effects.admin_reply = AdminReply{std::move(status), rule, settled};
}

void Step::Touch(FileId file) {
  changed = true;
  recharges.push_back(file);
  dirty.insert(file);
  touched.insert(file);
}

void Step::RefuseNode(const std::string& name, std::string message) {
  effects.frequent_log.push_back(message);
  effects.refused_nodes.push_back(
      {name, Refuse(StatusCode::kFailedPrecondition, ErrorReason::kInvalid, std::move(message))});
}

void Step::SendOrder(NodeId node, NodeOrder order) {
  ToNode& to = effects.to_nodes.emplace_back();
  to.node = node;
  to.message.emplace<NodeOrder>(std::move(order));
}

void Step::TouchAccess(FileId file, bool waits) {
  changed = true;
  dirty.insert(file);
  access_changed[file] |= waits;
}

// A tick that comes too early does no harm, one that comes too late does: the earliest time wins.
void Step::Schedule(Time at) { wake_at = std::min(wake_at, at); }

void Step::RefuseSession(ClientId client, StatusCode code, std::string message) {
  effects.frequent_log.push_back(fmt::format("session {:016x} refused: {}", client.value, message));
  effects.to_clients.push_back({client, Refuse(code, ErrorReason::kInvalid, std::move(message))});
}

}  // namespace mosa::manager
