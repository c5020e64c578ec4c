// WaitBudget: what a thread may wait for in all: one that carries out a request of the kernel, or
// that stores what was buffered, for which a program may come to wait.
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

// Belongs to the thread that makes it, while it exists. The newest one holds: it may be longer than
// the one that it hides.
class WaitBudget {
 public:
  struct Limit {
    std::optional<std::chrono::steady_clock::time_point> end;
    bool program_waits;
  };
  // A question to the manager has at least this long, even if the budget is spent.
  static constexpr Duration kQuestionMin = Milliseconds(500);
  // A call to a node moves bytes, and has at least this long.
  static constexpr Duration kTransferMin = Seconds(2);
  // A request that has spent its budget may still send one transfer and ask two questions, for
  // example to release a lock. With these it stays within kWaitMax.
  static constexpr Duration kAll = kWaitMax - kTransferMin - kQuestionMin * 2;

  // `begun`: when the kernel has asked.
  explicit WaitBudget(std::chrono::steady_clock::time_point begun)
      : WaitBudget(Limit{begun + Chrono(kAll), true}) {}
  // For a part that is done on another thread: OfThisThread() of the one that waits for it.
  explicit WaitBudget(Limit limit) : hidden_(std::exchange(limit_, limit)) {}
  ~WaitBudget() { limit_ = hidden_; }
  WaitBudget(const WaitBudget&) = delete;
  WaitBudget& operator=(const WaitBudget&) = delete;

  // From now on, without a program that waits already.
  static Limit ForStore() { return {std::chrono::steady_clock::now() + Chrono(kAll), false}; }
  static Limit OfThisThread() { return limit_; }

  // How long a question may wait: kQuestionMin at least; kWaitMax on a thread without a budget.
  static Duration ForQuestion() { return std::clamp(Left(), kQuestionMin, kWaitMax); }
  static Duration ForTransfer() { return std::clamp(Left(), kTransferMin, kWaitMax); }
  // Whether a program waits for what this thread does.
  static bool ProgramWaits() { return limit_.program_waits; }
  static bool IsSpent() { return Left() <= Duration{0}; }

 private:
  static std::chrono::nanoseconds Chrono(Duration duration) {
    return std::chrono::nanoseconds(duration.ns);
  }
  static Duration Left() {
    if (!limit_.end) return kWaitMax;
    const auto left = *limit_.end - std::chrono::steady_clock::now();
    return Duration{std::chrono::duration_cast<std::chrono::nanoseconds>(left).count()};
  }
  inline static thread_local Limit limit_{std::nullopt, false};
  const Limit hidden_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_
