#include "tools/mosa/run_load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

struct Machine {
  std::vector<std::string> hosts;
  uint64_t processors = 0;
  double seconds = 0, busy_s = 0, stolen_s = 0, waited_s = 0;
  double daemons_s = 0, tasks_s = 0, runner_s = 0;
  bool is_own_known = true;
};

double ToSeconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

uint64_t AmountOf(const DaemonResidence& daemon, const char* name) {
  for (const ResidenceAmount& amount : daemon.snapshot.amounts)
    if (amount.name == name) return amount.value;
  return 0;
}

class Machines {
 public:
  // What tasks have used is in what the runner's children have.
  void AddRunner(const RunnerLoad& before, const RunnerLoad& after) {
    if (before.use.machine == 0) return;
    runner_ = before.use.machine;
    Machine& machine = machines_[runner_];
    machine.processors = before.use.processors;
    machine.seconds = static_cast<double>((after.taken - before.taken).ns) / 1e9;
    machine.busy_s = ToSeconds(after.use.busy_ns - before.use.busy_ns);
    machine.stolen_s = ToSeconds(after.use.stolen_ns - before.use.stolen_ns);
    machine.waited_s = ToSeconds(after.use.waited_ns - before.use.waited_ns);
    machine.runner_s = ToSeconds(after.use.own_ns - before.use.own_ns);
  }

  void AddDaemons(const ClusterResidence& during) {
    std::vector<std::string> unknown;
    for (const DaemonResidence& daemon : during.daemons) {
      const uint64_t id = AmountOf(daemon, "machine_id");
      if (!daemon.failure.empty() || daemon.since_start || id == 0) {
        unknown.push_back(daemon.host);
        continue;
      }
      machine_of_host_.emplace(daemon.host, id);
      Machine& machine = machines_[id];
      machine.daemons_s += ToSeconds(AmountOf(daemon, "processor_ns"));
      if (machine.processors > 0) continue;
      machine.processors = AmountOf(daemon, "machine_processors");
      machine.seconds = static_cast<double>(daemon.between.ns) / 1e9;
      machine.busy_s = ToSeconds(AmountOf(daemon, "machine_busy_ns"));
      machine.stolen_s = ToSeconds(AmountOf(daemon, "machine_stolen_ns"));
      machine.waited_s = ToSeconds(AmountOf(daemon, "machine_waited_ns"));
    }
    for (const std::string& host : unknown) {
      const auto known = machine_of_host_.find(host);
      for (auto& [id, machine] : machines_)
        if (known == machine_of_host_.end() || known->second == id) machine.is_own_known = false;
    }
  }

  void AddTasks(const RunRecord& record) {
    std::map<std::string, Machine*> by_host;
    for (const RunHost& host : record.hosts) {
      const auto known = machine_of_host_.find(host.name);
      const uint64_t id = host.exec.empty()                 ? runner_
                          : known != machine_of_host_.end() ? known->second
                                                            : 0;
      const auto machine = machines_.find(id);
      if (machine == machines_.end()) continue;
      machine->second.hosts.push_back(host.name);
      if (!host.exec.empty()) machine->second.is_own_known = false;
      by_host[host.name] = &machine->second;
    }
    for (const TaskRecord& task : record.tasks)
      for (const Attempt& attempt : task.attempts)
        if (const auto host = by_host.find(attempt.host);
            host != by_host.end() && attempt.processor && attempt.start >= record.start)
          host->second->tasks_s += ToSeconds(static_cast<uint64_t>(attempt.processor->ns));
  }

  json ToJson() const {
    if (machines_.empty()) return nullptr;
    json list = json::array();
    for (const auto& [id, machine] : machines_) {
      json object = {{"hosts", machine.hosts},       {"processors", machine.processors},
                     {"seconds", machine.seconds},   {"busy_s", machine.busy_s},
                     {"stolen_s", machine.stolen_s}, {"daemons_s", machine.daemons_s},
                     {"tasks_s", machine.tasks_s}};
      if (machine.waited_s > 0) object["waited_s"] = machine.waited_s;
      const double own_s = machine.daemons_s + std::max(machine.tasks_s, machine.runner_s);
      if (machine.is_own_known)
        object["others_s"] = std::max(0.0, machine.busy_s - own_s) + machine.stolen_s;
      list.push_back(std::move(object));
    }
    return list;
  }

 private:
  uint64_t runner_ = 0;
  std::map<uint64_t, Machine> machines_;
  std::map<std::string, uint64_t> machine_of_host_;
};

}  // namespace

RunnerLoad TakeRunnerLoad() { return {ReadProcessorUse(), SystemClock().Monotonic()}; }

json MachinesOfRun(const RunRecord& record, const RunnerLoad& before, const RunnerLoad& after,
                   const ClusterResidence* during) {
  Machines machines;
  machines.AddRunner(before, after);
  if (during != nullptr) machines.AddDaemons(*during);
  machines.AddTasks(record);
  return machines.ToJson();
}

}  // namespace mosa::cli
