// ChangeLog: which parts of an object have changed lately, for nodes that copy it. Pure; one owner.
//
// A change has a number, higher than those before it. The log is bounded: what is old is known
// roughly, so that an asker is told of too much rather than too little.
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
  // Whatever came up to `change` is not known.
  explicit ChangeLog(uint64_t change) : forgotten_(change), last_(change) {}

  // Precondition of both: `change` is higher than all before it.
  void Note(ByteRange range, uint64_t change);
  void NoteAll(uint64_t change);

  uint64_t last() const { return last_; }
  // What changed after `change`, which was last() once; absent: anything may have. At most
  // kChangedRangesMax ranges.
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
