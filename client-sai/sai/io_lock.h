// IoLock: holds Inode::io, for which programs wait.
//
// A thread that serves no program has no WaitBudget of its own and gets one with the lock, so that
// a program never waits behind several questions of kWaitMax each.
#ifndef MOSA_CLIENT_SAI_SAI_IO_LOCK_H_
#define MOSA_CLIENT_SAI_SAI_IO_LOCK_H_

#include <mutex>
#include <optional>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/inode.h"
#include "common/base/sync.h"

namespace mosa::sai {

class ABSL_SCOPED_LOCKABLE IoLock {
 public:
  explicit IoLock(Inode& inode) ABSL_EXCLUSIVE_LOCK_FUNCTION(inode.io) : lock_(inode.io) {
    LimitBackground();
  }
  // Precondition: the caller holds inode.io.
  IoLock(Inode& inode, std::adopt_lock_t adopted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io)
      : lock_(inode.io, adopted) {
    LimitBackground();
  }
  ~IoLock() ABSL_UNLOCK_FUNCTION() = default;
  IoLock(const IoLock&) = delete;
  IoLock& operator=(const IoLock&) = delete;

 private:
  void LimitBackground() {
    if (!WaitBudget::OfThisThread().end) budget_.emplace(WaitBudget::ForBackground());
  }

  MutexLock lock_;
  std::optional<WaitBudget> budget_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_IO_LOCK_H_
