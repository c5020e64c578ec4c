#include "predictor/compare/busy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace mosa::predict {
namespace {

// Caps the excuse: however busy the machine, a time may exceed its prediction at most sevenfold.
constexpr double kTakenMost = 0.75;
constexpr size_t kRunsSaid = 3;

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

double TakenShareAtManager(const SeenRun& run) {
  const auto found = std::ranges::find(run.machines, true, &SeenMachine::has_manager);
  return found == run.machines.end() ? 0 : TakenOn(*found);
}

Excuse ExcuseFor(double taken_share) {
  const double share = std::min(taken_share, kTakenMost);
  const double begun = std::clamp((taken_share - kBusyShare) / kBusyShare, 0.0, 1.0);
  return {begun * 2 * share / (1 - share), begun * taken_share * kDelaySeconds};
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
      "delays that the simulator attributes to this are not counted; repeat the runs on idle "
      "machines",
      whose, share, names.size(), runs.size(), runs.size() == 1 ? "" : "s",
      fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(said), ", "),
      names.size() > said ? fmt::format(" and {} more", names.size() - said) : "");
}

}  // namespace mosa::predict
