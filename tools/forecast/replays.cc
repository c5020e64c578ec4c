#include "tools/forecast/replays.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "predictor/compare/busy.h"
#include "predictor/compare/suspicion.h"
#include "tools/console/parallel.h"

namespace mosa::cli {
namespace {

// Replays may simulate so many tasks together: half a minute on two cores.
constexpr size_t kTasksReplayedMax = 300'000;
// At most so many earlier runs teach, the newest.
constexpr size_t kBeforeMax = 5;

using predict::Feature;
using predict::SeenRun;

std::optional<double> PlaceOf(const predict::Workflow& workflow, const SeenRun& run) {
  const predict::Features features = predict::FeaturesOf(workflow, run);
  const auto found = features.find(Feature{});
  if (found == features.end()) return std::nullopt;
  return found->second;
}

// By how much the work of others made the run longer, as a logarithm, if the simulator is right.
double LongerByOthers(const predict::Counterfactual& counterfactual,
                      const predict::Workflow& workflow, const SeenRun& run) {
  if (predict::TakenShare(run) <= predict::kBusyShare) return 0;
  SeenRun alone = run;
  alone.machines.clear();
  const auto beside = counterfactual.With({}, 1, &run),
             without = counterfactual.With({}, 1, &alone);
  if (!beside.ok() || !without.ok()) return 0;
  const auto longer = PlaceOf(workflow, *beside), shorter = PlaceOf(workflow, *without);
  return longer && shorter ? std::max(0.0, *longer - *shorter) : 0;
}

predict::Replay ReplayOn(const predict::Counterfactual& counterfactual,
                         const std::vector<SeenRun>& runs) {
  return [&](const std::vector<predict::ReplayOf>& wanted) {
    std::vector<std::optional<SeenRun>> replays(wanted.size());
    const Status done = InParallel(wanted.size(), 0, [&](size_t i) {
      const predict::ReplayOf& which = wanted[i];
      auto replay =
          counterfactual.With(which.suspicions, which.seed, &runs[which.run], which.as_placed);
      if (replay.ok()) replays[i] = *std::move(replay);
      return OkStatus();
    });
    return replays;
  };
}

void KeepNewest(size_t count, std::vector<size_t>& runs) {
  if (runs.size() > count) runs.erase(runs.begin(), runs.end() - static_cast<ptrdiff_t>(count));
}

// What can be replayed in reasonable time.
struct Budget {
  std::vector<predict::Suspicion> suspicions;
  size_t runs = 0;     // So many with each of these suspicions; 0: none.
  std::string reason;  // Why none.
};
Budget BudgetOf(const Asked& asked, const std::vector<std::string>& hosts, size_t judged) {
  const predict::Workflow& workflow = asked.inputs.workflow;
  Budget budget;
  if (asked.configuration.storage_hosts > 0) {
    budget.reason = "runs with storage nodes on hosts without tasks are not replayed";
    return budget;
  }
  budget.suspicions = predict::SuspicionsOf(workflow, asked.configuration, hosts);
  const size_t replays_max = kTasksReplayedMax / std::max<size_t>(1, workflow.tasks.size());
  const size_t as_they_ran = judged * predict::kSeedsTried;
  if (replays_max > as_they_ran)
    budget.runs = (replays_max - as_they_ran) / predict::ReplaysOf(budget.suspicions);
  if (budget.runs == 0)
    budget.reason =
        fmt::format("{} tasks on {} hosts are too many to replay runs with each part slower",
                    workflow.tasks.size(), hosts.size());
  return budget;
}

}  // namespace

Findings FindingsOf(const Asked& asked, const std::vector<SeenRun>& draws,
                    const std::vector<SeenRun>& runs) {
  const predict::Workflow& workflow = asked.inputs.workflow;
  const std::vector<std::string>& hosts = runs.back().hosts;
  const predict::Counterfactual counterfactual(workflow, asked.inputs.platform, asked.configuration,
                                               hosts);
  std::vector<double> drawn;
  for (const SeenRun& draw : draws)
    if (const auto place = PlaceOf(workflow, draw)) drawn.push_back(*place);
  std::vector<size_t> whole;
  for (size_t i = 0; i < runs.size(); ++i)
    if (PlaceOf(workflow, runs[i])) whole.push_back(i);
  Findings findings;
  if (drawn.size() < 2 || whole.empty() || whole.back() + 1 != runs.size()) return findings;
  KeepNewest(predict::kRunsJudged + kBeforeMax, whole);
  const Budget budget = BudgetOf(asked, hosts, whole.size());
  const predict::Replay replay = ReplayOn(counterfactual, runs);
  predict::DiagnosisQuestion question;
  question.suspicions = budget.suspicions;
  if (budget.runs > 0) question.replayed = predict::ReplayRuns(workflow, runs, whole, replay);
  std::vector<predict::TimeOfRun> times;
  std::vector<std::string> names;
  for (const size_t run : whole) {
    predict::TimeOfRun& time = times.emplace_back();
    time.measured = *PlaceOf(workflow, runs[run]);
    time.by_others = LongerByOthers(counterfactual, workflow, runs[run]);
    if (const auto replayed = question.replayed.find(run); replayed != question.replayed.end())
      time.replayed = predict::PlaceIn(replayed->second.features, Feature{});
    names.push_back(runs[run].name);
  }
  findings.detection = predict::Detect(drawn, times);
  bool is_replayed = false;
  if (findings.detection.may_be_slower()) {
    findings.note = budget.reason;
    const auto can_replay = [&question](size_t run) { return question.replayed.contains(run); };
    for (const size_t run : findings.detection.shown) question.shown.push_back(whole[run]);
    for (const size_t run : findings.detection.before)
      if (can_replay(whole[run])) question.before.push_back(whole[run]);
    KeepNewest(std::min(predict::kRunsJudged, budget.runs), question.shown);
    KeepNewest(kBeforeMax, question.before);
    is_replayed = budget.runs > 0 && std::ranges::all_of(question.shown, can_replay);
    if (is_replayed)
      findings.diagnoses = predict::Diagnose(workflow, draws, runs, question, replay);
    else if (findings.note.empty())
      findings.note = "replays of the last runs fail, so no part is looked for";
  }
  findings.finding = predict::FindingOf(findings.detection, findings.diagnoses, is_replayed, names);
  return findings;
}

}  // namespace mosa::cli
