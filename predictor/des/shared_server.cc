#include "predictor/des/shared_server.h"

#include <algorithm>
#include <functional>

#include "common/base/check.h"
#include "common/base/rng.h"

namespace mosa::des {

SharedServer::SharedServer(EventLoop& loop, uint32_t servers)
    : loop_(loop), servers_(servers), advanced_at_(loop.now()) {
  MOSA_CHECK(servers > 0);
}

void SharedServer::Add(Duration work, std::coroutine_handle<> waiter) {
  Advance();
  offered_ = offered_ + work;
  jobs_.push_back({virtual_parts_ + work.ns * kPartsPerNs, sequence_++, waiter});
  std::push_heap(jobs_.begin(), jobs_.end(), std::greater<>());
  ExpectNext();
}

// Brings virtual time up to now.
void SharedServer::Advance() {
  const Time now = loop_.now();
  const auto jobs = static_cast<int64_t>(jobs_.size());
  if (jobs > 0) {
    const auto parts = static_cast<Wide>((now - advanced_at_).ns) * kPartsPerNs;
    virtual_parts_ += static_cast<int64_t>(parts * static_cast<Wide>(std::min(jobs, servers_)) /
                                           static_cast<Wide>(jobs));
  }
  advanced_at_ = now;
}

// Sees to it that an event comes no later than the next end. One that comes too early, since jobs
// were added meanwhile, looks again.
void SharedServer::ExpectNext() {
  if (jobs_.empty()) return;
  const auto jobs = static_cast<Wide>(jobs_.size());
  const Wide rate = std::min(jobs, static_cast<Wide>(servers_));
  const auto left =
      static_cast<Wide>(std::max<int64_t>(0, jobs_.front().end_parts - virtual_parts_));
  const Wide unit = static_cast<Wide>(kPartsPerNs) * rate;
  const Time at = loop_.now() + Nanoseconds(static_cast<int64_t>((left * jobs + unit - 1) / unit));
  if (expects_ && expected_at_ <= at) return;
  expects_ = true;
  expected_at_ = at;
  loop_.At(at, [this] { EndJobs(); });
}

void SharedServer::EndJobs() {
  // An event that was overtaken by an earlier one.
  if (!expects_ || loop_.now() != expected_at_) return;
  expects_ = false;
  Advance();
  while (!jobs_.empty() && jobs_.front().end_parts <= virtual_parts_) {
    std::pop_heap(jobs_.begin(), jobs_.end(), std::greater<>());
    const std::coroutine_handle<> waiter = jobs_.back().waiter;
    jobs_.pop_back();
    loop_.At(loop_.now(), [waiter] { waiter.resume(); });
  }
  ExpectNext();
}

}  // namespace mosa::des
