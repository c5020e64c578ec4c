// Activity<T>: something that takes simulated time, written as a coroutine and awaited by whoever
// started it; Spawn() starts one that nobody awaits.
//
//   Activity<uint64_t> Fetch(Link& link) {
//     co_await link.Serve(Microseconds(20));
//     co_return 42;
//   }
//
// An activity begins when it is awaited, and is owned by the Activity value. What is spawned is
// owned by its loop, which ends it, wherever it waits, when the loop itself ends. Parameters are
// kept by value or refer to what outlives the loop's run. No exceptions.
#ifndef MOSA_PREDICTOR_DES_ACTIVITY_H_
#define MOSA_PREDICTOR_DES_ACTIVITY_H_

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <utility>

#include "predictor/des/event_loop.h"
#include "predictor/des/frame_pool.h"

namespace mosa::des {

namespace internal {

struct PromiseBase : Pooled {
  std::coroutine_handle<> waiter = std::noop_coroutine();

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
      return done.promise().waiter;
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const { std::abort(); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  template <typename U>
  void return_value(U&& given) {
    value.emplace(std::forward<U>(given));
  }
  T Take() { return *std::move(value); }
};
template <>
struct Promise<void> : PromiseBase {
  void return_void() const {}
  void Take() const {}
};

}  // namespace internal

template <typename T = void>
class [[nodiscard]] Activity {
 public:
  struct promise_type : internal::Promise<T> {
    Activity get_return_object() {
      return Activity(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };

  Activity(Activity&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Activity& operator=(Activity&&) = delete;
  ~Activity() {
    if (handle_) handle_.destroy();
  }

  // Begins it, and goes on when it has ended.
  auto operator co_await() {
    struct Awaiter {
      std::coroutine_handle<promise_type> handle;
      bool await_ready() const { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) const {
        handle.promise().waiter = waiter;
        return handle;
      }
      T await_resume() const { return handle.promise().Take(); }
    };
    return Awaiter{handle_};
  }

 private:
  explicit Activity(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// A spawned activity, linked into its loop's list.
class Root {
 public:
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  // Destroys the activity and all that it awaits.
  void End() { handle_.destroy(); }

 protected:
  explicit Root(EventLoop& loop) : loop_(loop), next_(loop.roots_) {
    if (next_ != nullptr) next_->previous_ = this;
    loop.roots_ = this;
  }
  ~Root() {
    (previous_ != nullptr ? previous_->next_ : loop_.roots_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }
  std::coroutine_handle<> handle_;

 private:
  EventLoop& loop_;
  Root* next_;
  Root* previous_ = nullptr;
};

struct RootPromise : Root, Pooled {
  RootPromise(EventLoop& loop, Activity<void>&) : Root(loop) {
    handle_ = std::coroutine_handle<RootPromise>::from_promise(*this);
  }
  void get_return_object() const {}
  std::suspend_never initial_suspend() const noexcept { return {}; }
  std::suspend_never final_suspend() const noexcept { return {}; }
  void return_void() const {}
  [[noreturn]] void unhandled_exception() const { std::abort(); }
};

// Begins `activity` now; it runs until it first waits, then whenever the loop goes on with it.
void Spawn(EventLoop& loop, Activity<void> activity);

}  // namespace mosa::des

template <>
struct std::coroutine_traits<void, mosa::des::EventLoop&, mosa::des::Activity<void>> {
  using promise_type = mosa::des::RootPromise;
};

#endif  // MOSA_PREDICTOR_DES_ACTIVITY_H_
