#include "client-sai/fuse/lock_waiters.h"

#include "client-sai/fuse/operations.h"
#include "common/base/mutex.h"

namespace mosa::sai {

void LockWaiters::Wait(fuse_req_t request, FileId file, const Lock& lock) {
  uint64_t ticket = 0;
  {
    const SystemMutexLock guard(mutex_);
    ticket = next_ticket_++;
    waiters_[ticket];
  }
  // Calls back at once if the program has already been interrupted.
  fuse_req_interrupt_func(request, OnInterrupt, reinterpret_cast<void*>(ticket));
  const LockWaitId wait =
      filesystem_.WaitForLock(file, lock, [this, request, ticket, file](Outcome<Done> done) {
        Finish(ticket);
        ReplyDone(request, done, "lock", file);
      });
  bool cancel = false;
  {
    const SystemMutexLock guard(mutex_);
    const auto found = waiters_.find(ticket);
    if (found == waiters_.end()) return;
    found->second.wait = wait;
    cancel = found->second.interrupted;
  }
  if (cancel) filesystem_.CancelLockWait(wait);
}

void LockWaiters::OnInterrupt(fuse_req_t request, void* ticket) {
  MountOf(request).lock_waiters.Interrupt(reinterpret_cast<uint64_t>(ticket));
}

void LockWaiters::Interrupt(uint64_t ticket) {
  std::optional<LockWaitId> wait;
  {
    const SystemMutexLock guard(mutex_);
    const auto found = waiters_.find(ticket);
    if (found == waiters_.end()) return;
    found->second.interrupted = true;
    wait = found->second.wait;
  }
  if (wait) filesystem_.CancelLockWait(*wait);
}

void LockWaiters::Finish(uint64_t ticket) {
  const SystemMutexLock guard(mutex_);
  waiters_.erase(ticket);
}

}  // namespace mosa::sai
