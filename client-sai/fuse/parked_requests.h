// ParkedRequests: requests about bytes that wait for a worker, so that others are always served.
//
// Reads, writes and closes may wait for nodes. So only a part of the workers may be at those; the
// rest of the requests about bytes is kept here, and the worker that read them from the kernel
// reads on.
#ifndef MOSA_CLIENT_SAI_FUSE_PARKED_REQUESTS_H_
#define MOSA_CLIENT_SAI_FUSE_PARKED_REQUESTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "client-sai/fuse/fuse_api.h"
#include "common/base/large_buffer.h"

namespace mosa::sai {

// The bytes of a request, and whose they are.
struct ParkedRequest {
  std::vector<std::byte> small;
  LargeBuffer large;  // Instead of `small`.
  size_t size_bytes = 0;
  std::chrono::steady_clock::time_point arrived{};

  void* data() { return large.data() != nullptr ? large.data() : small.data(); }
};

// Thread-safe.
class ParkedRequests {
 public:
  // At most `turns_max` at once have a turn; at most `bytes_max` are parked.
  ParkedRequests(uint32_t turns_max, uint64_t bytes_max)
      : turns_max_(turns_max), bytes_max_(bytes_max) {}

  bool TakeTurn();
  void EndTurn() { turns_.fetch_sub(1); }
  // Keeps the request for whoever has a turn next: call NextWithTurn after it. False: there is no
  // room, and the caller serves it without a turn. `request` is unchanged then.
  bool Park(ParkedRequest& request);
  // The oldest one, with a turn for it; nothing if there is none, or no turn. To be called after
  // each EndTurn, too.
  std::optional<ParkedRequest> NextWithTurn();
  uint64_t count() const { return count_.load(); }

 private:
  const uint32_t turns_max_;
  const uint64_t bytes_max_;
  std::atomic<uint32_t> turns_ = 0;
  std::atomic<uint64_t> count_ = 0;  // Size of parked_.
  std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<ParkedRequest> parked_;
  uint64_t bytes_ = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_PARKED_REQUESTS_H_
