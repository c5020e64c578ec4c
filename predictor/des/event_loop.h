// EventLoop: virtual time. Actions run one after the other in time order; actions due at the same
// time run in the order in which they were scheduled. Time is in integer nanoseconds. The same
// actions give the same run, and the same digest, on every machine.
//
// Not thread-safe: one owner, one thread. Everything that scheduled actions refer to must outlive
// Run().
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

  // Schedules `action` at `at`. It is a small, trivially copyable callable (pointers, ids) and is
  // called once. Precondition: at >= now().
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
  // Resumes `waiter` at `at`.
  void ResumeAt(Time at, std::coroutine_handle<> waiter) {
    Add(at, reinterpret_cast<uintptr_t>(waiter.address()));
  }
  // Resumes `waiter` now, after everything already scheduled for now. If nothing is, resumes it
  // directly. Call it last in an action, when the caller is done.
  void ResumeLast(std::coroutine_handle<> waiter) {
    if (queue_.HasMoreNow())
      ResumeAt(now_, waiter);
    else
      waiter.resume();
  }
  // Like ResumeAt(), for an object that implements Bell. The bell must outlive the wait.
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

  // `co_await loop.Until(at)`: resumes at that time, after everything scheduled for it earlier.
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

  // Runs until nothing is scheduled or Stop() is called. A stopped loop may be run again.
  void Run();
  void Stop() { stopped_ = true; }

  // Destroys all running activities (activity.h), wherever they wait. The loop must not run again.
  void EndAll();

  // The number of actions that have run.
  uint64_t events() const { return events_; }
  // Hashes the times and the order of all events.
  uint64_t digest() const { return digest_; }

 private:
  friend class Root;
  static constexpr size_t kActionBytes = 24;
  struct Slot {
    void (*run)(const std::byte*) = nullptr;
    alignas(8) std::byte bytes[kActionBytes];
  };
  // An entry's `what` is tagged in its low bits: a slot number shifted left by one, or an address,
  // which is a multiple of four. The address is a bell's if the second bit is set, else a
  // coroutine's.
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
  Root* roots_ = nullptr;  // Running activities.
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_EVENT_LOOP_H_
