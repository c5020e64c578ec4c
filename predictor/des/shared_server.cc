#include "predictor/des/shared_server.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/base/rng.h"

namespace mosa::des {
namespace {

// Returns (value * factor + more) / divisor, rounded down. Precondition: none is negative, and more
// < divisor.
int64_t MulDiv(int64_t value, int64_t factor, int64_t divisor, int64_t more) {
  int64_t all = 0;
  if (!__builtin_mul_overflow(value, factor, &all) && !__builtin_add_overflow(all, more, &all))
    return all / divisor;
  return static_cast<int64_t>(
      (static_cast<Wide>(value) * static_cast<Wide>(factor) + static_cast<Wide>(more)) /
      static_cast<Wide>(divisor));
}

}  // namespace

SharedServer::SharedServer(EventLoop& loop, uint32_t servers, Duration credit_max)
    : loop_(loop),
      servers_(servers),
      credit_max_(credit_max),
      credit_(credit_max),
      advanced_at_(loop.now()) {
  MOSA_CHECK(servers == 1 || (servers > 0 && credit_max.ns == 0));
}

void SharedServer::Add(Duration work, std::coroutine_handle<> waiter, Join* join, int64_t weight) {
  Advance();
  offered_ = offered_ + work;
  // A job with work left has used up the credit, which grows only while there is no job.
  const Duration at_once = std::min(work, credit_);
  credit_ = credit_ - at_once;
  done_ = done_ + at_once;
  const int64_t parts = (work - at_once).ns * kPartsPerNs;
  const int64_t virtual_work =
      weight == kEvenWeight ? parts : MulDiv(parts, kEvenWeight, weight, weight - 1);
  jobs_.push_back({virtual_parts_ + virtual_work, sequence_++, waiter, join, weight});
  weights_ += weight;
  std::push_heap(jobs_.begin(), jobs_.end(), std::greater<>());
  ExpectNext();
}

// Work done since the last Advance(). It may be slightly too much, since ends are rounded up to
// whole nanoseconds.
Duration SharedServer::DoneSince() const {
  const auto busy = std::min(static_cast<int64_t>(jobs_.size()), servers_);
  return Nanoseconds((loop_.now() - advanced_at_).ns * busy);
}

// Brings virtual time up to now. It runs at the rate at which a job of even weight is served.
void SharedServer::Advance() {
  const Time now = loop_.now();
  done_ = done_ + DoneSince();
  if (!jobs_.empty()) {
    const int64_t parts = (now - advanced_at_).ns * kPartsPerNs;
    virtual_parts_ += IsShared() ? MulDiv(parts, servers_ * kEvenWeight, weights_, 0) : parts;
  } else {
    credit_ = std::min(credit_max_, credit_ + (now - advanced_at_));
  }
  advanced_at_ = now;
}

// Ensures an event no later than the next end. An event that is too early, since jobs were added
// meanwhile, checks again.
void SharedServer::ExpectNext() {
  if (jobs_.empty()) return;
  const int64_t even = servers_ * kEvenWeight;
  int64_t parts = std::max<int64_t>(0, jobs_.front().end_parts - virtual_parts_);
  if (IsShared()) parts = MulDiv(parts, weights_, even, even - 1);
  const Time at = loop_.now() + Nanoseconds((parts + kPartsPerNs - 1) / kPartsPerNs);
  if (expects_ && expected_at_ <= at) return;
  expects_ = true;
  expected_at_ = at;
  loop_.RingAt(at, *this);
}

// Removes the first job, which has ended. Returns the waiter to resume, or null.
std::coroutine_handle<> SharedServer::TakeEnded() {
  std::pop_heap(jobs_.begin(), jobs_.end(), std::greater<>());
  const Job job = jobs_.back();
  jobs_.pop_back();
  weights_ -= job.weight;
  if (job.join == nullptr) return job.waiter;
  return --job.join->under_way_ == 0 ? std::exchange(job.join->waiter_, nullptr) : nullptr;
}

void SharedServer::Ring() {
  // Superseded by an earlier event.
  if (!expects_ || loop_.now() != expected_at_) return;
  expects_ = false;
  Advance();
  std::coroutine_handle<> last;
  while (!jobs_.empty() && jobs_.front().end_parts <= virtual_parts_) {
    if (last) loop_.ResumeAt(loop_.now(), last);
    last = TakeEnded();
  }
  if (jobs_.empty()) done_ = offered_;
  ExpectNext();
  if (last) loop_.ResumeLast(last);
}

}  // namespace mosa::des
