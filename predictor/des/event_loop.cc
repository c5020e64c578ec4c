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
  if (due_begin_ == due_.size() && !asked_.empty()) {
    due_.clear();
    due_begin_ = 0;
    due_.swap(asked_);
  }
  if (due_begin_ < due_.size() && (heap_.empty() || heap_.front().at_ns != now_.ns)) {
    next = due_[due_begin_++];
    return true;
  }
  if (heap_.empty()) return false;
  next = Pop();
  return true;
}

void EventLoop::Do(uintptr_t what) {
  if ((what & kIsSlot) != 0) {
    // The slot is free before its action runs, which may take it again.
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

// The least of up to four entries, which lie one behind the other.
size_t EventLoop::LeastOf(size_t first, size_t size) const {
  const Entry* const entries = &heap_[first];
  if (size - first < kChildren) {
    size_t least = 0;
    for (size_t i = 1; i < size - first; ++i)
      if (entries[i].Before(entries[least])) least = i;
    return first + least;
  }
  const size_t left = entries[1].Before(entries[0]) ? 1 : 0;
  const size_t right = entries[3].Before(entries[2]) ? 3 : 2;
  return first + (entries[right].Before(entries[left]) ? right : left);
}

EventLoop::Entry EventLoop::Pop() {
  const Entry top = heap_.front();
  const Entry last = heap_.back();
  heap_.pop_back();
  const size_t size = heap_.size();
  if (size == 0) return top;
  size_t at = 0;
  for (size_t first = 1; first < size; first = at * kChildren + 1) {
    const size_t least = LeastOf(first, size);
    if (!heap_[least].Before(last)) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = last;
  return top;
}

}  // namespace mosa::des
