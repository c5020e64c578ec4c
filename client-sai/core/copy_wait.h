// CopyWait: how long a close waits for the copies of its file. Pure; a mount's CopyWaits and the
// simulated client run it.
//
// The wait ends when there are enough copies, when the manager says that no more will come, when
// another mount has had the file open for writing for 2 s (a mount that has just closed it counts
// as a writer until its kernel has released it), or when the patience is spent. Copying that makes
// progress extends the patience by 3 s. If it still does then, the copy is a long one and may stall
// for 8 s: enough to find a node silent, and to order a copy from or to another one. A copy that is
// lost may be made anew twice before it gets further than ever: nodes that lose their copies again
// and again never have enough.
#ifndef MOSA_CLIENT_SAI_CORE_COPY_WAIT_H_
#define MOSA_CLIENT_SAI_CORE_COPY_WAIT_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/model/messages.h"

namespace mosa::sai {

// Not thread-safe.
class CopyWait {
 public:
  CopyWait(Time now, Duration patience) : patience_end_(now + patience), until_(patience_end_) {}

  // Takes the manager's answer. Returns true if the wait is over.
  bool EndsWith(const AwaitCopiesReply& reply, Time now);
  bool IsOverdue(Time now) const { return until_ <= now; }

 private:
  Time patience_end_;
  Time until_;
  std::optional<std::pair<uint32_t, uint64_t>> progress_;  // Copies and bytes in the last answer.
  std::pair<uint32_t, uint64_t> best_;                     // The most of it so far.
  uint32_t setbacks_ = 0;              // Answers with less than the one before, since then.
  std::optional<Time> written_since_;  // Since when each answer named a writer.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_COPY_WAIT_H_
