// CopyWaits: closes that wait until their files have their copies. A wait holds no thread.
#ifndef MOSA_CLIENT_SAI_SAI_COPY_WAITS_H_
#define MOSA_CLIENT_SAI_SAI_COPY_WAITS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "common/base/clock.h"
#include "common/model/messages.h"

namespace mosa::sai {

// Thread-safe. Borrows both; the manager must be stopped before this ends.
class CopyWaits {
 public:
  // What the manager said last: copies_valid < copies_wanted if the wait ended without them.
  // Runs on the manager's delivery thread or on the one that calls EndOverdue or EndAll; it must
  // not wait.
  using Done = std::function<void(const AwaitCopiesReply& last)>;

  CopyWaits(ManagerApi& manager, const Clock& clock) : manager_(manager), clock_(clock) {}
  CopyWaits(const CopyWaits&) = delete;
  CopyWaits& operator=(const CopyWaits&) = delete;

  // Calls `done` once: when the copies are there or the file is gone, when the manager says that no
  // more will come, or when `patience` is over and copying has made no progress for a while. The
  // manager is asked again after a failure.
  void Wait(const AwaitCopiesRequest& request, Duration patience, Done done);
  // To be called several times a second: ends what is overdue, repeats what has failed.
  void EndOverdue();
  void EndAll();

 private:
  struct Waiter {
    AwaitCopiesRequest request;
    Time until;
    AwaitCopiesReply last;
    std::optional<Time> ask_again;  // The last question has failed.
    Done done;
  };
  void Ask(uint64_t ticket, const AwaitCopiesRequest& request);
  void OnReply(uint64_t ticket, const std::vector<Reply>& replies);
  static void End(const std::vector<Waiter>& ended);

  ManagerApi& manager_;
  const Clock& clock_;
  std::mutex mutex_;  // Not held over a call.
  // Guarded by mutex_.
  uint64_t next_ticket_ = 1;
  std::map<uint64_t, Waiter> waiters_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_COPY_WAITS_H_
