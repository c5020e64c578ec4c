// KernelNames: which names the kernel may cache, and how it forgets them (KeptNames decides).
// Without the notifier's capability `epoch`, none are cached.
#ifndef MOSA_CLIENT_SAI_SAI_KERNEL_NAMES_H_
#define MOSA_CLIENT_SAI_SAI_KERNEL_NAMES_H_

#include <atomic>
#include <cstdint>

#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/inode.h"
#include "common/base/clock.h"
#include "common/base/sync.h"

namespace mosa::sai {

// Thread-safe. Must not be called while an inode's mutex is held. Borrows both arguments.
class KernelNames {
 public:
  KernelNames(KernelNotifier& notifier, const Clock& clock) : notifier_(notifier), clock_(clock) {}

  // True if the kernel may cache the directory's names. Ask before reading the names, so that a
  // later recall of them makes the kernel forget them.
  bool MayKeep(Inode& directory);
  // The kernel moves a cached name here, for as long as it was allowed in the directory where it
  // was.
  void NoteKept(Inode& directory);
  // Others have changed the directory: the kernel forgets its names.
  void Forget(Inode& directory);
  void ForgetAll();

 private:
  void BeginEpoch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  KernelNotifier& notifier_;
  const Clock& clock_;
  // Held until the kernel was notified: whoever sees the new epoch relies on that. Taken before an
  // inode's mutex.
  Mutex mutex_;
  std::atomic<uint64_t> epoch_{1};  // Counts orders to the kernel to forget all names.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_KERNEL_NAMES_H_
