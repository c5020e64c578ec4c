// What a node does with its spare time: which object to seal next, and which to scrub next and how
// fast. Pure; one owner.
//
// Sealing (computing missing checksums) is first come, first served among objects that have been
// left alone for a while. Scrubbing (reading what is sealed and comparing) goes round all objects
// in the order of their ids, at a bounded rate.
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
  // `file` is worth sealing from `ready` on. Asked again, the later time holds.
  void Push(FileId file, Time ready);
  void Remove(FileId file);
  // Takes out the object that has been ready for longest; none if no object is ready by `now`.
  std::optional<FileId> Pop(Time now);
  // When Pop will have something, if no more comes.
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

// How long to pause after scrubbing `bytes` in `took`, so that the rate is at most
// `bytes_per_second` (not 0).
Duration ScrubPause(uint64_t bytes, Duration took, uint64_t bytes_per_second);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_UPKEEP_H_
