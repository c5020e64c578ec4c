#include "predictor/run/simulated_grants.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace mosa::predict {

des::Activity<void> SimulatedGrants::Ask(GrantRequest request, sai::GrantBook::Attempt* attempt) {
  std::vector<Request> requests;
  requests.emplace_back(request);
  const std::vector<Reply> replies = co_await manager_.Call(client_, std::move(requests));
  const auto* reply = replies.empty() ? nullptr : std::get_if<GrantReply>(&replies.back());
  book_.Settle(request.node, reply, loop_.now(), attempt);
  answered_.Give();
}

des::Activity<bool> SimulatedGrants::CarryOut(Decision decide, NodeId node, uint64_t bytes) {
  sai::GrantBook::Attempt attempt;
  for (;;) {
    const sai::GrantBook::Step step = (book_.*decide)(node, bytes, attempt, loop_.now());
    switch (step.next) {
      case sai::GrantBook::Next::kDone:
        if (step.request) des::Spawn(loop_, Ask(*step.request, nullptr));
        co_return true;
      case sai::GrantBook::Next::kRefused:
        co_return false;
      case sai::GrantBook::Next::kWait:
        co_await answered_.Wait();
        break;
      case sai::GrantBook::Next::kAsk:
        co_await Ask(*step.request, &attempt);
    }
  }
}

bool SimulatedGrants::TakeHeld(NodeId node, uint64_t bytes) {
  std::optional<GrantRequest> ahead;
  if (!book_.TakeHeld(node, bytes, loop_.now(), ahead)) return false;
  if (ahead) des::Spawn(loop_, Ask(*ahead, nullptr));
  return true;
}

void SimulatedGrants::Settle(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes) {
  book_.Charge(node, used_bytes, used_bytes, loop_.now());
  book_.Unreserve(node, reserved_bytes - used_bytes);
}

void SimulatedGrants::GiveBack(NodeId node) {
  if (const auto request = book_.GiveBack(node)) manager_.Send(client_, {*request});
}

void SimulatedGrants::GiveBackIdle() {
  for (const NodeId node : book_.Idle(loop_.now())) GiveBack(node);
}

}  // namespace mosa::predict
