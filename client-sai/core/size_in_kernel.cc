#include "client-sai/core/size_in_kernel.h"

#include <algorithm>

namespace mosa::sai {

void SizeInKernel::NoteTelling(Time now) {
  // The notification may have overtaken that reply.
  if (now - answered_at_ <= kQueuedMax) tellings_ = std::max(tellings_, tellings_before_);
  tellings_before_ = 0;
  ++tellings_;
  told_at_ = now;
}

void SizeInKernel::NoteWrite(Time now) {
  const bool just_answered = tellings_before_ > 0 && now - answered_at_ <= kQueuedMax;
  if (tellings_ > 0 || just_answered) NoteTelling(now);
}

void SizeInKernel::NoteAnswered(Time asked, Time now) {
  if (tellings_ == 0 || asked - told_at_ <= kQueuedMax) return;
  tellings_before_ = tellings_;
  answered_at_ = now;
  tellings_ = 0;
}

}  // namespace mosa::sai
