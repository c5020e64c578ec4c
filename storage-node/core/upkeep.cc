#include "storage-node/core/upkeep.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/rng.h"

namespace mosa::node {

void SealQueue::Push(FileId file, Time ready) {
  const auto found = ready_of_.find(file);
  if (found != ready_of_.end()) {
    if (found->second >= ready) return;
    turns_.erase({found->second, file});
  }
  ready_of_[file] = ready;
  turns_.insert({ready, file});
}

void SealQueue::Remove(FileId file) {
  const auto found = ready_of_.find(file);
  if (found == ready_of_.end()) return;
  turns_.erase({found->second, file});
  ready_of_.erase(found);
}

std::optional<FileId> SealQueue::Pop(Time now) {
  if (turns_.empty() || turns_.begin()->ready > now) return std::nullopt;
  const FileId file = turns_.begin()->file;
  Remove(file);
  return file;
}

std::optional<Time> SealQueue::next_ready() const {
  if (turns_.empty()) return std::nullopt;
  return turns_.begin()->ready;
}

Duration ScrubPause(uint64_t bytes, Duration took, uint64_t bytes_per_second) {
  MOSA_CHECK(bytes_per_second > 0);
  const auto due_ns =
      static_cast<int64_t>(static_cast<Wide>(bytes) * 1'000'000'000 / bytes_per_second);
  return Nanoseconds(std::max<int64_t>(0, due_ns - took.ns));
}

}  // namespace mosa::node
