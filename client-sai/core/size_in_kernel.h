// Whether the kernel's idea of a file's size can be trusted when the file is opened. Pure; one
// owner.
//
// The kernel reads pages up to the size it knows, and asks for it anew once it was told that its
// attributes are outdated. It drops an answer that was overtaken by another such telling, or by a
// write of its own (fuse_change_attributes compares attr_version), and then goes on with the size
// of before all of them: with several hosts appending, an open after an append could read the file
// as it was before. Until an answer has come through, opens should not read by pages.
#ifndef MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_
#define MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_

#include "common/base/time.h"

namespace mosa::sai {

class SizeInKernel {
 public:
  // The kernel was told, or is about to be, that what it knows is outdated. Times are monotonic.
  void NoteOutdated(Time now);
  // A question is about to be answered that was read at `asked`.
  void NoteAnswered(Time asked);
  bool is_known() const { return is_known_; }

 private:
  // So long a question may have waited to be read. One that waited longer while the kernel was told
  // is taken for one that was not overtaken.
  static constexpr Duration kQueuedMax = Milliseconds(100);

  bool is_known_ = true;  // By the answer that makes the file known.
  Time outdated_at_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_
