// WaitBudget: limits how long a thread may wait in total, either while it serves a kernel request
// or while it stores buffered data, or reads ahead, and a program may come to wait for that.
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
    // Until when calls have their minimum although the budget is spent, and when the last of them
    // began. The time of calls that are answered does not count.
    std::optional<SteadyTime> last_end{};
    std::optional<SteadyTime> asked_at{};
  };
  // A question to the manager has at least this long, even if the budget is spent.
  static constexpr Duration kQuestionMin = Milliseconds(500);
  // A call to a node moves bytes, and has at least this long.
  static constexpr Duration kTransferMin = Milliseconds(1500);
  // A request that has spent its budget may still send one transfer and ask two questions that are
  // not answered, for example to release a lock. Further calls, of which there are few, have this
  // long.
  static constexpr Duration kLeast = Milliseconds(100);
  // For what takes time besides, above all waits for a processor.
  static constexpr Duration kSpare = Milliseconds(500);
  // With these a request ends within kWaitMax, as long as few of its last calls are answered late.
  static constexpr Duration kAll = kWaitMax - kTransferMin - kQuestionMin * 2 - kLeast * 5 - kSpare;

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

  // How long a question may wait: kWaitMax on a thread without a budget.
  static Duration ForQuestion() { return LeftFor(kQuestionMin); }
  static Duration ForTransfer() { return LeftFor(kTransferMin); }
  // How long to go on asking, with several questions.
  static Duration Patience() { return std::clamp(Left(), kQuestionMin, kWaitMax); }
  // A call of this thread was answered.
  static void NoteAnswer() {
    Limit& limit = OfThread<Limit>();
    if (!limit.last_end || !limit.asked_at) return;
    *limit.last_end += SteadyNow() - *limit.asked_at;
    limit.asked_at.reset();
  }
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
  // At least `least`, as long as calls that nobody answers have not taken all of the extra time.
  static Duration LeftFor(Duration least) {
    OfThread<Limit>().asked_at.reset();
    const Duration left = Left();
    if (left >= least) return std::min(left, kWaitMax);
    Limit& limit = OfThread<Limit>();
    const SteadyTime now = SteadyNow();
    if (!limit.last_end) limit.last_end = now + Chrono(kTransferMin + kQuestionMin * 2);
    limit.asked_at = now;
    const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(*limit.last_end - now);
    return std::clamp(Duration{rest.count()}, kLeast, least);
  }

  const Limit hidden_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_WAIT_BUDGET_H_
