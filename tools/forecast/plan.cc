#include "tools/forecast/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/units.h"
#include "predictor/plan/search.h"
#include "predictor/workflow/streams.h"
#include "predictor/workflow/versions.h"
#include "tools/console/output.h"
#include "tools/forecast/compare_runs.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/trial_simulator.h"

namespace mosa::cli {
namespace {

// How much of a run's predicted time `mosa run` looks for a plan.
constexpr double kTimeShare = 0.02;

struct Share {
  size_t tasks = 0;
  double task_seconds = 0;
  double first_s = 0;
  double last_s = 0;
};

std::string TextOf(const std::optional<predict::Interval<double>>& interval) {
  return interval ? fmt::format(" ({:.2f} to {:.2f})", interval->low, interval->high) : "";
}

void PrintHosts(const predict::Plan& plan) {
  std::map<std::string, Share> shares;
  for (const predict::PlannedTask& task : plan.tasks) {
    Share& share = shares[task.host];
    share.first_s = share.tasks == 0 ? task.start_s : std::min(share.first_s, task.start_s);
    share.last_s = std::max(share.last_s, task.end_s);
    share.task_seconds += task.end_s - task.start_s;
    ++share.tasks;
  }
  Table table({"HOST", "TASKS", "FIRST START", "LAST END", "TASK SECONDS", "MOST BYTES STORED"});
  for (const std::string& host : plan.hosts) {
    const Share& share = shares[host];
    const auto stored = plan.store_bytes_max.find(host);
    table.Add({host, fmt::format("{}", share.tasks), fmt::format("{:.2f}", share.first_s),
               fmt::format("{:.2f}", share.last_s), fmt::format("{:.2f}", share.task_seconds),
               stored == plan.store_bytes_max.end()
                   ? "-"
                   : HumanBytes(static_cast<int64_t>(stored->second))});
  }
  table.Print();
}

void PrintPlan(const predict::Plan& plan) {
  if (plan.tasks.empty()) {
    fmt::print(
        "'{}' takes {:.2f} s{} on {} hosts. No plan that was tried is faster: run it without "
        "one.\n",
        plan.workflow, plan.unplanned_seconds, TextOf(plan.seconds_interval), plan.hosts.size());
    return;
  }
  PrintHosts(plan);
  if (!plan.unplanned_failure.empty()) {
    fmt::print("'{}' takes {:.2f} s{} with this plan. Without it the run would fail: {}.\n",
               plan.workflow, plan.seconds, TextOf(plan.seconds_interval), plan.unplanned_failure);
    return;
  }
  fmt::print(
      "'{}' takes {:.2f} s{} with this plan, and {:.2f} s without it.\n"
      "The gain is {:.2f} s{} in the median, {:.0f} %. Over the network go {} instead of {}.\n",
      plan.workflow, plan.seconds, TextOf(plan.seconds_interval), plan.unplanned_seconds,
      plan.gain_s, TextOf(plan.gain_interval_s), 100 * plan.gain_s / plan.unplanned_seconds,
      HumanBytes(static_cast<int64_t>(plan.link_bytes)),
      HumanBytes(static_cast<int64_t>(plan.unplanned_link_bytes)));
  if (plan.reads_ahead)
    fmt::print("Hosts read ahead what their next tasks need while the present ones compute.\n");
}

struct Found {
  predict::Plan plan;
  Status incomplete;
  bool leaves_streams_out = false;
  size_t simulations = 0;
  double seconds = 0;
};

// `time_share`: look for so much of the predicted time.
Result<Found> Find(const PlanningRequest& request, std::optional<double> time_share) {
  MOSA_ASSIGN_OR_RETURN(const Work work, ReadWork(request.work));
  predict::Configuration configuration;
  if (request.work.record.empty()) {
    MOSA_ASSIGN_OR_RETURN(configuration, predict::ParseConfiguration(request.configuration));
  } else {
    MOSA_ASSIGN_OR_RETURN(const RunFile file, ReadRunFile(request.work.record, CutFiles::kRefuse));
    MOSA_ASSIGN_OR_RETURN(configuration,
                          DeploymentOf(file.hosts, predict::System::kWass, request.configuration));
  }
  MOSA_RETURN_IF_ERROR(predict::CheckOn(work.platform, configuration));
  if (const auto& placements = configuration.class_placements; !placements.empty())
    return InvalidArgumentError(
        fmt::format("placement{}: mosa plan chooses the placement of files itself: leave it out",
                    placements.begin()->first));
  if (const auto later = predict::LaterVersionsIn(work.workflow); !later.empty())
    fmt::print(stderr,
               "mosa {}: '{}' and {} more look like later versions of other files in a traced run "
               "and get no hints\n",
               request.command, work.workflow.at(later.front()).path, later.size() - 1);
  NoteTasksWithoutRuntime(request.command, work.workflow);
  TrialSimulator simulator(work.platform, request.jobs);
  double predicted_s = 0;  // Without a plan, which is simulated first.
  const auto simulate = [&](const std::vector<predict::PlanTrial>& trials)
      -> Result<std::vector<predict::PlanTrialOutcome>> {
    std::vector<predict::PlanTrialOutcome> all(trials.size());
    MOSA_ASSIGN_OR_RETURN(auto outcomes, simulator.Run(trials.size(), [&](size_t i) {
      const predict::PlanTrial& trial = trials[i];
      return Simulation{trial.workflow, configuration, trial.draw,
                        trial.wants_prediction ? &all[i].prediction : nullptr};
    }));
    for (size_t i = 0; i < all.size(); ++i) all[i].outcome = std::move(outcomes[i]);
    if (predicted_s == 0 && !all.empty())
      predicted_s = predict::SecondsOf(all.front().outcome.time);
    return all;
  };
  predict::PlanOptions options{.draws = request.repeats, .seed = configuration.seed};
  if (time_share)
    options.is_too_much = [&](size_t more) {
      const auto done = static_cast<double>(simulator.done());
      const double all_s = simulator.seconds() * (done + static_cast<double>(more)) / done;
      return all_s > *time_share * predicted_s;
    };
  MOSA_ASSIGN_OR_RETURN(predict::Plan plan, predict::FindPlan(work.workflow, work.platform,
                                                              configuration, options, simulate));
  const bool leaves_streams_out =
      !plan.tasks.empty() && !plan.streams && predict::HasStreams(work.workflow);
  return Found{std::move(plan), work.incomplete, leaves_streams_out, simulator.done(),
               simulator.seconds()};
}

}  // namespace

Status MakePlan(const PlanningRequest& request, bool as_json) {
  MOSA_RETURN_IF_ERROR(CheckRepeats(request.repeats));
  MOSA_ASSIGN_OR_RETURN(const Found found, Find(request, /*time_share=*/std::nullopt));
  const std::string text = predict::ToJsonText(found.plan);
  if (as_json)
    PrintJson(nlohmann::json::parse(text));
  else
    PrintPlan(found.plan);
  if (!as_json && found.leaves_streams_out)
    fmt::print("Streams are plain files in it: their readers would hold slots while they wait.\n");
  if (!request.output.empty()) {
    MOSA_RETURN_IF_ERROR(WriteWhole(request.output, text));
    fmt::print(stderr, "{} simulations in {:.1f} s; the plan is in {}{}\n", found.simulations,
               found.seconds, request.output,
               found.plan.tasks.empty() ? ", which is empty" : ": use it with 'mosa run --plan'");
  }
  return found.incomplete;
}

Result<RunPlan> PlanRun(const PlanningRequest& request) {
  MOSA_ASSIGN_OR_RETURN(Found found, Find(request, kTimeShare));
  predict::Plan& plan = found.plan;
  std::string said;
  if (!plan.tasks.empty())
    said = fmt::format("{:.1f} s predicted, {:.1f} s without it; found in {:.1f} s", plan.seconds,
                       plan.unplanned_seconds, found.seconds);
  else if (found.simulations > request.repeats + 1)
    said = fmt::format("none that was tried in {:.1f} s is faster than {:.1f} s", found.seconds,
                       plan.unplanned_seconds);
  else
    said = fmt::format("{:.1f} s are too short a run to look for one", plan.unplanned_seconds);
  return RunPlan{std::move(plan), std::move(said)};
}

}  // namespace mosa::cli
