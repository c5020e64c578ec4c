#include "client-sai/sai/grants.h"

#include <fmt/format.h>

#include <chrono>
#include <variant>

#include "client-sai/api/wait_budget.h"
#include "common/base/sync.h"

namespace mosa::sai {

void Grants::Settle(NodeId node, const std::vector<Reply>& replies, GrantBook::Attempt* attempt) {
  const MutexLock lock(mutex_);
  const auto* reply = replies.empty() ? nullptr : std::get_if<GrantReply>(&replies.back());
  book_.Settle(node, reply, clock_.Monotonic(), attempt);
  answered_.notify_all();
}

Outcome<bool> Grants::CarryOut(Decision decide, NodeId node, uint64_t bytes) {
  // A request ahead of need is repeated until it is answered.
  const auto give_up = SteadyNow() + std::chrono::nanoseconds(WaitBudget::Patience().ns);
  GrantBook::Attempt attempt;
  MutexLock lock(mutex_);
  for (;;) {
    const GrantBook::Step step = (book_.*decide)(node, bytes, attempt, clock_.Monotonic());
    switch (step.next) {
      case GrantBook::Next::kDone:
        // Send never runs its callback on this thread, so the lock may be held.
        if (step.request)
          manager_.Send({*step.request},
                        [this, node](const auto& replies) { Settle(node, replies, nullptr); });
        return true;
      case GrantBook::Next::kRefused:
        return false;
      case GrantBook::Next::kWait:
        if (!answered_.wait_until(lock, give_up))
          return Failure{StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                         fmt::format("timed out waiting for the manager to grant space on node {}: "
                                     "check that the manager is running",
                                     node.value)};
        break;
      case GrantBook::Next::kAsk: {
        lock.unlock();
        const std::vector<Reply> replies =
            manager_.Call({*step.request}, WaitBudget::ForQuestion());
        Settle(node, replies, &attempt);
        if (const auto* failure = std::get_if<Failure>(&replies.back())) {
          if (failure->reason == ErrorReason::kNoSpace) return false;
          return *failure;
        }
        lock.lock();
      }
    }
  }
}

Outcome<bool> Grants::Take(NodeId node, uint64_t bytes) {
  return CarryOut(&GrantBook::Take, node, bytes);
}

bool Grants::Reserve(NodeId node, uint64_t bytes) {
  const Outcome<bool> reserved = CarryOut(&GrantBook::Reserve, node, bytes);
  return reserved.ok() && *reserved;
}

void Grants::PutBack(NodeId node, uint64_t bytes) {
  const MutexLock lock(mutex_);
  book_.PutBack(node, bytes);
}

void Grants::Charge(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes) {
  const MutexLock lock(mutex_);
  book_.Charge(node, used_bytes, reserved_bytes, clock_.Monotonic());
}

uint64_t Grants::TakeUnreported(NodeId node) {
  const MutexLock lock(mutex_);
  return book_.TakeUnreported(node);
}

void Grants::Unreserve(NodeId node, uint64_t bytes) {
  const MutexLock lock(mutex_);
  book_.Unreserve(node, bytes);
}

void Grants::GiveBack(const std::vector<NodeId>& nodes) {
  for (const NodeId node : nodes)
    if (const auto request = book_.GiveBack(node))
      manager_.Send({*request}, [](const std::vector<Reply>&) {});
}

void Grants::GiveBack(NodeId node) {
  const MutexLock lock(mutex_);
  GiveBack(std::vector{node});
}

void Grants::GiveBackIdle() {
  const MutexLock lock(mutex_);
  GiveBack(book_.Idle(clock_.Monotonic()));
}

void Grants::GiveBackAll() {
  const MutexLock lock(mutex_);
  GiveBack(book_.Nodes());
}

std::vector<HeldGrant> Grants::Held() const {
  const MutexLock lock(mutex_);
  return book_.Held();
}

void Grants::ForgetUnreported() {
  const MutexLock lock(mutex_);
  book_.ForgetUnreported();
}

}  // namespace mosa::sai
