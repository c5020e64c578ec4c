// Tracks whether the kernel's cached size of a file can be trusted when the file is opened. Pure;
// one owner.
//
// The kernel reads pages up to the size that it knows, and asks for the size again after it was
// notified that the attributes are outdated. It discards a reply that was overtaken by another
// notification, or by a write through the same mount (fuse_change_attributes compares
// attr_version), and keeps the size from before all of them. With several hosts appending, a reader
// would then miss a record that was appended before its open. One notification is harmless, because
// the question follows it. After two without a reply in between that certainly got through, the
// file should not be opened by pages.
//
// The kernel's size still limits operations that ignore FOPEN_DIRECT_IO: sendfile, splice and
// mappings.
#ifndef MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_
#define MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_

#include <cstdint>

#include "common/base/time.h"

namespace mosa::sai {

class SizeInKernel {
 public:
  // Call before notifying the kernel that its attributes are outdated. Times are monotonic.
  void NoteTelling(Time now);
  // Call after the notification.
  void NoteTold(Time now) { told_at_ = now; }
  // Call before replying to a write through this mount that bypassed the kernel's pages.
  void NoteWrite(Time now);
  // Call before replying to a question about the file whose request was read at `asked`.
  void NoteAnswered(Time asked, Time now);

  // If false, the kernel should ask again at the next use.
  bool is_settled() const { return tellings_ == 0; }
  bool may_be_old() const { return tellings_ >= 2; }

 private:
  // How long a request may wait to be read, and a reply to be processed by the kernel.
  static constexpr Duration kQueuedMax = Milliseconds(100);

  uint32_t tellings_ = 0;  // Since the last reply that got through.
  Time told_at_;
  uint32_t tellings_before_ = 0;  // Before that reply.
  Time answered_at_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_
