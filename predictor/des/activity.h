// Activity<T>: a coroutine that takes simulated time and returns a T. Its starter awaits it;
// Spawn() starts one that nobody awaits.
//
//   Activity<uint64_t> Fetch(Link& link) {
//     co_await link.Serve(Microseconds(20));
//     co_return 42;
//   }
//
// An activity begins when it is awaited. The Activity value owns it. A spawned activity owns itself
// until it ends; EventLoop::EndAll() destroys those that are still suspended. Parameters must be
// passed by value or refer to objects that outlive the loop's run. Exceptions abort.
#ifndef MOSA_PREDICTOR_DES_ACTIVITY_H_
#define MOSA_PREDICTOR_DES_ACTIVITY_H_

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

#include "predictor/des/event_loop.h"
#include "predictor/des/frame_pool.h"

namespace mosa::des {

// Links a spawned activity into its loop's list of running activities.
class Root {
 public:
  Root() = default;
  ~Root() {
    if (loop_ == nullptr) return;
    (previous_ != nullptr ? previous_->next_ : loop_->roots_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  bool is_spawned() const { return loop_ != nullptr; }
  // Precondition: !is_spawned().
  void Link(EventLoop& loop, std::coroutine_handle<> activity) {
    loop_ = &loop;
    activity_ = activity;
    next_ = std::exchange(loop.roots_, this);
    if (next_ != nullptr) next_->previous_ = this;
  }
  // Destroys the activity and everything it awaits. Precondition: is_spawned().
  void End() { activity_.destroy(); }

 private:
  EventLoop* loop_ = nullptr;
  std::coroutine_handle<> activity_;
  Root* next_ = nullptr;
  Root* previous_ = nullptr;
};

namespace internal {

struct PromiseBase : Pooled {
  std::coroutine_handle<> waiter = std::noop_coroutine();

  // Resumes the awaiting coroutine, if it has been suspended. A spawned activity has none and
  // destroys itself.
  struct Final {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
      if constexpr (std::is_base_of_v<Root, Promise>) {
        if (done.promise().is_spawned()) {
          done.destroy();
          return std::noop_coroutine();
        }
      }
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
struct Promise<void> : PromiseBase, Root {
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

  // Starts the activity and resumes the caller when it has ended.
  auto operator co_await() {
    struct Awaiter {
      std::coroutine_handle<promise_type> handle;
      bool await_ready() const { return false; }
      // False: it has ended without waiting, and the caller goes on. It is resumed here, not by a
      // jump from one coroutine to the other: compilers make that a nested call unless they
      // optimize, and a loop over activities that do not wait would fill the stack.
      bool await_suspend(std::coroutine_handle<> waiter) const {
        handle.resume();
        if (handle.done()) return false;
        handle.promise().waiter = waiter;
        return true;
      }
      T await_resume() const { return handle.promise().Take(); }
    };
    return Awaiter{handle_};
  }

 private:
  friend void Spawn(EventLoop& loop, Activity<void> activity);

  explicit Activity(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// Starts `activity` now. It runs until it first suspends; after that the loop resumes it.
inline void Spawn(EventLoop& loop, Activity<void> activity) {
  const auto handle = std::exchange(activity.handle_, nullptr);
  handle.promise().Link(loop, handle);
  handle.resume();
}

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_ACTIVITY_H_
