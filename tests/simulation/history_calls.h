// The calls of programs on a simulated mount, as a kernel makes them: each is timed, traced, and
// must not fail without a reason.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_CALLS_H_
#define MOSA_TESTS_SIMULATION_HISTORY_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/outcome.h"
#include "common/model/ranges.h"
#include "tests/simulation/history_state.h"

namespace mosa::simulation {

using sai::Done;
using sai::Outcome;

// A call should take kWaitMax at most; where several faults meet it takes a little longer.
inline constexpr Duration kCallMax = kWaitMax + Seconds(1);

class HistoryCalls {
 public:
  explicit HistoryCalls(HistoryState& state) : state_(state) {}

  // FileId{}: there is none.
  Outcome<FileId> Find(const Host& host, size_t at);
  // Makes the file if it is absent and `flags` say so. Others may make it at the same time.
  Outcome<sai::HandleId> Open(const Host& host, size_t at, uint32_t flags);
  Outcome<Done> Close(const Host& host, size_t at, sai::HandleId handle);
  // Runs `change` on the open file, and closes it. OK if all of that is.
  Outcome<Done> InOpen(const Host& host, size_t at, uint32_t flags,
                       const std::function<Outcome<Done>(sai::HandleId)>& change);
  Outcome<Done> Write(const Host& host, size_t at, sai::HandleId handle, uint64_t offset,
                      std::string_view data);
  Outcome<Done> Fsync(const Host& host, sai::HandleId handle);
  Outcome<Done> Punch(const Host& host, size_t at, sai::HandleId handle, ByteRange range);
  Outcome<Done> Truncate(const Host& host, size_t at, uint64_t size);
  Outcome<Done> Remove(const Host& host, size_t at);
  Outcome<Done> Rename(const Host& host, size_t from, size_t to);
  // Gives the file of one name another one.
  Outcome<Done> Link(const Host& host, size_t from, size_t to);
  // The same lock undoes it. A lock that others hold is no fault: TryLock fails with kWouldBlock,
  // and WaitForLock waits for as long as they hold it.
  Outcome<Done> TryLock(const Host& host, size_t at, sai::HandleId handle, const Lock& lock);
  Outcome<Done> WaitForLock(const Host& host, size_t at, sai::HandleId handle, const Lock& lock);
  Outcome<Done> Unlock(const Host& host, size_t at, sai::HandleId handle, Lock lock);
  // An attribute of a directory.
  Outcome<Done> SetNote(const Host& host, size_t directory, const std::string& value);
  Outcome<std::string> GetNote(const Host& host, size_t directory);
  // The whole content.
  Outcome<std::string> Read(const Host& host, size_t at);
  // What there is of a range of an open file.
  Outcome<std::string> ReadRange(const Host& host, size_t at, sai::HandleId handle, uint64_t offset,
                                 uint64_t length);
  // In the root directory.
  Outcome<FileId> MakeDirectory(const Host& host, const std::string& name);
  Outcome<std::set<std::string>> List(const Host& host, size_t directory);

  bool IsFull(const Failure& failure) const {
    return state_.store.may_be_full() && failure.code == StatusCode::kResourceExhausted;
  }
  // The callers judge whether the file may be lost.
  static bool IsLoss(const Failure& failure) {
    return failure.code == StatusCode::kDataLoss || failure.reason == ErrorReason::kNodeLost;
  }

 private:
  struct OpenFileOf {
    Time begun;
    size_t at = 0;
  };
  // Notes, while it exists, that a program of the host changes something, if that is what it does.
  class Changing {
   public:
    Changing(HistoryState& state, const Host& host, const std::string& what);
    ~Changing();
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

   private:
    HistoryState& state_;
    const HostId host_;
    const bool changes_;
  };
  FileId DirectoryOf(size_t at) const { return state_.directories[state_.DirectoryOf(at)]; }
  // Makes one request as the kernel does, and looks at the clock. A fault since `since` may be why
  // it fails.
  template <typename Call>
  auto Ask(const Host& host, const std::string& what, const Call& call, Duration max = kCallMax,
           Time since = kNever) {
    const Time begun = state_.scheduler.now();
    const Duration paused = state_.paused[host.id];
    max = max + OthersMax(host, what) + SeveralMax();
    const sai::WaitBudget budget(SteadyNow());
    const Changing changing(state_, host, what);
    auto outcome = call();
    const Duration took = state_.scheduler.now() - begun - (state_.paused[host.id] - paused);
    max = max + SlowMax(begun);
    // Nobody hears of what a process does that was killed, nor waits for it.
    if (host.mount->is_killed()) {
      outcome = Failure{StatusCode::kUnavailable, ErrorReason::kNone, "the mount was killed"};
      max = took;
    }
    Judge(host, what, outcome.ok() ? nullptr : &outcome.failure(), std::min(begun, since), took,
          max);
    return outcome;
  }
  void Judge(const Host& host, const std::string& what, const Failure* failure, Time begun,
             Duration took, Duration max);
  // For calls that may wait for copies.
  Duration CloseMax() const;
  Outcome<sai::HandleId> OpenFile(const Host& host, size_t at, FileId file, uint32_t flags);
  sai::HandleId Opened(const Host& host, size_t at, sai::HandleId handle, Time begun);
  // The same, because a link was slow: each answer may come late.
  Duration SlowMax(Time begun) const;
  // The same, because faults are not one at a time.
  Duration SeveralMax() const;
  // How long a call may take in addition, because others on the host use the file: they wait for
  // each other.
  Duration OthersMax(const Host& host, const std::string& what) const;
  // When the file was opened: a fault since then may have taken away the file, or what was written.
  Time OpenedAt(const Host& host, sai::HandleId handle) const {
    return opened_.at({host.mount.get(), handle}).begun;
  }

  HistoryState& state_;
  std::map<std::pair<const SimulatedMount*, sai::HandleId>, OpenFileOf> opened_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_CALLS_H_
