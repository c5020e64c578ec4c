// KeptNames: whether the kernel may keep the names of one directory, and when it has to forget
// them.
//
// The kernel can only forget all names of a mount at once, which begins a new epoch of its names,
// and a closed file loses its pages with its name. So while other mounts change a directory, its
// names are not kept.
//
// Pure; driven by the mount (sai::KernelNames), which counts epochs, and by the simulator. One
// owner.
#ifndef MOSA_CLIENT_SAI_CORE_KEPT_NAMES_H_
#define MOSA_CLIENT_SAI_CORE_KEPT_NAMES_H_

#include <cstdint>

#include "common/base/time.h"

namespace mosa::sai {

class KeptNames {
 public:
  // The kernel is told a name in this epoch. True if it may keep it.
  bool Tell(uint64_t epoch, Time now);
  // A kept name has moved here.
  void NoteKept(uint64_t epoch) { epoch_ = epoch; }
  // Others have changed the directory. True: the kernel has to forget all names.
  bool Forget(uint64_t epoch, Time now);

 private:
  uint64_t epoch_ = 0;   // The kernel may keep names that it was told in this epoch.
  Time shared_until_;    // Until then the kernel asks for each name.
  Duration patience_{};  // How long shared_until_ last lay ahead.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_KEPT_NAMES_H_
