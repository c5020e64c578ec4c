// EventQueue: what is to happen, by time; at one time, in the order in which it was added.
//
// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990), as time never goes back: an entry lies in the
// bucket of the highest bit in which its time differs from the present one. When nothing is left to
// do now, time goes on to the earliest entry, which is in the lowest bucket that has any, and the
// entries of that bucket go to lower ones. So an entry is moved a few times, one behind the other,
// and is compared with no other one. Entries of one time are always in one bucket: they keep their
// order.
//
// Memory grows with what waits, not with what has run. One owner, one thread.
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

  // `now_ns` is not negative.
  explicit EventQueue(int64_t now_ns) : now_ns_(now_ns) {}

  // Precondition: not earlier than what was taken last.
  void Add(const Entry& entry) {
    const auto bucket = static_cast<size_t>(
        std::bit_width(static_cast<uint64_t>(entry.at_ns) ^ static_cast<uint64_t>(now_ns_)));
    buckets_[bucket].push_back(entry);
    occupied_ |= uint64_t{1} << bucket;
  }
  // False: there is none.
  bool Take(Entry& next) {
    if (due_begin_ == due_.size() && !FindDue()) return false;
    next = due_[due_begin_++];
    return true;
  }
  // Whether the next one has the time of the one that was taken last.
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
  // Events due now, which run before those of the first bucket; those below due_begin_ have run.
  std::vector<Entry> due_;
  size_t due_begin_ = 0;
  std::array<std::vector<Entry>, 64> buckets_;  // The first: due now, added since.
  uint64_t occupied_ = 0;                       // A bit for each that is not empty.
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_EVENT_QUEUE_H_
