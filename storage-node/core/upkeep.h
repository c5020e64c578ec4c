// The background work of a node: which object to seal next, and which to scrub next and how fast.
// Pure; one owner.
//
// Sealing computes missing checksums, first come, first served, of objects that have been idle for
// a while. Scrubbing reads sealed objects and verifies their checksums; it visits all objects in
// the order of their ids, at a bounded rate.
#ifndef MOSA_STORAGE_NODE_CORE_UPKEEP_H_
#define MOSA_STORAGE_NODE_CORE_UPKEEP_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::node {

class SealQueue {
 public:
  // Queues `file` to be sealed from `ready` on. If it is queued already, the later time holds.
  void Push(FileId file, Time ready);
  void Remove(FileId file);
  // Removes and returns the object that has been ready for longest; nothing if none is ready by
  // `now`.
  std::optional<FileId> Pop(Time now);
  // Returns when Pop will return something, if nothing is pushed.
  std::optional<Time> next_ready() const;
  size_t size() const { return ready_of_.size(); }

 private:
  struct Turn {
    Time ready;
    FileId file;
    auto operator<=>(const Turn&) const = default;
  };
  std::set<Turn> turns_;
  std::map<FileId, Time> ready_of_;
};

// Returns how long to pause after scrubbing `bytes` in `took` to keep the rate at or below
// `bytes_per_second`. Precondition: the rate is not 0.
Duration ScrubPause(uint64_t bytes, Duration took, uint64_t bytes_per_second);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_UPKEEP_H_
