#include "client-sai/core/read_ahead.h"

#include <algorithm>

namespace mosa::sai {
namespace {

// Several of the kernel's largest reads, which its threads may deliver in any order.
constexpr uint64_t kNearBytes = 4 << 20;
constexpr uint64_t kFirstWindowBytes = 1 << 20;
// A program that starts inside a file may want only a part of it. This much is fetched ahead of any
// such stream, and more only up to a quarter of what it has read.
constexpr uint64_t kFreeWindowBytes = 2 << 20;
// The window is refilled when it lacks this much, so that what waits for the slowest of several
// nodes is as large as possible.
constexpr uint64_t kStepBytes = 1 << 20;

}  // namespace

ByteRange ReadAhead::OnRead(ByteRange range, uint64_t file_bytes, uint64_t window_bytes_max) {
  const bool near = range.begin + kNearBytes >= expected_ && range.begin <= expected_ + kNearBytes;
  const bool exact = range.begin == expected_;
  // A stream begins with exactly consecutive reads; once it flows, disorder is tolerated.
  const bool follows = window_ > 0 ? near : exact;
  if (!follows) {
    begin_ = range.begin;
    read_bytes_ = range.size();
    expected_ = range.end;
    fetched_end_ = 0;
    window_ = 0;
    in_order_ = 1;
    return {};
  }
  expected_ = std::max(window_ > 0 ? expected_ : 0, range.end);
  read_bytes_ += range.size();
  if (++in_order_ < 2 || window_bytes_max == 0) return {};
  const bool opens = window_ == 0;
  if (opens) fetched_end_ = range.begin;
  const uint64_t ahead = fetched_end_ > range.end ? fetched_end_ - range.end : 0;
  if ((!opens && ahead + std::min(kStepBytes, window_ / 2) > window_) || fetched_end_ >= file_bytes)
    return {};
  window_ = std::min(opens ? kFirstWindowBytes : window_ * 2, window_bytes_max);
  if (begin_ > 0) {
    // In whole steps, because fetches are cut at their boundaries.
    const uint64_t quarter = read_bytes_ / 4 / kStepBytes * kStepBytes;
    window_ = std::min(window_, std::max(kFreeWindowBytes, quarter));
  }
  const ByteRange fetch{std::max(fetched_end_, range.begin),
                        std::min(file_bytes, range.end + window_)};
  if (fetch.empty()) return {};
  fetched_end_ = fetch.end;
  return fetch;
}

}  // namespace mosa::sai
