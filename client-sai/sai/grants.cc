#include "client-sai/sai/grants.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"

namespace mosa::sai {
namespace {

// A request ahead of need is repeated until it is answered.
std::chrono::steady_clock::time_point AnswerIsDue() {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(WaitBudget::ForQuestion().ns);
}

}  // namespace

GrantRequest Grants::Ask(NodeId node, Room& room, uint64_t bytes) {
  room.asking = true;
  return {node, bytes, std::exchange(room.unreported, 0), 0};
}

void Grants::Settle(NodeId node, const std::vector<Reply>& replies) {
  const std::lock_guard lock(mutex_);
  Room& room = rooms_[node];
  if (!replies.empty())
    if (const auto* reply = std::get_if<GrantReply>(&replies.back())) {
      room.held += reply->granted_bytes;
      room.heard = clock_.Monotonic();
      room.free_bytes = reply->free_bytes;
      room.limit_bytes = reply->limit_bytes;
    }
  room.asking = false;
  answered_.notify_all();
}

void Grants::AskAhead(NodeId node, Room& room) {
  if (room.asking || !GrantIsLow(room.held, room.last_wish)) return;
  room.last_wish = GrantWish(0, room.last_wish);
  const GrantRequest request = Ask(node, room, room.last_wish);
  // Send never runs its callback on this thread, so the lock may be held.
  manager_.Send({request}, [this, node](const std::vector<Reply>& r) { Settle(node, r); });
}

Outcome<bool> Grants::Take(NodeId node, uint64_t bytes) {
  if (bytes == 0) return true;
  const auto give_up = AnswerIsDue();
  std::unique_lock lock(mutex_);
  for (;;) {
    Room& room = rooms_[node];
    room.last_used = clock_.Monotonic();
    if (room.held >= bytes) {
      room.held -= bytes;
      room.unreported += bytes;
      AskAhead(node, room);
      return true;
    }
    if (room.asking) {
      if (answered_.wait_until(lock, give_up) == std::cv_status::timeout)
        return Failure{StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                       fmt::format("timed out waiting for the manager to grant space on node {}: "
                                   "check that the manager is running",
                                   node.value)};
      continue;
    }
    const uint64_t held_before = room.held;
    room.last_wish = GrantWish(bytes - room.held, room.last_wish);
    const GrantRequest request = Ask(node, room, room.last_wish);
    lock.unlock();
    const std::vector<Reply> replies = manager_.Call({request}, WaitBudget::ForQuestion());
    Settle(node, replies);
    if (const auto* failure = std::get_if<Failure>(&replies.back())) {
      if (failure->reason == ErrorReason::kNoSpace) return false;
      return *failure;
    }
    lock.lock();
    if (std::get<GrantReply>(replies.back()).granted_bytes == 0 && rooms_[node].held < bytes &&
        rooms_[node].held <= held_before)
      return false;
  }
}

void Grants::PutBack(NodeId node, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Room& room = rooms_[node];
  const uint64_t known = std::min(bytes, room.unreported);
  room.unreported -= known;
  room.held += known;
}

void Grants::Charge(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes) {
  const std::lock_guard lock(mutex_);
  Room& room = rooms_[node];
  room.reserved -= reserved_bytes;
  const uint64_t from_held = std::min(used_bytes - reserved_bytes, room.held);
  room.held -= from_held;
  room.unreported += reserved_bytes + from_held;
  room.last_used = clock_.Monotonic();
}

uint64_t Grants::TakeUnreported(NodeId node) {
  const std::lock_guard lock(mutex_);
  return std::exchange(rooms_[node].unreported, 0);
}

bool Grants::Reserve(NodeId node, uint64_t bytes) {
  const auto give_up = AnswerIsDue();
  std::unique_lock lock(mutex_);
  // The manager limits one grant, so ask until there is enough or nothing comes.
  for (;;) {
    Room& room = rooms_[node];
    if (room.asking) {
      if (answered_.wait_until(lock, give_up) == std::cv_status::timeout) return false;
      continue;
    }
    const Time now = clock_.Monotonic();
    room.last_used = now;
    if (room.heard && now - *room.heard <= kKnownFor) {
      const uint64_t available = room.held + room.free_bytes;
      if (available < bytes || !PassthroughWriteAllowed(available - bytes, room.limit_bytes))
        return false;
      if (room.held >= bytes) {
        room.held -= bytes;
        room.reserved += bytes;
        return true;
      }
    }
    const uint64_t held_before = room.held;
    const uint64_t wanted = bytes > room.held ? bytes - room.held : 0;
    const GrantRequest request = Ask(node, room, wanted);
    lock.unlock();
    const std::vector<Reply> replies = manager_.Call({request}, WaitBudget::ForQuestion());
    Settle(node, replies);
    if (replies.empty() || !std::holds_alternative<GrantReply>(replies.back())) return false;
    lock.lock();
    if (wanted > 0 && rooms_[node].held <= held_before) return false;
  }
}

void Grants::Unreserve(NodeId node, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Room& room = rooms_[node];
  room.reserved -= bytes;
  room.held += bytes;
}

void Grants::GiveBack(NodeId node) {
  const std::lock_guard lock(mutex_);
  Room& room = rooms_[node];
  if (room.held == 0 && room.unreported == 0) return;
  const GrantRequest request{node, 0, std::exchange(room.unreported, 0),
                             std::exchange(room.held, 0)};
  room.last_wish = 0;
  manager_.Send({request}, [](const std::vector<Reply>&) {});
}

void Grants::GiveBackIdle() {
  std::vector<NodeId> idle;
  {
    const std::lock_guard lock(mutex_);
    const Time now = clock_.Monotonic();
    for (const auto& [node, room] : rooms_)
      if (room.held + room.unreported > 0 && now - room.last_used >= kIdleAfter)
        idle.push_back(node);
  }
  for (const NodeId node : idle) GiveBack(node);
}

void Grants::GiveBackAll() {
  std::vector<NodeId> nodes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [node, room] : rooms_) nodes.push_back(node);
  }
  for (const NodeId node : nodes) GiveBack(node);
}

std::vector<HeldGrant> Grants::Held() const {
  const std::lock_guard lock(mutex_);
  std::vector<HeldGrant> held;
  for (const auto& [node, room] : rooms_)
    if (room.held + room.reserved > 0) held.push_back({node, room.held + room.reserved});
  return held;
}

void Grants::ForgetUnreported() {
  const std::lock_guard lock(mutex_);
  for (auto& [node, room] : rooms_) room.unreported = 0;
}

}  // namespace mosa::sai
