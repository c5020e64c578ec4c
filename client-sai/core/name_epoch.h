// NameEpoch: whether a mount's kernel may keep names.
//
// The kernel forgets names only all at once: a new epoch begins. With its name every file that is
// not open loses its pages, which on a busy host are gigabytes that it must fetch again. So names
// are kept only while no other mount changes the directories that this one knows. Otherwise a
// lookup costs some tens of microseconds, and no page is lost.
//
// Pure; driven by the mount (sai::KernelNames) and by the simulator. One owner.
#ifndef MOSA_CLIENT_SAI_CORE_NAME_EPOCH_H_
#define MOSA_CLIENT_SAI_CORE_NAME_EPOCH_H_

#include <algorithm>
#include <cstdint>

#include "common/base/time.h"

namespace mosa::sai {

class NameEpoch {
 public:
  // So long after a change of another mount none is kept. The time doubles whenever names were kept
  // and had to be forgotten, and is the least again after a quiet hour.
  static constexpr Duration kQuietMin = Seconds(60);
  static constexpr Duration kQuietMax = Seconds(3600);

  // Counts up from 1.
  uint64_t number() const { return number_; }
  // Whether the kernel may keep names that it is told now.
  bool MayKeep(Time now) const { return now >= quiet_from_; }
  // Another mount changed a directory then, as is known now.
  void NoteForeignChange(Time then) {
    if (then >= quiet_from_ + kQuietMax) quiet_for_ = kQuietMin;
    quiet_from_ = std::max(quiet_from_, then + quiet_for_);
  }
  // The kernel forgets all names, because another mount has changed a directory or for this mount's
  // own reasons.
  void BeginForChange() {
    Begin();
    quiet_for_ = std::min(quiet_for_ * 2, kQuietMax);
  }
  void Begin() { ++number_; }

 private:
  uint64_t number_ = 1;
  Time quiet_from_;
  Duration quiet_for_ = kQuietMin;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_NAME_EPOCH_H_
