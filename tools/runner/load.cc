#include "tools/runner/load.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace mosa::cli {
namespace {

constexpr char kNoHost[] = "-";  // For daemons without a name.

struct Machine : MachineUse {
  double runner_s = 0;
  bool is_own_known = true;

  // Kernels may take back what they have said, as of a machine that moves to another host.
  double Grown(uint64_t later_ns, uint64_t earlier_ns);
};

double ToSeconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

double Machine::Grown(uint64_t later_ns, uint64_t earlier_ns) {
  if (later_ns >= earlier_ns) return ToSeconds(later_ns - earlier_ns);
  is_own_known = false;
  return 0;
}

std::optional<uint64_t> AmountOf(const DaemonResidence& daemon, const char* name) {
  for (const ResidenceAmount& amount : daemon.snapshot.amounts)
    if (amount.name == name) return amount.value;
  return std::nullopt;
}

// Whether it covers the whole time.
bool IsKnown(const DaemonResidence& daemon) {
  return daemon.failure.empty() && !daemon.since_start &&
         AmountOf(daemon, "machine_id").value_or(0) != 0 && AmountOf(daemon, "processor_ns");
}

class Machines {
 public:
  // What tasks have used is in what the runner's children have.
  void AddRunner(const RunnerLoad& before, const RunnerLoad& after) {
    if (before.use.machine == 0) return;
    runner_ = before.use.machine;
    Machine& machine = machines_[runner_];
    const ProcessorUse &was = before.use, &is = after.use;
    machine.has_runner = true;
    machine.processors = was.processors;
    machine.seconds = static_cast<double>((after.taken - before.taken).ns) / 1e9;
    machine.busy_s = machine.Grown(is.busy_ns, was.busy_ns);
    machine.stolen_s = machine.Grown(is.stolen_ns, was.stolen_ns);
    if (is.waited_ns > 0) machine.waited_s = machine.Grown(is.waited_ns, was.waited_ns);
    machine.runner_s = machine.Grown(is.own_ns, was.own_ns);
  }

  void AddDaemons(const ClusterResidence& during) {
    for (const DaemonResidence& daemon : during.daemons)
      if (IsKnown(daemon)) AddDaemon(daemon);
    for (const DaemonResidence& daemon : during.daemons)
      if (!IsKnown(daemon)) AddUnknown(daemon);
  }

  void AddTasks(const RunRecord& record) {
    std::map<std::string, Machine*> by_host;
    for (const RunHost& host : record.hosts) {
      const auto known = machine_of_host_.find(host.name);
      const uint64_t id = host.exec.empty()                 ? runner_
                          : known != machine_of_host_.end() ? known->second
                                                            : 0;
      const auto machine = machines_.find(id);
      if (machine == machines_.end()) {  // Its tasks may be on any.
        is_any_own_known_ = false;
        continue;
      }
      machine->second.hosts.insert(host.name);
      if (!host.exec.empty()) machine->second.is_own_known = false;
      by_host[host.name] = &machine->second;
    }
    for (const TaskRecord& task : record.tasks)
      for (const Attempt& attempt : task.attempts)
        if (const auto host = by_host.find(attempt.host);
            host != by_host.end() && attempt.processor && attempt.start >= record.start)
          host->second->tasks_s += ToSeconds(static_cast<uint64_t>(attempt.processor->ns));
  }

  std::vector<MachineUse> Uses() const {
    std::vector<MachineUse> uses;
    for (const auto& [id, machine] : machines_) {
      MachineUse& use = uses.emplace_back(machine);
      const double own_s = machine.daemons_s + std::max(machine.tasks_s, machine.runner_s);
      if (is_any_own_known_ && machine.is_own_known)
        use.others_s = std::max(0.0, machine.busy_s - own_s) + machine.stolen_s;
    }
    return uses;
  }

 private:
  void AddDaemon(const DaemonResidence& daemon) {
    const uint64_t id = *AmountOf(daemon, "machine_id");
    Machine& machine = machines_[id];
    if (daemon.component == "manager") {
      machine.has_manager = true;
    } else if (daemon.host != kNoHost) {
      machine_of_host_.emplace(daemon.host, id);
      machine.hosts.insert(daemon.host);
    }
    machine.daemons_s += ToSeconds(*AmountOf(daemon, "processor_ns"));
    if (machine.processors > 0) return;
    const auto busy_ns = AmountOf(daemon, "machine_busy_ns");
    const auto stolen_ns = AmountOf(daemon, "machine_stolen_ns");
    const auto waited_ns = AmountOf(daemon, "machine_waited_ns");
    machine.processors = AmountOf(daemon, "machine_processors").value_or(0);
    machine.seconds = static_cast<double>(daemon.between.ns) / 1e9;
    machine.busy_s = ToSeconds(busy_ns.value_or(0));
    machine.stolen_s = ToSeconds(stolen_ns.value_or(0));
    if (waited_ns) machine.waited_s = ToSeconds(*waited_ns);
    if (!busy_ns || !stolen_ns) machine.is_own_known = false;
  }
  // Where it is, or may be, own work is not known.
  void AddUnknown(const DaemonResidence& daemon) {
    uint64_t id = daemon.failure.empty() ? AmountOf(daemon, "machine_id").value_or(0) : 0;
    const auto beside = machine_of_host_.find(daemon.host);
    if (id == 0 && beside != machine_of_host_.end()) id = beside->second;
    if (id == 0) is_any_own_known_ = false;
    if (const auto machine = machines_.find(id); machine != machines_.end())
      machine->second.is_own_known = false;
  }

  uint64_t runner_ = 0;
  std::map<uint64_t, Machine> machines_;
  std::map<std::string, uint64_t> machine_of_host_;  // Not of daemons without a name.
  bool is_any_own_known_ = true;
};

}  // namespace

RunnerLoad TakeRunnerLoad() { return {ReadProcessorUse(), SystemClock().Monotonic()}; }

std::vector<MachineUse> MachinesOfRun(const RunRecord& record, const RunnerLoad& before,
                                      const RunnerLoad& after, const ClusterResidence* during) {
  Machines machines;
  machines.AddRunner(before, after);
  if (during != nullptr) machines.AddDaemons(*during);
  machines.AddTasks(record);
  return machines.Uses();
}

}  // namespace mosa::cli
