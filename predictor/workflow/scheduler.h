// Which ready task runs on which host next. Pure: the runner and the predictor ask
// the same object; time is an argument; every choice ends in an index, so that the same questions
// get the same answers.
//
// WASS: a task goes where most of its input bytes are. It does not hold out for a busy host longer
// than moving the bytes to another one would take (so it ends at most about twice as late as the
// better choice, without anybody knowing how long tasks run), and not at all if that host is known
// to stay busy longer than that. DSS: no locations, the host with most free slots, in turn.
//
// Tasks with a longer path ahead of them go first; among equals the one that needs least moving.
// One decision costs O(hosts + log tasks). One owner, one thread.
#ifndef MOSA_PREDICTOR_WORKFLOW_SCHEDULER_H_
#define MOSA_PREDICTOR_WORKFLOW_SCHEDULER_H_

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

using HostIndex = StrongId<struct WorkflowHostTag, uint32_t>;

enum class System : uint8_t { kDss, kWass };

struct SchedulerHost {
  uint32_t slots = 1;  // Tasks at a time.
  // What its link carries. 0 counts as 1.
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
  // Input bytes that each host could read from itself; sorted by host, no host twice.
  std::vector<HostBytes> held;
  // Where it has failed: goes elsewhere if there is any other host.
  std::set<HostIndex> avoid;
};

enum class Reason : uint8_t {
  kHoldsMost,      // No host holds more of its bytes.
  kNothingToMove,  // No host holds any of its bytes, or moving them takes no time.
  kWaited,         // It has waited for a better host as long as moving takes.
  kInTurn,         // DSS.
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

  // Precondition: the task is not waiting here already.
  void AddReady(ReadyTask task, Time now);
  // Takes a task back that has not been assigned; nothing if there is none.
  void Withdraw(TaskIndex task);

  // The next pair, whose slot is taken thereby. Nothing if no task may start anywhere now.
  std::optional<Assignment> Next(Time now);
  // When a task that is held back may go elsewhere, if one is and nothing else happens before.
  std::optional<Time> NextChange() const;

  // A slot of `host` is free again.
  void Release(HostIndex host);
  // The host is gone: it gets no more tasks, and its slots do not come back. Tasks that hold bytes
  // on it are looked at anew: none waits for it any longer.
  void Remove(HostIndex host, Time now);
  // When a slot of `host` is expected to become free; nothing if nobody knows.
  // AddReady() asks it for hosts that hold some of the task's input, and nothing else asks: it
  // need not be said for other hosts.
  void ExpectFree(HostIndex host, std::optional<Time> at);

  size_t waiting() const { return waiting_.size(); }

 private:
  // The order of tasks on one host, or of tasks that may go anywhere.
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
    std::optional<HostIndex> host;  // None: anywhere.
    auto operator<=>(const Change&) const = default;
  };
  struct Waiting {
    ReadyTask ready;
    int64_t best_move_ns = 0;
    bool preferred_host = false;    // It has something to hold out for.
    std::vector<HostIndex> listed;  // Hosts whose lists it is in.
    std::optional<Key> anywhere;    // Its key there.
    std::vector<Change> changes;    // That are still to come.
  };
  struct Host {
    uint32_t slots = 0;
    uint32_t free = 0;
    uint64_t rate = 1;
    std::optional<Time> expected_free;
    std::set<Key> tasks;  // That may start on it and hold bytes on it.
  };
  struct Choice {
    Key key;
    HostIndex host;
  };

  static uint64_t HeldBy(const ReadyTask& task, HostIndex host);
  int64_t MoveNs(const ReadyTask& task, HostIndex host) const;
  bool MayUse(const ReadyTask& task, HostIndex host) const;
  std::vector<HostIndex> Holders(const ReadyTask& task) const;
  void ListHolders(Waiting& waiting, const std::vector<HostIndex>& holders, Time now);
  bool IsFreeBy(const Waiting& waiting, const std::vector<HostIndex>& holders, Time limit) const;
  void List(Waiting& waiting, std::optional<HostIndex> host);
  void Promote(Time now);
  std::optional<Choice> BestHeld() const;
  std::optional<Choice> BestAnywhere() const;
  bool IsBetterHost(const ReadyTask& task, HostIndex host, HostIndex than) const;
  Assignment Assign(const Choice& choice);

  const System system_;
  std::vector<Host> hosts_;
  uint32_t living_ = 0;
  uint64_t rate_max_ = 1;
  HostIndex turn_;  // The first choice among equals; moves on with each assignment.
  std::map<TaskIndex, Waiting> waiting_;
  std::set<Key> anywhere_;
  std::set<Change> changes_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_SCHEDULER_H_
