#include "predictor/compare/busy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

// Caps the excuse: however busy the machine, a time may exceed its prediction at most sevenfold.
constexpr double kTakenMost = 0.75;
constexpr double kAsSaid = 1.15;
constexpr double kOfMore = 0.5;
// A task that took at most this many times its prediction computed as it usually does.
constexpr double kSoundTimes = 1.25;
// What the kernel uses for a task: to start its programs, and to move each byte.
constexpr double kStartSeconds = 0.02;
constexpr double kByteSeconds = 2e-9;
constexpr size_t kRunsSaid = 3;

double BytesOf(const SeenTask& task) {
  double all = 0;
  for (const BytesByNodeName* moved : {&task.read, &task.written})
    for (const auto& [node, bytes] : *moved) all += static_cast<double>(bytes);
  return all;
}

double OwnOf(const SeenTask& task) {
  return std::max(0.0, SecondsOf(*task.processor) - kStartSeconds - kByteSeconds * BytesOf(task));
}

double TakenOn(const SeenMachine& machine) {
  const double waited = std::min(machine.others_share, machine.waited_share.value_or(1));
  return std::min(1.0, waited + machine.stolen_share);
}
double HadOn(const SeenMachine& machine) {
  return std::min(1.0, machine.others_share + machine.stolen_share);
}

const SeenMachine* MachineOf(const SeenRun& run, const std::string& host) {
  for (const SeenMachine& machine : run.machines)
    if (std::ranges::count(machine.hosts, host) > 0) return &machine;
  return nullptr;
}

// "h1, h2 and h3".
std::string Listed(const std::set<std::string>& names) {
  std::string text;
  size_t left = names.size();
  for (const std::string& name : names) {
    text += name;
    --left;
    if (left > 0) text += left == 1 ? " and " : ", ";
  }
  return text;
}

}  // namespace

double TakenShare(const SeenRun& run) {
  double most = 0;
  for (const SeenMachine& machine : run.machines) most = std::max(most, TakenOn(machine));
  return most;
}

double TakenShareAt(const SeenRun& run, const std::string& host) {
  const SeenMachine* const machine = MachineOf(run, host);
  return machine == nullptr ? 0 : TakenOn(*machine);
}

double TakenShareAtRunner(const SeenRun& run) {
  const auto found = std::ranges::find(run.machines, true, &SeenMachine::has_runner);
  return found == run.machines.end() ? 0 : TakenOn(*found);
}

double TakenShareAtManager(const SeenRun& run) {
  const auto found = std::ranges::find(run.machines, true, &SeenMachine::has_manager);
  return found == run.machines.end() ? 0 : TakenOn(*found);
}

double TakenShareBeside(const SeenRun& run, const std::string& host) {
  double least = 1;
  for (const std::string& other : run.hosts)
    if (other != host) least = std::min(least, TakenShareAt(run, other));
  return std::max(0.0, TakenShareAt(run, host) - least);
}

Excuse ExcuseFor(double taken_share) {
  const double share = std::min(taken_share, kTakenMost);
  const double begun = std::clamp((taken_share - kBusyShare) / kBusyShare, 0.0, 1.0);
  return {begun * 2 * share / (1 - share), begun * taken_share * kDelaySeconds};
}

TakenFromTasks TakenFrom(const Workflow& workflow, const SeenRun& run, const std::string& stage) {
  std::vector<size_t> tasks(run.hosts.size(), 0);
  size_t all = 0;
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    if (!run.tasks[i].ran || (!stage.empty() && workflow.tasks[i].stage != stage)) continue;
    ++tasks[run.tasks[i].host.value];
    ++all;
  }
  TakenFromTasks taken;
  for (size_t host = 0; host < tasks.size(); ++host) {
    const SeenMachine* const machine = MachineOf(run, run.hosts[host]);
    if (tasks[host] == 0 || machine == nullptr) continue;
    taken.is_known = true;
    taken.most = std::max(taken.most, TakenOn(*machine));
    taken.had = std::max(taken.had, HadOn(*machine));
    const Excuse excuse = ExcuseFor(TakenOn(*machine));
    const double weight = static_cast<double>(tasks[host]) / static_cast<double>(all);
    taken.mean.share += weight * excuse.share;
    taken.mean.delay_s += weight * excuse.delay_s;
  }
  return taken;
}

