#include "predictor/run/simulated_grants.h"

#include <algorithm>
#include <utility>

#include "client-sai/core/rules.h"

namespace mosa::predict {
namespace {

// As in sai::Grants.
constexpr Duration kIdleAfter = Seconds(5);
constexpr Duration kKnownFor = Seconds(1);

}  // namespace

// Asks the manager for more room. Precondition: !room.asking.
des::Activity<void> SimulatedGrants::Ask(NodeId node, uint64_t bytes) {
  Room& room = rooms_[node];
  room.asking = true;
  std::vector<Request> requests;
  requests.emplace_back(GrantRequest{node, bytes, std::exchange(room.unreported, 0), 0});
  const std::vector<Reply> replies = co_await manager_.Call(client_, std::move(requests));
  if (const auto* reply = replies.empty() ? nullptr : std::get_if<GrantReply>(&replies.back())) {
    room.held += reply->granted_bytes;
    room.heard = true;
    room.heard_at = loop_.now();
    room.free_bytes = reply->free_bytes;
    room.limit_bytes = reply->limit_bytes;
  }
  room.asking = false;
  answered_.Give();
}

bool SimulatedGrants::TakeHeld(NodeId node, uint64_t bytes) {
  Room& room = rooms_[node];
  room.last_used = loop_.now();
  if (room.held < bytes) return false;
  room.held -= bytes;
  room.unreported += bytes;
  if (!room.asking && sai::GrantIsLow(room.held, room.last_wish)) {
    room.last_wish = sai::GrantWish(0, room.last_wish);
    des::Spawn(loop_, Ask(node, room.last_wish));
  }
  return true;
}

des::Activity<bool> SimulatedGrants::Take(NodeId node, uint64_t bytes) {
  Room& room = rooms_[node];
  for (;;) {
    if (TakeHeld(node, bytes)) co_return true;
    if (room.asking) {
      co_await answered_.Wait();
      continue;
    }
    const uint64_t held_before = room.held;
    room.last_wish = sai::GrantWish(bytes - room.held, room.last_wish);
    co_await Ask(node, room.last_wish);
    if (room.held < bytes && room.held <= held_before) co_return false;
  }
}

void SimulatedGrants::PutBack(NodeId node, uint64_t bytes) {
  Room& room = rooms_[node];
  const uint64_t back = std::min(bytes, room.unreported);
  room.unreported -= back;
  room.held += back;
}

// Decides from the manager's last, recent answer whether the kernel may write `bytes` directly.
// `*refused`: certainly not.
bool SimulatedGrants::KnowsEnough(const Room& room, uint64_t bytes, bool* refused) const {
  *refused = false;
  if (!room.heard || loop_.now() - room.heard_at > kKnownFor) return false;
  const uint64_t available = room.held + room.free_bytes;
  *refused =
      available < bytes || !sai::PassthroughWriteAllowed(available - bytes, room.limit_bytes);
  return !*refused && room.held >= bytes;
}

des::Activity<bool> SimulatedGrants::Reserve(NodeId node, uint64_t bytes) {
  Room& room = rooms_[node];
  for (;;) {
    if (room.asking) {
      co_await answered_.Wait();
      continue;
    }
    room.last_used = loop_.now();
    bool refused = false;
    if (KnowsEnough(room, bytes, &refused)) {
      room.held -= bytes;
      co_return true;
    }
    if (refused) co_return false;
    const uint64_t held_before = room.held;
    const uint64_t wanted = bytes > room.held ? bytes - room.held : 0;
    co_await Ask(node, wanted);
    if (!room.heard || room.heard_at != loop_.now()) co_return false;
    if (wanted > 0 && room.held <= held_before) co_return false;
  }
}

void SimulatedGrants::Settle(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes) {
  Room& room = rooms_[node];
  const uint64_t from_held =
      used_bytes > reserved_bytes ? std::min(used_bytes - reserved_bytes, room.held) : 0;
  room.held += reserved_bytes - std::min(used_bytes, reserved_bytes);
  room.held -= from_held;
  room.unreported += std::min(used_bytes, reserved_bytes) + from_held;
  room.last_used = loop_.now();
}

uint64_t SimulatedGrants::TakeUnreported(NodeId node) {
  return std::exchange(rooms_[node].unreported, 0);
}

void SimulatedGrants::GiveBack(NodeId node) {
  Room& room = rooms_[node];
  if (room.held == 0 && room.unreported == 0) return;
  std::vector<Request> requests;
  requests.emplace_back(
      GrantRequest{node, 0, std::exchange(room.unreported, 0), std::exchange(room.held, 0)});
  room.last_wish = 0;
  manager_.Send(client_, std::move(requests));
}

void SimulatedGrants::GiveBackIdle() {
  for (auto& [node, room] : rooms_)
    if (room.held + room.unreported > 0 && loop_.now() - room.last_used >= kIdleAfter)
      GiveBack(node);
}

}  // namespace mosa::predict
