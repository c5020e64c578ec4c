#include "predictor/compare/busy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

// Of a machine that others have nearly to themselves no more is excused: seven times as long.
constexpr double kTakenMost = 0.75;
constexpr double kAsSaid = 1.15;
constexpr double kOfMore = 0.5;
// What the kernel takes for a task: to start its programs, and for each byte that it moves.
constexpr double kStartSeconds = 0.02;
constexpr double kByteSeconds = 2e-9;
constexpr size_t kRunsSaid = 3;

double BytesOf(const SeenTask& task) {
  double all = 0;
  for (const BytesByNodeName* moved : {&task.read, &task.written})
    for (const auto& [node, bytes] : *moved) all += static_cast<double>(bytes);
  return all;
}

double TakenOn(const SeenMachine& machine) {
  return std::min(machine.others_share, machine.waited_share.value_or(1));
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
  for (const SeenMachine& machine : run.machines)
    if (std::ranges::count(machine.hosts, host) > 0) return TakenOn(machine);
  return 0;
}

double TakenShareBeside(const SeenRun& run, const std::string& host) {
  double least = 1;
  for (const std::string& other : run.hosts)
    if (other != host) least = std::min(least, TakenShareAt(run, other));
  return std::max(0.0, TakenShareAt(run, host) - least);
}

double OthersShare(const SeenRun& run) {
  double most = 0;
  for (const SeenMachine& machine : run.machines) most = std::max(most, machine.others_share);
  return most;
}

JudgedRun WithoutOthers(const JudgedRun& run, double predicted_place, double taken_share,
                        double delay_s) {
  const double more = run.place - predicted_place;
  if (taken_share < kBusyShare || more <= 0) return run;
  const double share = std::min(taken_share, kTakenMost);
  const double excused =
      std::min(more, std::log(1 + 2 * share / (1 - share) + delay_s / std::exp(predicted_place)));
  JudgedRun rest = run;
  rest.place -= excused;
  rest.effect_share *= std::expm1(more - excused) / std::expm1(more);
  return rest;
}

OwnSeconds OwnSecondsOf(const Workflow& workflow, const SeenRun& run,
                        const std::vector<double>& typical_s,
                        const std::vector<Duration>& computing, const std::string& stage) {
  OwnSeconds own;
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    const SeenTask& task = run.tasks[i];
    if (!task.ran || !task.processor || typical_s[i] <= 0) continue;
    if (!stage.empty() && workflow.tasks[i].stage != stage) continue;
    ++own.tasks;
    own.own_s +=
        std::max(0.0, SecondsOf(*task.processor) - kStartSeconds - kByteSeconds * BytesOf(task));
    own.said_s += SecondsOf(computing[i]);
    own.more_s += std::max(0.0, SecondsOf(task.end - task.start) - typical_s[i]);
  }
  return own;
}

bool ComputeLonger(const OwnSeconds& own, double others_share) {
  return own.more_s > 0 &&
         own.own_s - (kAsSaid + others_share) * own.said_s >= kOfMore * own.more_s;
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
      least = std::min(least, machine.others_share);
      most = std::max(most, machine.others_share);
      hosts.insert(machine.hosts.begin(), machine.hosts.end());
    }
  }
  if (names.empty()) return "";
  const std::string whose = hosts.empty() ? "the machine of 'mosa run'" : Listed(hosts);
  const std::string share = most - least < 0.01
                                ? fmt::format("{:.0f} %", most * 100)
                                : fmt::format("{:.0f} to {:.0f} %", least * 100, most * 100);
  const size_t said = std::min(names.size(), kRunsSaid);
  return fmt::format(
      "machine busy: the processors of {} were {} busy with others' work in {} of {} run{} ({}{}): "
      "times of these runs say nothing of the store as far as that explains them, only hosts "
      "beside "
      "each other in the same run do; make them again on machines that are left alone",
      whose, share, names.size(), runs.size(), runs.size() == 1 ? "" : "s",
      fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(said), ", "),
      names.size() > said ? fmt::format(" and {} more", names.size() - said) : "");
}

}  // namespace mosa::predict
