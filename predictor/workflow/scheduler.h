// Scheduler: which ready task runs on which host next. Pure: the runner and the predictor use the
// same class. Time is an argument, and every choice ends in an index, so that the same calls give
// the same answers. Not thread-safe: one owner, one thread.
//
// WASS: a task goes to the host that holds most of its input bytes. It waits for a busy host at
// most as long as moving the bytes to another one would take. So it ends at most about twice as
// late as with the better choice, without knowing how long tasks run. It does not wait at all if
// that host is known to stay busy longer. DSS: locations are ignored; tasks go to the host with the
// most free slots, in turn.
//
// A planned task goes to the host that its plan names, and is placed like any other if that host is
// lost, or if it has waited there for as long as the plan says.
//
// Tasks with a longer path ahead of them go first; among equals, the one that needs the least
// moving. One decision costs O(hosts + log tasks), or O(hosts * kinds) where tasks with so many
// different needs wait.
//
// A task takes as many slots as it has cores, or all of a host that has fewer, and its memory where
// the host's is known. While the first task that may go to a host finds no room there, no later
// one starts on it; so a large task waits for the tasks that run, not for all that come. If no
// host that is left has enough memory, the task goes to any.
#ifndef MOSA_PREDICTOR_WORKFLOW_SCHEDULER_H_
#define MOSA_PREDICTOR_WORKFLOW_SCHEDULER_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/strong_id.h"
#include "common/base/time.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

enum class System : uint8_t { kDss, kWass };

struct SchedulerHost {
  uint32_t slots = 1;         // Tasks of one core at a time.
  uint64_t memory_bytes = 0;  // For tasks; 0: not known.
  // Rate of its link; 0 counts as 1.
  uint64_t link_bytes_per_second = 125'000'000;
};

struct HostBytes {
  HostIndex host;
  uint64_t bytes = 0;
};

struct ReadyTask {
  TaskIndex task;
  uint32_t levels_to_end = 0;
  uint64_t input_bytes = 0;
  // Input bytes that each host holds locally; sorted by host, no host twice.
  std::vector<HostBytes> held;
  // Hosts on which it has failed. It runs on another one if there is any.
  std::set<HostIndex> avoid;
  std::optional<PlannedHost> planned;
  TaskNeeds needs;
};

enum class Reason : uint8_t {
  kHoldsMost,      // No host holds more of its input.
  kNothingToMove,  // No host holds any of its input, or moving it takes no time.
  kWaited,         // It waited for a better host as long as moving takes.
  kInTurn,         // DSS.
  kPlanned,        // Its plan names the host.
  kPlanLate,       // Its plan's host had no free slot for too long.
};
const char* ToText(Reason reason);

struct Assignment {
  TaskIndex task;
  HostIndex host;
  uint64_t local_bytes = 0;
  uint64_t remote_bytes = 0;
  Reason reason = Reason::kInTurn;
};

class Scheduler {
 public:
  Scheduler(System system, std::vector<SchedulerHost> hosts);

  // Precondition: the task is not already waiting here.
  void AddReady(ReadyTask task, Time now);
  // Removes a waiting task; no effect if it is not waiting.
  void Withdraw(TaskIndex task);

  // Returns the next pair and takes the slot. Returns nothing if no task may start anywhere now.
  std::optional<Assignment> Next(Time now);
  // Returns when a waiting task may next go elsewhere if nothing else happens before; nothing if
  // none will.
  std::optional<Time> NextChange() const;

  // Frees what a task with these needs took of `host`.
  void Release(HostIndex host, const TaskNeeds& needs);
  // Removes a lost host: it gets no more tasks, and its slots do not come back. Tasks that hold
  // bytes on it are placed again, and none waits for it any longer.
  void Remove(HostIndex host, Time now);
  // Sets when a slot of `host` is expected to become free; nothing: unknown. Only AddReady() uses
  // it, and only for hosts that hold some of the task's input.
  void ExpectFree(HostIndex host, std::optional<Time> at);

  size_t waiting() const { return waiting_.size(); }

 private:
  // Order of the tasks on one host, or of tasks that may go anywhere.
  struct Key {
    uint32_t levels_to_end = 0;
    int64_t move_ns = 0;
    TaskIndex task;
    std::strong_ordering operator<=>(const Key& other) const;
    bool operator==(const Key&) const = default;
  };
  struct Change {
    Time at;
    TaskIndex task;
    std::optional<HostIndex> host;  // Nothing: anywhere.
    auto operator<=>(const Change&) const = default;
  };
  struct Waiting {
    ReadyTask ready;
    int64_t best_move_ns = 0;
    bool preferred_host = false;    // It has a host to wait for.
    std::vector<HostIndex> listed;  // Hosts with it in their list.
    std::optional<Key> anywhere;    // Its key in anywhere_.
    std::vector<Change> changes;    // Changes still to come.
  };
  struct Host {
    uint32_t slots = 0;
    uint32_t free = 0;
    uint64_t memory = 0;
    uint64_t free_memory = 0;
    uint64_t rate = 1;
    std::optional<Time> expected_free;
    std::set<Key> tasks;  // Tasks that may start on it and are planned there or hold bytes there.
  };
  struct Choice {
    Key key;
    HostIndex host;
  };
  // Hosts that are kept for tasks that may go anywhere and find no room yet, with their keys.
  using Kept = std::map<HostIndex, Key>;

  static bool IsSmall(const TaskNeeds& needs) { return needs == TaskNeeds{}; }
  static uint32_t SlotsOn(const Host& host, const TaskNeeds& needs) {
    return std::min(needs.cores, host.slots);
  }
  static bool CanHold(const Host& host, const TaskNeeds& needs) {
    return host.slots > 0 && (host.memory == 0 || needs.memory_bytes <= host.memory);
  }
  bool HasRoom(HostIndex host, const TaskNeeds& needs) const;
  bool IsUsable(HostIndex host, const TaskNeeds& needs) const;
  Kept KeepHosts() const;
  bool IsOpenTo(const Key& key, HostIndex host, const Kept& kept) const;
  static uint64_t HeldBy(const ReadyTask& task, HostIndex host);
  int64_t MoveNs(const ReadyTask& task, HostIndex host) const;
  bool MayUse(const ReadyTask& task, HostIndex host) const;
  std::vector<HostIndex> Holders(const ReadyTask& task) const;
  void ListPlanned(Waiting& waiting, Time now);
  void ListHolders(Waiting& waiting, const std::vector<HostIndex>& holders, Time now);
  bool IsFreeBy(const Waiting& waiting, const std::vector<HostIndex>& holders, Time limit) const;
  void List(Waiting& waiting, std::optional<HostIndex> host);
  void Promote(Time now);
  std::optional<Choice> BestHeld(const Kept& kept) const;
  std::optional<Choice> BestAnywhere(const Kept& kept) const;
  bool IsBetterHost(const ReadyTask& task, HostIndex host, HostIndex than) const;
  Assignment Assign(const Choice& choice);

  const System system_;
  std::vector<Host> hosts_;
  uint64_t rate_max_ = 1;
  size_t large_ = 0;  // Waiting tasks that are not IsSmall().
  HostIndex turn_;    // First choice among equals; advances with each assignment.
  std::map<TaskIndex, Waiting> waiting_;
  std::set<Key> anywhere_;
  std::set<Change> changes_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_SCHEDULER_H_
