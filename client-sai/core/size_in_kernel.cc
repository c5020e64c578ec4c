#include "client-sai/core/size_in_kernel.h"

namespace mosa::sai {

void SizeInKernel::NoteOutdated(Time now) {
  outdated_at_ = now;
  is_known_ = false;
}

void SizeInKernel::NoteAnswered(Time asked) {
  if (asked - outdated_at_ > kQueuedMax) is_known_ = true;
}

}  // namespace mosa::sai
