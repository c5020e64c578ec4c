// EventQueue: events ordered by time, and by insertion among events of the same time.
//
// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990), which works because time never goes back. An
// entry's bucket is the highest bit in which its time differs from the present time. When nothing
// more is due now, time advances to the earliest entry, which is in the lowest occupied bucket, and
// that bucket's entries move to lower ones. An entry is moved a few times, sequentially, and never
// compared pairwise. Entries of the same time always share a bucket, so they keep their order.
//
// Memory grows with pending events, not with events that have run. Not thread-safe: one owner, one
// thread.
#ifndef MOSA_PREDICTOR_DES_EVENT_QUEUE_H_
#define MOSA_PREDICTOR_DES_EVENT_QUEUE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mosa::des {

class EventQueue {
 public:
  struct Entry {
    int64_t at_ns = 0;
    uint64_t sequence = 0;
    uintptr_t what = 0;
  };

  // Precondition: now_ns >= 0.
  explicit EventQueue(int64_t now_ns) : now_ns_(now_ns) {}

  // Precondition: entry.at_ns is not earlier than the last entry taken.
  void Add(const Entry& entry) {
    const auto bucket = static_cast<size_t>(
        std::bit_width(static_cast<uint64_t>(entry.at_ns) ^ static_cast<uint64_t>(now_ns_)));
    buckets_[bucket].push_back(entry);
    occupied_ |= uint64_t{1} << bucket;
  }
  // Returns false if the queue is empty.
  bool Take(Entry& next) {
    if (due_begin_ == due_.size() && !FindDue()) return false;
    next = due_[due_begin_++];
    return true;
  }
  // Returns whether the next entry has the same time as the last one taken.
  bool HasMoreNow() const { return due_begin_ < due_.size() || !buckets_[0].empty(); }

 private:
  bool FindDue() {
    due_.clear();
    due_begin_ = 0;
    if (occupied_ == 0) return false;
    const auto lowest = static_cast<size_t>(std::countr_zero(occupied_));
    occupied_ &= occupied_ - 1;
    std::vector<Entry>& bucket = buckets_[lowest];
    if (lowest > 0) {
      now_ns_ = std::min_element(bucket.begin(), bucket.end(), [](const Entry& a, const Entry& b) {
                  return a.at_ns < b.at_ns;
                })->at_ns;
      if (bucket.size() > 1) {
        for (const Entry& entry : bucket) Add(entry);
        bucket.clear();
        occupied_ &= ~uint64_t{1};
        due_.swap(buckets_[0]);
        return true;
      }
    }
    due_.swap(bucket);
    return true;
  }

  int64_t now_ns_;
  // Events due now. They run before those in bucket 0; those below due_begin_ have run.
  std::vector<Entry> due_;
  size_t due_begin_ = 0;
  std::array<std::vector<Entry>, 64> buckets_;  // Bucket 0: due now, added since due_ was filled.
  uint64_t occupied_ = 0;                       // One bit per bucket that is not empty.
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_EVENT_QUEUE_H_
