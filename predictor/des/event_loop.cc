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
  Entry entry;
  while (!stopped_ && TakeNext(entry)) {
    now_ = Time{entry.at_ns};
    ++events_;
    digest_ = (digest_ ^ static_cast<uint64_t>(entry.at_ns) ^ (entry.sequence << 40)) *
              0x9e3779b97f4a7c15ULL;
    Do(entry.what);
  }
}

// What the heap has for now() was asked for before now() began.
bool EventLoop::TakeNext(Entry& next) {
  const bool is_due = due_begin_ < due_.size();
  if (is_due && (heap_.empty() || heap_.front().at_ns != now_.ns)) {
    next = due_[due_begin_++];
    return true;
  }
  if (!is_due) {
    due_.clear();
    due_begin_ = 0;
  }
  if (heap_.empty()) return false;
  next = Pop();
  return true;
}

void EventLoop::Do(uintptr_t what) {
  if ((what & kIsSlot) == 0) {
    std::coroutine_handle<>::from_address(reinterpret_cast<void*>(what)).resume();
    return;
  }
  // The slot is free before its action runs, which may take it again.
  const auto index = static_cast<uint32_t>(what >> 1);
  const Slot slot = slots_[index];
  free_slots_.push_back(index);
  slot.run(slot.bytes);
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

void EventLoop::Push(const Entry& entry) {
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
