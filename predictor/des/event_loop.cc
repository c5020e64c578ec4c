#include "predictor/des/event_loop.h"

#include "predictor/des/activity.h"

namespace mosa::des {

void EventLoop::EndAll() {
  while (roots_ != nullptr) roots_->End();
}

void EventLoop::Run() {
  stopped_ = false;
  EventQueue::Entry entry;
  while (!stopped_ && queue_.Take(entry)) {
    now_ = Time{entry.at_ns};
    ++events_;
    digest_ = (digest_ ^ static_cast<uint64_t>(entry.at_ns) ^ (entry.sequence << 40)) *
              0x9e3779b97f4a7c15ULL;
    Do(entry.what);
  }
}

void EventLoop::Do(uintptr_t what) {
  if ((what & kIsSlot) != 0) {
    // Free the slot first: its action may take it again.
    const auto index = static_cast<uint32_t>(what >> 1);
    const Slot slot = slots_[index];
    free_slots_.push_back(index);
    slot.run(slot.bytes);
  } else if ((what & kIsBell) != 0) {
    reinterpret_cast<Bell*>(what & ~kIsBell)->Ring();
  } else {
    std::coroutine_handle<>::from_address(reinterpret_cast<void*>(what)).resume();
  }
}

uint32_t EventLoop::TakeSlot() {
  if (free_slots_.empty()) {
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

}  // namespace mosa::des
