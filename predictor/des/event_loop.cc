#include "predictor/des/event_loop.h"

#include <algorithm>

#include "predictor/des/activity.h"

namespace mosa::des {
namespace {

constexpr size_t kChildren = 4;

}  // namespace

void EventLoop::EndAll() {
  while (roots_ != nullptr) roots_->End();
}

void EventLoop::Run() {
  stopped_ = false;
  while (!heap_.empty() && !stopped_) {
    const Entry entry = Pop();
    now_ = Time{entry.at_ns};
    ++events_;
    digest_ = (digest_ ^ static_cast<uint64_t>(entry.at_ns) ^ (entry.sequence << 40)) *
              0x9e3779b97f4a7c15ULL;
    // The slot is free before its action runs, which may take it again.
    const Slot slot = slots_[entry.slot];
    free_slots_.push_back(entry.slot);
    slot.run(slot.bytes);
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

void EventLoop::Push(Entry entry) {
  size_t at = heap_.size();
  heap_.push_back(entry);
  while (at > 0) {
    const size_t parent = (at - 1) / kChildren;
    if (!entry.Before(heap_[parent])) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = entry;
}

EventLoop::Entry EventLoop::Pop() {
  const Entry top = heap_.front();
  const Entry last = heap_.back();
  heap_.pop_back();
  const size_t size = heap_.size();
  if (size == 0) return top;
  size_t at = 0;
  for (;;) {
    const size_t first = at * kChildren + 1;
    if (first >= size) break;
    const size_t end = std::min(first + kChildren, size);
    size_t least = first;
    for (size_t child = first + 1; child < end; ++child)
      if (heap_[child].Before(heap_[least])) least = child;
    if (!heap_[least].Before(last)) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = last;
  return top;
}

}  // namespace mosa::des
