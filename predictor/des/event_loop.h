// EventLoop: virtual time. Actions run one after the other in the order of their times; those of
// one time in the order in which they were asked for. Integer nanoseconds; the same actions give
// the same run, and the same digest, everywhere.
//
// One owner, one thread. What waits in the loop refers to its owners: they outlive Run().
#ifndef MOSA_PREDICTOR_DES_EVENT_LOOP_H_
#define MOSA_PREDICTOR_DES_EVENT_LOOP_H_

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

#include "common/base/check.h"
#include "common/base/time.h"
#include "predictor/des/event_queue.h"

namespace mosa::des {

class Root;

class EventLoop {
 public:
  explicit EventLoop(Time start = {}) : now_(start), queue_(start.ns) {}
  ~EventLoop() { EndAll(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  Time now() const { return now_; }

  // Runs `action` at `at`: a small callable of plain values (pointers, ids), called once.
  // Precondition: at >= now().
  template <typename Action>
  void At(Time at, Action action) {
    static_assert(std::is_trivially_copyable_v<Action> && sizeof(Action) <= kActionBytes);
    const uint32_t slot = TakeSlot();
    slots_[slot].run = [](const std::byte* bytes) {
      alignas(Action) std::byte copy[sizeof(Action)];
      std::memcpy(copy, bytes, sizeof(Action));
      (*std::launder(reinterpret_cast<Action*>(copy)))();
    };
    std::memcpy(slots_[slot].bytes, &action, sizeof(Action));
    Add(at, uintptr_t{slot} << 1 | kIsSlot);
  }
  // Goes on with `waiter` at `at`.
  void ResumeAt(Time at, std::coroutine_handle<> waiter) {
    Add(at, reinterpret_cast<uintptr_t>(waiter.address()));
  }
  // Goes on with `waiter` now, behind all that was asked for before: at once, if there is nothing.
  // For the end of an action, when the caller is done.
  void ResumeLast(std::coroutine_handle<> waiter) {
    if (queue_.HasMoreNow())
      ResumeAt(now_, waiter);
    else
      waiter.resume();
  }
  // The same with whoever has a bell for itself, which outlives the wait.
  class Bell {
   public:
    virtual void Ring() = 0;

   protected:
    ~Bell() = default;
  };
  void RingAt(Time at, Bell& bell) { Add(at, reinterpret_cast<uintptr_t>(&bell) | kIsBell); }
  template <typename Action>
  void After(Duration delay, Action action) {
    At(now_ + delay, action);
  }

  // `co_await loop.Until(at)`: goes on at that time, behind what was asked for before.
  auto Until(Time at) {
    struct Awaiter {
      EventLoop& loop;
      Time at;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> waiter) const { loop.ResumeAt(at, waiter); }
      void await_resume() const {}
    };
    return Awaiter{*this, at};
  }
  auto Sleep(Duration duration) { return Until(now_ + duration); }

  // Until nothing is left to do, or Stop(). A stopped loop may run on.
  void Run();
  void Stop() { stopped_ = true; }

  // Ends what is still under way (activity.h), wherever it waits. The loop must not run again.
  void EndAll();

  // How many actions have run.
  uint64_t events() const { return events_; }
  // Covers the times and the order of all events.
  uint64_t digest() const { return digest_; }

 private:
  friend class Root;
  static constexpr size_t kActionBytes = 24;
  struct Slot {
    void (*run)(const std::byte*) = nullptr;
    alignas(8) std::byte bytes[kActionBytes];
  };
  // What an entry does: a slot's number behind the first bit, or an address, which is a multiple of
  // four: that of a bell with the second bit, or that of a coroutine.
  static constexpr uintptr_t kIsSlot = 1;
  static constexpr uintptr_t kIsBell = 2;

  uint32_t TakeSlot();
  void Add(Time at, uintptr_t what) {
    MOSA_CHECK(at >= now_);
    queue_.Add({at.ns, sequence_++, what});
  }
  void Do(uintptr_t what);

  Time now_;
  uint64_t sequence_ = 0;
  uint64_t events_ = 0;
  uint64_t digest_ = 0;
  bool stopped_ = false;
  EventQueue queue_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  Root* roots_ = nullptr;  // What is under way.
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_EVENT_LOOP_H_
