// Runs: the workflow runs whose runners report their tasks, with owners and tasks that succeeded.
// The caller makes runs and owners durable; tasks are not durable.
//
// A run without owner belongs to an administrator; only the global limits apply to it. Tasks beyond
// a limit are not recorded, so files that wait for them as readers stay.
// Not thread-safe. Invariant: `tasks_` is the sum over all runs and at most `tasks_max`.
#ifndef MOSA_MANAGER_CORE_RUNS_H_
#define MOSA_MANAGER_CORE_RUNS_H_

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/btree_set.h"
#include "common/base/status.h"

namespace mosa::manager {

struct RunLimits {
  size_t runs_max = 4096;
  size_t runs_per_user_max = 64;
  size_t tasks_max = 4'000'000;
  size_t tasks_per_user_max = 1'000'000;
};
// Approximate memory of one task, in a half-full tree.
inline constexpr size_t kTaskMemoryBytes = 20;

class Runs {
 public:
  struct Use {
    size_t runs = 0, tasks = 0;
  };

  explicit Runs(const RunLimits& limits = {}) : limits_(limits) {}

  bool Contains(std::string_view run) const { return runs_.contains(run); }
  std::optional<uint32_t> OwnerOf(std::string_view run) const {
    const auto found = owners_.find(run);
    return found == owners_.end() ? std::nullopt : std::optional(found->second);
  }
  bool HasSucceeded(std::string_view run, uint64_t task) const {
    const auto found = runs_.find(run);
    return found != runs_.end() && found->second.contains(task);
  }

  // ResourceExhausted if another run would exceed a limit, of `owner` or in total.
  Status CheckBegin(std::optional<uint32_t> owner) const {
    if (runs_.size() >= limits_.runs_max)
      return ResourceExhaustedError(
          fmt::format("{} runs are open, which is the limit: end some", runs_.size()));
    const size_t own = owner ? UseOf(*owner).runs : 0;
    if (own >= limits_.runs_per_user_max)
      return ResourceExhaustedError(
          fmt::format("{} runs of user {} are open, which is the limit: end some", own, *owner));
    return OkStatus();
  }
  // Does not check limits: an image may exceed them, and names owners first. A run's owner must not
  // change while it has tasks.
  void Begin(std::string_view run) { runs_.try_emplace(std::string(run)); }
  void SetOwner(std::string_view run, uint32_t owner) {
    owners_.insert_or_assign(std::string(run), owner);
  }
  // Returns false if there is none.
  bool End(std::string_view run) {
    const auto found = runs_.find(run);
    if (found == runs_.end()) return false;
    CountTasks(run, -static_cast<int64_t>(found->second.size()));
    runs_.erase(found);
    return true;
  }
  bool ForgetOwner(std::string_view run) {
    const auto found = owners_.find(run);
    if (found == owners_.end()) return false;
    owners_.erase(found);
    return true;
  }

  // Does nothing unless the run has begun.
  void NoteTask(std::string_view run, uint64_t task, bool succeeded) {
    const auto found = runs_.find(run);
    if (found == runs_.end()) return;
    if (!succeeded) {
      CountTasks(run, -static_cast<int64_t>(found->second.erase(task)));
    } else if (MayNote(run) && found->second.insert(task).second) {
      CountTasks(run, 1);
    }
  }

  const RunLimits& limits() const { return limits_; }
  Use all() const { return {runs_.size(), tasks_}; }
  Use UseOf(uint32_t owner) const {
    Use use{.runs = 0, .tasks = TasksOf(owner)};
    for (const auto& [run, uid] : owners_) use.runs += uid == owner && runs_.contains(run) ? 1 : 0;
    return use;
  }
  // Returns the user with the most runs, if any user has one.
  std::optional<uint32_t> UserWithMostRuns() const {
    std::map<uint32_t, size_t> counts;
    for (const auto& [run, uid] : owners_) counts[uid] += runs_.contains(run) ? 1 : 0;
    std::optional<uint32_t> most;
    for (const auto& [uid, count] : counts)
      if (count > 0 && (!most || count > counts[*most])) most = uid;
    return most;
  }

 private:
  bool MayNote(std::string_view run) const {
    const std::optional<uint32_t> owner = OwnerOf(run);
    return tasks_ < limits_.tasks_max && (!owner || TasksOf(*owner) < limits_.tasks_per_user_max);
  }
  size_t TasksOf(uint32_t owner) const {
    const auto found = tasks_of_users_.find(owner);
    return found == tasks_of_users_.end() ? 0 : found->second;
  }
  void CountTasks(std::string_view run, int64_t more) {
    const std::optional<uint32_t> owner = OwnerOf(run);
    tasks_ += static_cast<size_t>(more);
    if (!owner || more == 0) return;
    size_t& own = tasks_of_users_[*owner];
    own += static_cast<size_t>(more);
    if (own == 0) tasks_of_users_.erase(*owner);
  }

  const RunLimits limits_;
  std::map<std::string, absl::btree_set<uint64_t>, std::less<>> runs_;
  std::map<std::string, uint32_t, std::less<>> owners_;
  size_t tasks_ = 0;
  std::map<uint32_t, size_t> tasks_of_users_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_RUNS_H_
