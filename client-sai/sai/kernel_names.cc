#include "client-sai/sai/kernel_names.h"

#include <algorithm>

namespace mosa::sai {
namespace {

// How long the kernel may not cache the names of a directory that others have changed; doubles at
// each further change. Meanwhile a lookup costs some tens of microseconds.
constexpr Duration kPatienceMin = Seconds(30);
constexpr Duration kPatienceMax = Seconds(300);

}  // namespace

bool KernelNames::MayKeep(Inode& directory) {
  if (!notifier_.capabilities().epoch) return false;
  const MutexLock lock(directory.mutex);
  if (clock_.Monotonic() < directory.names.shared_until) return false;
  directory.names.kernel_epoch = epoch_;
  return true;
}

void KernelNames::NoteKept(Inode& directory) {
  const MutexLock lock(directory.mutex);
  directory.names.kernel_epoch = epoch_;
}

void KernelNames::Forget(Inode& directory) {
  if (!notifier_.capabilities().epoch) return;
  const MutexLock epoch_lock(mutex_);
  {
    const MutexLock lock(directory.mutex);
    Names& names = directory.names;
    const bool kept = names.kernel_epoch == epoch_;
    if (kept) names.patience = std::clamp(names.patience * 2, kPatienceMin, kPatienceMax);
    names.shared_until = clock_.Monotonic() + names.patience;
    if (!kept) return;
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
