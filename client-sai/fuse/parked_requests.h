// ParkedRequests: a queue of requests about bytes, so that some workers are always free for others.
//
// Reads, writes and closes may wait for nodes. So only some of the workers may serve them at a
// time. Further ones are parked here, and the worker that received one goes on receiving.
#ifndef MOSA_CLIENT_SAI_FUSE_PARKED_REQUESTS_H_
#define MOSA_CLIENT_SAI_FUSE_PARKED_REQUESTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "client-sai/fuse/fuse_api.h"
#include "common/base/large_buffer.h"
#include "common/base/mutex.h"

namespace mosa::sai {

// The bytes of a request, and the memory that owns them.
struct ParkedRequest {
  std::vector<std::byte> small;
  LargeBuffer large;  // Used instead of `small`.
  size_t size_bytes = 0;
  std::chrono::steady_clock::time_point arrived{};

  void* data() { return large.data() != nullptr ? large.data() : small.data(); }
};

// Thread-safe.
class ParkedRequests {
 public:
  // At most `turns_max` turns are taken at a time, and at most `bytes_max` bytes are parked.
  ParkedRequests(uint32_t turns_max, uint64_t bytes_max)
      : turns_max_(turns_max), bytes_max_(bytes_max) {}

  bool TakeTurn();
  void EndTurn() { turns_.fetch_sub(1); }
  // Parks the request for the next turn; call NextWithTurn afterwards. False if there is no room:
  // `request` is unchanged, and the caller serves it without a turn.
  bool Park(ParkedRequest& request);
  // Returns the oldest request and takes a turn for it; nothing if there is no request or no turn.
  // Call it after each EndTurn, too.
  std::optional<ParkedRequest> NextWithTurn();
  uint64_t count() const { return count_.load(); }

 private:
  const uint32_t turns_max_;
  const uint64_t bytes_max_;
  std::atomic<uint32_t> turns_ = 0;
  std::atomic<uint64_t> count_ = 0;  // Size of parked_.
  SystemMutex mutex_;
  std::deque<ParkedRequest> parked_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_PARKED_REQUESTS_H_
