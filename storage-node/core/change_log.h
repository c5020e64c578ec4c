// ChangeLog: the recent changes of an object, for nodes that copy it. Pure; one owner.
//
// Changes are numbered in ascending order. The log is bounded: older changes are merged, so an
// answer may name too much, but never too little.
#ifndef MOSA_STORAGE_NODE_CORE_CHANGE_LOG_H_
#define MOSA_STORAGE_NODE_CORE_CHANGE_LOG_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/model/ranges.h"

namespace mosa::node {

class ChangeLog {
 public:
  // Changes up to `change` are unknown.
  explicit ChangeLog(uint64_t change) : forgotten_(change), last_(change) {}

  // Precondition of both: `change` is higher than all earlier ones.
  void Note(ByteRange range, uint64_t change);
  void NoteAll(uint64_t change);

  uint64_t last() const { return last_; }
  // Returns what changed after `change`, an earlier value of last(), in at most kChangedRangesMax
  // ranges. Absent: anything may have changed.
  std::optional<std::vector<ByteRange>> Since(uint64_t change) const;

 private:
  struct Entry {
    uint64_t change = 0;
    ByteRange range;
  };

  uint64_t forgotten_;
  uint64_t last_;
  std::deque<Entry> entries_;  // Ascending by change.
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_CHANGE_LOG_H_
