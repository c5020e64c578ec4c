// KernelNames: which names the kernel may cache, and how it forgets them (NameEpoch decides).
// Without the notifier's capability `epoch`, none are cached.
#ifndef MOSA_CLIENT_SAI_SAI_KERNEL_NAMES_H_
#define MOSA_CLIENT_SAI_SAI_KERNEL_NAMES_H_

#include <cstdint>

#include "client-sai/core/name_epoch.h"
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
  // The kernel may take a cached name along.
  void NoteMove(Inode& source, Inode& target);
  // Others have changed the directory: the kernel forgets its names.
  void Forget(Inode& directory);
  void ForgetAll();
  // Another mount has changed a directory so long ago.
  void NoteForeignChange(Duration ago);

 private:
  KernelNotifier& notifier_;
  const Clock& clock_;
  // Held until the kernel was notified: whoever sees the new epoch relies on that. Taken before an
  // inode's mutex.
  Mutex mutex_;
  NameEpoch epoch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_KERNEL_NAMES_H_
