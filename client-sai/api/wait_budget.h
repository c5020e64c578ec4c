// WaitBudget: limits how long a thread may wait in total, either while it serves a kernel request
// or while it stores buffered data for which a program may come to wait.
//
// One request may ask the manager and nodes several times, and each question may take kWaitMax. The
// budget bounds the sum: later questions get what earlier ones left.
#ifndef MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_
#define MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "common/base/sync.h"
#include "common/base/time.h"
#include "common/model/session.h"

namespace mosa::sai {

// Applies to the thread that creates it, while it exists. The newest budget applies, even if it is
// longer than the one that it hides.
class WaitBudget {
 public:
  struct Limit {
    std::optional<SteadyTime> end{};
    bool program_waits = false;
  };
  // A question to the manager has at least this long, even if the budget is spent.
  static constexpr Duration kQuestionMin = Milliseconds(500);
  // A call to a node moves bytes, and has at least this long.
  static constexpr Duration kTransferMin = Seconds(2);
  // A request that has spent its budget may still send one transfer and ask two questions, for
  // example to release a lock. With these it stays within kWaitMax.
  static constexpr Duration kAll = kWaitMax - kTransferMin - kQuestionMin * 2;

  // `begun`: when the kernel sent the request.
  explicit WaitBudget(SteadyTime begun) : WaitBudget(Limit{begun + Chrono(kAll), true}) {}
  // For a part on another thread: pass OfThisThread() of the waiting thread.
  explicit WaitBudget(Limit limit) : hidden_(std::exchange(OfThread<Limit>(), limit)) {}
  ~WaitBudget() { OfThread<Limit>() = hidden_; }
  WaitBudget(const WaitBudget&) = delete;
  WaitBudget& operator=(const WaitBudget&) = delete;

  // A full budget from now on, for work that no program waits for yet.
  static Limit ForBackground() { return {SteadyNow() + Chrono(kAll), false}; }
  static Limit OfThisThread() { return OfThread<Limit>(); }

  // How long a question may wait: at least kQuestionMin; kWaitMax on a thread without a budget.
  static Duration ForQuestion() { return std::clamp(Left(), kQuestionMin, kWaitMax); }
  static Duration ForTransfer() { return std::clamp(Left(), kTransferMin, kWaitMax); }
  // True if a program waits for this thread's work.
  static bool ProgramWaits() { return OfThread<Limit>().program_waits; }
  static bool IsSpent() { return Left() <= Duration{0}; }

 private:
  static std::chrono::nanoseconds Chrono(Duration duration) {
    return std::chrono::nanoseconds(duration.ns);
  }
  static Duration Left() {
    const Limit& limit = OfThread<Limit>();
    if (!limit.end) return kWaitMax;
    const auto left = *limit.end - SteadyNow();
    return Duration{std::chrono::duration_cast<std::chrono::nanoseconds>(left).count()};
  }
  const Limit hidden_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_
