// Whether the kernel's idea of a file's size can be trusted when the file is opened. Pure; one
// owner.
//
// The kernel reads pages up to the size it knows, and asks for the size anew after it was told that
// the file's attributes are outdated. It drops an answer that was overtaken by another such
// telling, or by a write through the same mount (fuse_change_attributes compares attr_version), and
// keeps the size from before all of them: with several hosts appending, a reader would miss a
// record that was appended before its open. One telling does no harm, as the question comes after
// it. After two without an answer in between that surely came through, the file should not be
// opened by pages.
//
// What reads past FOPEN_DIRECT_IO stays bounded by the kernel's size: sendfile, splice, and
// mappings.
#ifndef MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_
#define MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_

#include <cstdint>

#include "common/base/time.h"

namespace mosa::sai {

class SizeInKernel {
 public:
  // Times are monotonic. The kernel is about to be told that what it knows is outdated.
  void NoteTelling(Time now);
  // It was told.
  void NoteTold(Time now) { told_at_ = now; }
  // A write through this mount that did not go by the kernel's pages is about to be answered.
  void NoteWrite(Time now);
  // A question about the file whose request was read at `asked` is about to be answered.
  void NoteAnswered(Time asked, Time now);

  // Else the kernel should ask again at the next use.
  bool is_settled() const { return tellings_ == 0; }
  bool may_be_old() const { return tellings_ >= 2; }

 private:
  // So long a request may wait to be read, and an answer to be taken up by its asker.
  static constexpr Duration kQueuedMax = Milliseconds(100);

  uint32_t tellings_ = 0;  // Since the last answer that came through.
  Time told_at_;
  uint32_t tellings_before_ = 0;  // That answer.
  Time answered_at_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_SIZE_IN_KERNEL_H_