JudgedRun WithoutOthers(const JudgedRun& run, double predicted_place, const Excuse& excuse) {
  const double more = run.place - predicted_place;
  const double share = excuse.share + excuse.delay_s / std::exp(predicted_place);
  if (share <= 0 || more <= 0) return run;
  const double excused = std::min(more, std::log(1 + share));
  JudgedRun rest = run;
  rest.place -= excused;
  rest.excused = excused;
  rest.effect_share *= std::expm1(more - excused) / std::expm1(more);
  return rest;
}

std::vector<UsualSeconds> UsualSecondsOf(const std::vector<SeenRun>& runs,
                                         const std::vector<double>& typical_s,
                                         const std::vector<Duration>& computing) {
  std::vector<UsualSeconds> usual(typical_s.size());
  for (size_t i = 0; i < usual.size(); ++i) {
    for (const SeenRun& run : runs) {
      const SeenTask& task = run.tasks[i];
      if (!task.ran || !task.processor ||
          SecondsOf(task.end - task.start) > kSoundTimes * typical_s[i])
        continue;
      const double own_s = OwnOf(task);
      if (!usual[i].is_measured || own_s < usual[i].seconds) usual[i] = {own_s, true};
    }
    if (!usual[i].is_measured) usual[i].seconds = SecondsOf(computing[i]);
  }
  return usual;
}

OwnSeconds OwnSecondsOf(const Workflow& workflow, const SeenRun& run,
                        const std::vector<double>& typical_s,
                        const std::vector<UsualSeconds>& usual, const std::string& stage) {
  OwnSeconds own;
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    const SeenTask& task = run.tasks[i];
    if (!task.ran || !task.processor || typical_s[i] <= 0) continue;
    if (!stage.empty() && workflow.tasks[i].stage != stage) continue;
    const double took_s = SecondsOf(task.end - task.start);
    const double own_s = OwnOf(task);
    if (!usual[i].is_measured && own_s > took_s + kStartSeconds) continue;
    ++own.tasks;
    if (usual[i].is_measured) ++own.measured;
    own.own_s += own_s;
    own.usual_s += usual[i].seconds;
    own.more_s += std::max(0.0, took_s - typical_s[i]);
  }
  return own;
}

bool ComputeLonger(const OwnSeconds& own, double others_share) {
  return own.more_s > 0 &&
         own.own_s - (kAsSaid + others_share) * own.usual_s >= kOfMore * own.more_s;
}

std::string SayBusy(const std::vector<const SeenRun*>& runs) {
  std::set<std::string> hosts;
  std::vector<std::string> names;
  double least = 1, most = 0;
  for (const SeenRun* run : runs) {
    if (TakenShare(*run) < kBusyShare) continue;
    names.push_back(run->name);
    for (const SeenMachine& machine : run->machines) {
      if (TakenOn(machine) < kBusyShare) continue;
      least = std::min(least, HadOn(machine));
      most = std::max(most, HadOn(machine));
      hosts.insert(machine.hosts.begin(), machine.hosts.end());
      if (!machine.hosts.empty()) continue;
      if (machine.has_runner) hosts.insert("the machine of 'mosa run'");
      if (machine.has_manager) hosts.insert("the manager's machine");
    }
  }
  if (names.empty()) return "";
  const std::string whose = hosts.empty() ? "a machine without hosts" : Listed(hosts);
  const std::string share = most - least < 0.01
                                ? fmt::format("{:.0f} %", most * 100)
                                : fmt::format("{:.0f} to {:.0f} %", least * 100, most * 100);
  const size_t said = std::min(names.size(), kRunsSaid);
  return fmt::format(
      "machine busy: the processors of {} were {} busy with other work in {} of {} run{} ({}{}): "
      "delays that this explains are not held against the store, unless hosts differ within the "
      "same run; repeat the runs on idle machines",
      whose, share, names.size(), runs.size(), runs.size() == 1 ? "" : "s",
      fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(said), ", "),
      names.size() > said ? fmt::format(" and {} more", names.size() - said) : "");
}

}  // namespace mosa::predict
