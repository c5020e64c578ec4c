// What an activity can wait for besides time: a Signal, one of a limited number of places (Slots),
// or the end of several others (Group). Waiters resume in order, each in an event of its own, so
// none runs inside the caller. The exception is the last waiter of GiveLast(), which must therefore
// be the last statement of an activity. These objects must outlive their waiters.
#ifndef MOSA_PREDICTOR_DES_WAITING_H_
#define MOSA_PREDICTOR_DES_WAITING_H_

#include <coroutine>
#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "predictor/des/event_loop.h"

namespace mosa::des {

// A FIFO of waiters. The links lie in the waiters' own frames, so that waiting allocates nothing. A
// link leaves only at its turn: a waiting activity is destroyed only together with its loop
// (EventLoop::EndAll), and no destructor gives a signal or returns a place.
class Waiters {
 public:
  struct Link {
    std::coroutine_handle<> waiter;
    Link* next = nullptr;
  };
  bool empty() const { return first_ == nullptr; }
  void Add(Link& link) {
    (empty() ? first_ : last_->next) = &link;
    last_ = &link;
  }
  // Precondition: !empty().
  std::coroutine_handle<> TakeFirst() { return std::exchange(first_, first_->next)->waiter; }

 private:
  Link* first_ = nullptr;
  Link* last_ = nullptr;  // Valid if there is a first.
};

// `co_await signal.Wait()` resumes at the next Give(). A waiter for a condition must check it
// again.
class Signal {
 public:
  explicit Signal(EventLoop& loop) : loop_(loop) {}
  // Schedules all waiters; none runs before this returns.
  void Give() {
    while (!waiters_.empty()) loop_.ResumeAt(loop_.now(), waiters_.TakeFirst());
  }
  // Like Give(), for the end of an action. The last waiter resumes without an event if nothing else
  // is scheduled for now (EventLoop::ResumeLast).
  void GiveLast() {
    if (waiters_.empty()) return;
    std::coroutine_handle<> last = waiters_.TakeFirst();
    while (!waiters_.empty())
      loop_.ResumeAt(loop_.now(), std::exchange(last, waiters_.TakeFirst()));
    loop_.ResumeLast(last);
  }
  auto Wait() {
    struct Awaiter {
      Signal& signal;
      Waiters::Link link{};
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> waiter) {
        link.waiter = waiter;
        signal.waiters_.Add(link);
      }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

 private:
  EventLoop& loop_;
  Waiters waiters_;
};

// `co_await slots.Take()` waits for one of `count` places. Return() passes it to the next waiter.
class Slots {
 public:
  Slots(EventLoop& loop, uint32_t count) : loop_(loop), free_(count) {}
  auto Take() {
    struct Awaiter {
      Slots& slots;
      Waiters::Link link{};
      bool await_ready() const {
        if (slots.free_ == 0) return false;
        --slots.free_;
        return true;
      }
      void await_suspend(std::coroutine_handle<> waiter) {
        link.waiter = waiter;
        slots.waiters_.Add(link);
      }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }
  void Return() {
    if (waiters_.empty()) {
      ++free_;
    } else {
      loop_.ResumeAt(loop_.now(), waiters_.TakeFirst());
    }
  }

 private:
  EventLoop& loop_;
  uint32_t free_;
  Waiters waiters_;
};

// Counts activities that have begun and not ended:
//   while (group.under_way() > 0) co_await group.changed().Wait();
class Group {
 public:
  explicit Group(EventLoop& loop) : changed_(loop) {}
  void Begin() { ++under_way_; }
  void End() {
    MOSA_CHECK(under_way_ > 0);
    --under_way_;
    changed_.Give();
  }
  uint64_t under_way() const { return under_way_; }
  Signal& changed() { return changed_; }

 private:
  uint64_t under_way_ = 0;
  Signal changed_;
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_WAITING_H_
