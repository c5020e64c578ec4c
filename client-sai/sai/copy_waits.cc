#include "client-sai/sai/copy_waits.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr Duration kAskAgainAfter = Milliseconds(200);

}  // namespace

void CopyWaits::Wait(const AwaitCopiesRequest& request, Duration patience, Done done) {
  uint64_t ticket = 0;
  {
    const MutexLock lock(mutex_);
    ticket = next_ticket_++;
    AwaitCopiesReply unknown;
    unknown.copies_wanted = request.copies;
    unknown.reason = "the manager does not answer";
    waiters_.emplace(ticket, Waiter{.request = request,
                                    .wait = CopyWait(clock_.Monotonic(), patience),
                                    .last = std::move(unknown),
                                    .ask_again = {},
                                    .done = std::move(done)});
  }
  Ask(ticket, request);
}

void CopyWaits::Ask(uint64_t ticket, const AwaitCopiesRequest& request) {
  manager_.Send({request},
                [this, ticket](const std::vector<Reply>& replies) { OnReply(ticket, replies); });
}

void CopyWaits::OnReply(uint64_t ticket, const std::vector<Reply>& replies) {
  const auto* reply = replies.empty() ? nullptr : std::get_if<AwaitCopiesReply>(&replies.back());
  const auto* failure = replies.empty() ? nullptr : std::get_if<Failure>(&replies.back());
  const bool gone = failure != nullptr && failure->reason == ErrorReason::kStale;
  std::vector<Waiter> ended;
  AwaitCopiesRequest request;
  {
    const MutexLock lock(mutex_);
    const auto found = waiters_.find(ticket);
    if (found == waiters_.end()) return;  // It was overdue.
    Waiter& waiter = found->second;
    request = waiter.request;
    const Time now = clock_.Monotonic();
    if (reply == nullptr && !gone) {
      waiter.ask_again = now + kAskAgainAfter;
      return;
    }
    if (gone) {
      waiter.last.copies_wanted = waiter.last.copies_valid;
    } else {
      waiter.last = *reply;
    }
    if (waiter.wait.EndsWith(waiter.last, now)) {
      ended.push_back(std::move(waiter));
      waiters_.erase(found);
    }
  }
  if (ended.empty()) return Ask(ticket, request);
  End(ended);
}

void CopyWaits::EndOverdue() {
  std::vector<Waiter> ended;
  std::vector<std::pair<uint64_t, AwaitCopiesRequest>> again;
  {
    const MutexLock lock(mutex_);
    const Time now = clock_.Monotonic();
    for (auto it = waiters_.begin(); it != waiters_.end();) {
      Waiter& waiter = it->second;
      if (waiter.wait.IsOverdue(now)) {
        ended.push_back(std::move(waiter));
        it = waiters_.erase(it);
        continue;
      }
      if (waiter.ask_again && *waiter.ask_again <= now) {
        waiter.ask_again.reset();
        again.emplace_back(it->first, waiter.request);
      }
      ++it;
    }
  }
  for (const auto& [ticket, request] : again) Ask(ticket, request);
  End(ended);
}

void CopyWaits::EndAll() {
  std::vector<Waiter> ended;
  {
    const MutexLock lock(mutex_);
    for (auto& [ticket, waiter] : waiters_) ended.push_back(std::move(waiter));
    waiters_.clear();
  }
  End(ended);
}

void CopyWaits::End(const std::vector<Waiter>& ended) {
  for (const Waiter& waiter : ended) waiter.done(waiter.last);
}

}  // namespace mosa::sai
