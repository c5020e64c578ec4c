// SharedServer: processor sharing. `servers` cores serve all jobs at once and equally; no job gets
// more than one core. (Egalitarian processor sharing with a limit per job.)
//
// With a single server, jobs may have weights, and get shares in proportion to these.
//
// With a credit it is a token bucket that is full at the beginning: what it could have done while
// it was idle, at most the credit, it does at once when work comes.
//
// All jobs advance together, so one virtual time is enough: it runs at the rate that each job gets,
// a job ends when it has advanced by the job's work, and the next to end is the least of a heap. A
// job costs O(log jobs), whatever comes and goes meanwhile.
#ifndef MOSA_PREDICTOR_DES_SHARED_SERVER_H_
#define MOSA_PREDICTOR_DES_SHARED_SERVER_H_

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <vector>

#include "predictor/des/event_loop.h"

namespace mosa::des {

// Several jobs, on one server or on several, whose end somebody awaits:
//   Join both;
//   in.Begin(work, both);
//   out.Begin(work, both);
//   co_await both.All();
// It outlives them.
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
  // Precondition: servers > 0; a credit is of one server alone.
  SharedServer(EventLoop& loop, uint32_t servers, Duration credit_max = Duration());

  // `co_await server.Work(work)`: `work` is the time that it takes alone. Below 10^15 ns.
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
  // The same as one of `join`, which nobody awaits here, with a share in proportion to `weight`.
  // Precondition: 0 < weight <= 64 * kEvenWeight; on several servers jobs are even.
  void Begin(Duration work, Join& join, int64_t weight = kEvenWeight) {
    if (work.ns <= 0) return;
    ++join.under_way_;
    Add(work, nullptr, &join, weight);
  }

  size_t jobs() const { return jobs_.size(); }
  // How many times as long as alone one more job of even weight would take now.
  double Stretch() const {
    return std::max(1.0, static_cast<double>(weights_ + kEvenWeight) /
                             static_cast<double>(servers_ * kEvenWeight));
  }
  // The work of all jobs that have come, and what of it has been done.
  Duration offered() const { return offered_; }
  Duration done() const { return std::min(done_ + DoneSince(), offered_); }
  // What is still to be done.
  Duration Backlog() const { return offered_ - done(); }

 private:
  // Virtual time is counted in parts of a nanosecond, so that slow progress is not lost.
  static constexpr int64_t kPartsPerNs = 64;
  struct Job {
    int64_t end_parts = 0;
    uint64_t sequence = 0;
    std::coroutine_handle<> waiter;
    Join* join = nullptr;  // Instead of a waiter.
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
  std::vector<Job> jobs_;  // A heap, the first to end on top.
  int64_t weights_ = 0;    // Sum over all jobs.
  uint64_t sequence_ = 0;
  int64_t virtual_parts_ = 0;
  Time advanced_at_;
  Time expected_at_;  // When the earliest event that is under way fires.
  bool expects_ = false;
  Duration offered_;
  Duration done_;  // Until advanced_at_.
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_SHARED_SERVER_H_
