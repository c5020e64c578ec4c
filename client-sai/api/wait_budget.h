// WaitBudget: what a request of the kernel may wait for in all.
//
// One request asks the manager and nodes several times, and each may take as long as kWaitMax. What
// a program waits for is bounded all the same: later questions have what earlier ones have left.
#ifndef MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_
#define MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "common/base/time.h"
#include "common/model/session.h"

namespace mosa::sai {

// Belongs to the thread that makes it, while it exists; the newest one holds.
class WaitBudget {
 public:
  using Limit = std::optional<std::chrono::steady_clock::time_point>;
  // Two seconds less than kWaitMax: a request that ends by what it has given up, such as a lock,
  // has up to four questions left, of kQuestionMin each.
  static constexpr Duration kAll = kWaitMax - Seconds(2);
  static constexpr Duration kQuestionMin = Milliseconds(500);

  // `begun`: when the kernel has asked.
  explicit WaitBudget(std::chrono::steady_clock::time_point begun)
      : WaitBudget(Limit(begun + std::chrono::nanoseconds(kAll.ns))) {}
  // What another thread has, for what is done on its behalf while it waits; none if it has none.
  explicit WaitBudget(Limit limit) : outer_(std::exchange(limit_, limit)) {}
  ~WaitBudget() { limit_ = outer_; }
  WaitBudget(const WaitBudget&) = delete;
  WaitBudget& operator=(const WaitBudget&) = delete;

  // How long a question may wait: kQuestionMin at least; kWaitMax on a thread without a budget.
  static Duration ForQuestion() { return std::clamp(Left(), kQuestionMin, kWaitMax); }
  // Whether a program waits for what this thread does.
  static bool IsGiven() { return limit_.has_value(); }
  static Limit OfThisThread() { return limit_; }
  static bool IsSpent() { return Left() <= Duration{0}; }

 private:
  static Duration Left() {
    if (!limit_) return kWaitMax;
    const auto left = *limit_ - std::chrono::steady_clock::now();
    return Duration{std::chrono::duration_cast<std::chrono::nanoseconds>(left).count()};
  }
  inline static thread_local Limit limit_;
  const Limit outer_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_
