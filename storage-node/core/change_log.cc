#include "storage-node/core/change_log.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/model/block_sums.h"

namespace mosa::node {
namespace {

ByteRange Hull(ByteRange a, ByteRange b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

}  // namespace

void ChangeLog::Note(ByteRange range, uint64_t change) {
  MOSA_CHECK(change > last_);
  last_ = change;
  if (range.empty()) return;
  // Entries that only touch or exceed the new range stay: a reader that has seen them would
  // otherwise get their bytes again.
  while (!entries_.empty() && Hull(entries_.back().range, range) == range) entries_.pop_back();
  entries_.push_back({change, range});
  if (entries_.size() <= kChangedRangesMax) return;
  const ByteRange oldest = entries_.front().range;
  entries_.pop_front();
  entries_.front().range = Hull(oldest, entries_.front().range);
}

void ChangeLog::NoteAll(uint64_t change) {
  MOSA_CHECK(change > last_);
  entries_.clear();
  forgotten_ = last_ = change;
}

std::optional<std::vector<ByteRange>> ChangeLog::Since(uint64_t change) const {
  if (change < forgotten_ || change > last_) return std::nullopt;
  std::vector<ByteRange> ranges;
  for (const Entry& entry : entries_) {
    if (entry.change > change) ranges.push_back(entry.range);
  }
  return ranges;
}

}  // namespace mosa::node
