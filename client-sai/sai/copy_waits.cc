#include "client-sai/sai/copy_waits.h"

#include <utility>
#include <variant>

namespace mosa::sai {
namespace {

constexpr Duration kAskAgainAfter = Milliseconds(200);

}  // namespace

void CopyWaits::Wait(const AwaitCopiesRequest& request, Time until, Done done) {
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = next_ticket_++;
    waiters_[ticket] = {request, until, {.copies_wanted = request.copies}, {}, std::move(done)};
  }
  Ask(ticket, request);
}

void CopyWaits::Ask(uint64_t ticket, const AwaitCopiesRequest& request) {
  manager_.Send({request},
                [this, ticket](const std::vector<Reply>& replies) { OnReply(ticket, replies); });
}

void CopyWaits::OnReply(uint64_t ticket, const std::vector<Reply>& replies) {
  const auto* reply = replies.empty() ? nullptr : std::get_if<AwaitCopiesReply>(&replies.back());
  std::vector<Waiter> ended;
  AwaitCopiesRequest request;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiters_.find(ticket);
    if (found == waiters_.end()) return;  // It was overdue.
    Waiter& waiter = found->second;
    request = waiter.request;
    if (reply == nullptr) {
      waiter.ask_again = clock_.Monotonic() + kAskAgainAfter;
      return;
    }
    waiter.last = *reply;
    const bool settled = reply->copies_valid >= reply->copies_wanted || !reply->more;
    if (settled || clock_.Monotonic() >= waiter.until) {
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
    const std::lock_guard lock(mutex_);
    const Time now = clock_.Monotonic();
    for (auto it = waiters_.begin(); it != waiters_.end();) {
      Waiter& waiter = it->second;
      if (waiter.until <= now) {
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
    const std::lock_guard lock(mutex_);
    for (auto& [ticket, waiter] : waiters_) ended.push_back(std::move(waiter));
    waiters_.clear();
  }
  End(ended);
}

void CopyWaits::End(const std::vector<Waiter>& ended) {
  for (const Waiter& waiter : ended) waiter.done(waiter.last);
}

}  // namespace mosa::sai
