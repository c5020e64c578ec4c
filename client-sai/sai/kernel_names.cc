#include "client-sai/sai/kernel_names.h"

namespace mosa::sai {

bool KernelNames::MayKeep(Inode& directory) {
  if (!notifier_.capabilities().epoch) return false;
  const MutexLock lock(directory.mutex);
  return !directory.names.shared.is_shared() &&
         directory.names.kept.Tell(epoch_, clock_.Monotonic());
}

void KernelNames::NoteKept(Inode& directory) {
  const MutexLock lock(directory.mutex);
  directory.names.kept.NoteKept(epoch_);
}

void KernelNames::Forget(Inode& directory) {
  if (!notifier_.capabilities().epoch) return;
  const MutexLock epoch_lock(mutex_);
  {
    const MutexLock lock(directory.mutex);
    if (!directory.names.kept.Forget(epoch_, clock_.Monotonic())) return;
  }
  BeginEpoch();
}

void KernelNames::ForgetAll() {
  if (!notifier_.capabilities().epoch) return;
  const MutexLock lock(mutex_);
  BeginEpoch();
}

void KernelNames::BeginEpoch() {
  ++epoch_;
  notifier_.InvalidateEntries();
}

}  // namespace mosa::sai
