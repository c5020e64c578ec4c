// Lock requests that wait without holding a worker, and can be interrupted.
//
// The kernel's interrupt, the Filesystem's answer and the start of the wait may come in any order;
// libfuse may even run the interrupt's callback after the reply. So libfuse is given a number,
// never a pointer.
#ifndef MOSA_CLIENT_SAI_FUSE_LOCK_WAITERS_H_
#define MOSA_CLIENT_SAI_FUSE_LOCK_WAITERS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "client-sai/fuse/fuse_api.h"
#include "client-sai/sai/filesystem.h"
#include "common/base/mutex.h"

namespace mosa::sai {

// Thread-safe. Borrows the Filesystem, which must end all waits before this is destroyed.
class LockWaiters {
 public:
  explicit LockWaiters(Filesystem& filesystem) : filesystem_(filesystem) {}
  LockWaiters(const LockWaiters&) = delete;
  LockWaiters& operator=(const LockWaiters&) = delete;

  // Replies to `request` when the lock is granted or refused, or the waiting program is
  // interrupted.
  void Wait(fuse_req_t request, FileId file, const Lock& lock);

 private:
  struct Waiter {
    std::optional<LockWaitId> wait;  // Absent until WaitForLock has returned.
    bool interrupted = false;
  };
  static void OnInterrupt(fuse_req_t request, void* ticket);
  void Interrupt(uint64_t ticket);
  void Finish(uint64_t ticket);

  Filesystem& filesystem_;
  SystemMutex mutex_;  // Never held across a call to libfuse or the Filesystem.
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_LOCK_WAITERS_H_
