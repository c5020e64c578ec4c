#include "client-sai/sai/kernel_names.h"

#include <algorithm>

namespace mosa::sai {

bool KernelNames::MayKeep(Inode& directory) {
  if (!notifier_.capabilities().epoch) return false;
  const MutexLock epoch_lock(mutex_);
  if (!epoch_.MayKeep(clock_.Monotonic())) return false;
  const MutexLock lock(directory.mutex);
  if (directory.names.shared.is_shared()) return false;
  directory.names.told_in = epoch_.number();
  return true;
}

void KernelNames::NoteMove(Inode& source, Inode& target) {
  uint64_t told_in = 0;
  {
    const MutexLock lock(source.mutex);
    told_in = source.names.told_in;
  }
  const MutexLock lock(target.mutex);
  target.names.told_in = std::max(target.names.told_in, told_in);
}

void KernelNames::Forget(Inode& directory) {
  if (!notifier_.capabilities().epoch) return;
  const MutexLock epoch_lock(mutex_);
  epoch_.NoteForeignChange(clock_.Monotonic());
  {
    const MutexLock lock(directory.mutex);
    if (directory.names.told_in != epoch_.number()) return;
  }
  epoch_.BeginForChange();
  notifier_.InvalidateEntries();
}

void KernelNames::ForgetAll() {
  if (!notifier_.capabilities().epoch) return;
  const MutexLock lock(mutex_);
  epoch_.Begin();
  notifier_.InvalidateEntries();
}

void KernelNames::NoteForeignChange(Duration ago) {
  const MutexLock lock(mutex_);
  epoch_.NoteForeignChange(clock_.Monotonic() - std::max(ago, Duration{0}));
}

}  // namespace mosa::sai
