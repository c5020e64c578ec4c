// CopyWaits: closes that wait for the copies of their files, without holding a thread.
#ifndef MOSA_CLIENT_SAI_SAI_COPY_WAITS_H_
#define MOSA_CLIENT_SAI_SAI_COPY_WAITS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/core/copy_wait.h"
#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/model/messages.h"

namespace mosa::sai {

// Thread-safe. Borrows both arguments; stop the manager before destroying this.
class CopyWaits {
 public:
  // `last` is the manager's last reply; copies_valid < copies_wanted if the wait ended without
  // enough copies. Runs on the manager's delivery thread, or on the thread that calls EndOverdue or
  // EndAll. Must not block.
  using Done = std::function<void(const AwaitCopiesReply& last)>;

  CopyWaits(ManagerApi& manager, const Clock& clock) : manager_(manager), clock_(clock) {}
  CopyWaits(const CopyWaits&) = delete;
  CopyWaits& operator=(const CopyWaits&) = delete;

  // Calls `done` once: when the copies exist or the file is gone, or when CopyWait ends the wait. A
  // failed question is repeated.
  void Wait(const AwaitCopiesRequest& request, Duration patience, Done done);
  // Call several times a second. Ends overdue waits and repeats failed questions.
  void EndOverdue();
  void EndAll();

 private:
  struct Waiter {
    AwaitCopiesRequest request;
    CopyWait wait;
    AwaitCopiesReply last;
    std::optional<Time> ask_again;  // Set after a failed question.
    Done done;
  };
  void Ask(uint64_t ticket, const AwaitCopiesRequest& request);
  void OnReply(uint64_t ticket, const std::vector<Reply>& replies);
  static void End(const std::vector<Waiter>& ended);

  ManagerApi& manager_;
  const Clock& clock_;
  Mutex mutex_;  // Not held across calls.
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_COPY_WAITS_H_
