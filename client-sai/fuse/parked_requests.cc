#include "client-sai/fuse/parked_requests.h"

#include <utility>

#include "common/base/mutex.h"

namespace mosa::sai {
namespace {

// The memory that a request is charged for.
uint64_t MemoryOf(const ParkedRequest& request) {
  return request.large.data() != nullptr ? LargeBuffer::kBytes
                                         : request.small.size() + sizeof(ParkedRequest);
}

}  // namespace

bool ParkedRequests::TakeTurn() {
  uint32_t turns = turns_.load();
  while (turns < turns_max_)
    if (turns_.compare_exchange_weak(turns, turns + 1)) return true;
  return false;
}

bool ParkedRequests::Park(ParkedRequest& request) {
  const SystemMutexLock lock(mutex_);
  const uint64_t memory = MemoryOf(request);
  if (bytes_ + memory > bytes_max_) return false;
  bytes_ += memory;
  parked_.push_back(std::move(request));
  count_.fetch_add(1);
  return true;
}

// Park raises the count before it looks for a turn. EndTurn frees a turn before NextWithTurn looks
// at the count. So one of the two always finds the request.
std::optional<ParkedRequest> ParkedRequests::NextWithTurn() {
  if (count_.load() == 0 || !TakeTurn()) return std::nullopt;
  {
    const SystemMutexLock lock(mutex_);
    if (!parked_.empty()) {
      ParkedRequest next = std::move(parked_.front());
      parked_.pop_front();
      bytes_ -= MemoryOf(next);
      count_.fetch_sub(1);
      return next;
    }
  }
  EndTurn();
  return std::nullopt;
}

}  // namespace mosa::sai
