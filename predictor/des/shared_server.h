// SharedServer: egalitarian processor sharing with a limit per job. `servers` cores serve all jobs
// at once and equally; no job gets more than one core.
//
// With a single server, jobs may have weights and get shares in proportion to them.
//
// With a credit it is a token bucket that starts full: idle time accumulates as credit, up to the
// maximum, and is spent at once when work arrives.
//
// All jobs advance together, so one virtual time is enough. It runs at the rate that each job gets.
// A job ends when virtual time has advanced by the job's work; a heap finds the next one to end. A
// job costs O(log jobs), whatever else arrives and leaves meanwhile.
#ifndef MOSA_PREDICTOR_DES_SHARED_SERVER_H_
#define MOSA_PREDICTOR_DES_SHARED_SERVER_H_

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <vector>

#include "predictor/des/event_loop.h"

namespace mosa::des {

// Awaits several jobs on one server or on several. It must outlive them:
//   Join both;
//   in.Begin(work, both);
//   out.Begin(work, both);
//   co_await both.All();
class Join {
 public:
  auto All() {
    struct Awaiter {
      Join& join;
      bool await_ready() const { return join.under_way_ == 0; }
      void await_suspend(std::coroutine_handle<> waiter) const { join.waiter_ = waiter; }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

 private:
  friend class SharedServer;
  uint32_t under_way_ = 0;
  std::coroutine_handle<> waiter_;
};

class SharedServer final : private EventLoop::Bell {
 public:
  static constexpr int64_t kEvenWeight = 1024;
  // Precondition: servers > 0, and servers == 1 if there is a credit.
  SharedServer(EventLoop& loop, uint32_t servers, Duration credit_max = Duration());

  // `co_await server.Work(work)`: `work` is how long the job takes alone, below 10^15 ns.
  auto Work(Duration work) {
    struct Awaiter {
      SharedServer& server;
      Duration work;
      bool await_ready() const { return work.ns <= 0; }
      void await_suspend(std::coroutine_handle<> waiter) const {
        server.Add(work, waiter, nullptr);
      }
      void await_resume() const {}
    };
    return Awaiter{*this, work};
  }
  // Starts a job of `join`, with a share in proportion to `weight`. Precondition: 0 < weight <= 64
  // * kEvenWeight; with several servers, weight == kEvenWeight.
  void Begin(Duration work, Join& join, int64_t weight = kEvenWeight) {
    if (work.ns <= 0) return;
    ++join.under_way_;
    Add(work, nullptr, &join, weight);
  }

  size_t jobs() const { return jobs_.size(); }
  // The factor by which one more job of even weight would be slowed down now.
  double Stretch() const {
    return std::max(1.0, static_cast<double>(weights_ + kEvenWeight) /
                             static_cast<double>(servers_ * kEvenWeight));
  }
  // The work of all jobs so far, and how much of it is done.
  Duration offered() const { return offered_; }
  Duration done() const { return std::min(done_ + DoneSince(), offered_); }
  // Work still to be done.
  Duration Backlog() const { return offered_ - done(); }

 private:
  // Virtual time is counted in fractions of a nanosecond, so that slow progress is not rounded
  // away.
  static constexpr int64_t kPartsPerNs = 64;
  struct Job {
    int64_t end_parts = 0;
    uint64_t sequence = 0;
    std::coroutine_handle<> waiter;
    Join* join = nullptr;  // Set instead of a waiter.
    int64_t weight = kEvenWeight;
    bool operator>(const Job& other) const {
      return end_parts != other.end_parts ? end_parts > other.end_parts : sequence > other.sequence;
    }
  };

  void Add(Duration work, std::coroutine_handle<> waiter, Join* join, int64_t weight = kEvenWeight);
  bool IsShared() const { return servers_ == 1 || weights_ > servers_ * kEvenWeight; }
  void Advance();
  Duration DoneSince() const;
  void ExpectNext();
  std::coroutine_handle<> TakeEnded();
  void Ring() override;

  EventLoop& loop_;
  const int64_t servers_;
  const Duration credit_max_;
  Duration credit_;        // At advanced_at_.
  std::vector<Job> jobs_;  // A min-heap: the job that ends first is on top.
  int64_t weights_ = 0;    // Sum over all jobs.
  uint64_t sequence_ = 0;
  int64_t virtual_parts_ = 0;
  Time advanced_at_;
  Time expected_at_;  // When the earliest pending event fires.
  bool expects_ = false;
  Duration offered_;
  Duration done_;  // Until advanced_at_.
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_SHARED_SERVER_H_
