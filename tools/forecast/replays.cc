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
// At most so many earlier runs, the newest.
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

// Which suspicions about which runs can be replayed in reasonable time; nothing if none, with the
// reason.
std::optional<predict::DiagnosisQuestion> QuestionOf(const Asked& asked,
                                                     const predict::Detection& detection,
                                                     const std::vector<size_t>& whole,
                                                     const std::vector<std::string>& hosts,
                                                     std::string& reason) {
  const predict::Workflow& workflow = asked.inputs.workflow;
  if (asked.configuration.storage_hosts > 0) {
    reason = "runs with storage nodes on hosts without tasks are not replayed";
    return std::nullopt;
  }
  predict::DiagnosisQuestion question;
  for (const size_t run : detection.shown) question.shown.push_back(whole[run]);
  for (const size_t run : detection.before) question.before.push_back(whole[run]);
  question.suspicions = predict::SuspicionsOf(workflow, asked.configuration, hosts);
  const size_t replays_max = kTasksReplayedMax / std::max<size_t>(1, workflow.tasks.size());
  const size_t each = predict::ReplaysOf(question.suspicions);
  if (replays_max < each) {
    reason = fmt::format("{} tasks on {} hosts are too many to replay runs with each part slower",
                         workflow.tasks.size(), hosts.size());
    return std::nullopt;
  }
  // The newest runs say most.
  const auto keep_newest = [](size_t count, std::vector<size_t>& runs) {
    if (runs.size() > count) runs.erase(runs.begin(), runs.end() - static_cast<ptrdiff_t>(count));
  };
  keep_newest(std::min(predict::kRunsJudged, replays_max / each), question.shown);
  keep_newest(kBeforeMax, question.before);
  return question;
}

}  // namespace

Findings FindingsOf(const Asked& asked, const std::vector<SeenRun>& draws,
                    const std::vector<SeenRun>& runs) {
  const predict::Workflow& workflow = asked.inputs.workflow;
  const std::vector<std::string>& hosts = runs.back().hosts;
  const predict::Counterfactual counterfactual(workflow, asked.inputs.platform, asked.configuration,
                                               hosts);
  Findings findings;
  std::vector<double> drawn, measured;
  std::vector<size_t> whole;
  std::vector<std::string> names;
  for (const SeenRun& draw : draws)
    if (const auto place = PlaceOf(workflow, draw)) drawn.push_back(*place);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto place = PlaceOf(workflow, runs[i]);
    if (!place) continue;
    measured.push_back(*place - LongerByOthers(counterfactual, workflow, runs[i]));
    whole.push_back(i);
    names.push_back(runs[i].name);
  }
  if (drawn.size() < 2 || whole.empty() || whole.back() + 1 != runs.size()) return findings;
  findings.detection = predict::Detect(drawn, measured);
  if (!findings.detection.may_be_slower()) {
    findings.finding = predict::FindingOf(findings.detection, {}, names);
    return findings;
  }
  const auto question = QuestionOf(asked, findings.detection, whole, hosts, findings.note);
  if (question) {
    findings.diagnoses = predict::Diagnose(
        workflow, draws, runs, *question, [&](const std::vector<predict::ReplayOf>& wanted) {
          std::vector<std::optional<SeenRun>> replays(wanted.size());
          const Status done = InParallel(wanted.size(), 0, [&](size_t i) {
            const predict::ReplayOf& which = wanted[i];
            auto replay = counterfactual.With(which.suspicions, which.seed, &runs[which.run],
                                              which.as_placed);
            if (replay.ok()) replays[i] = *std::move(replay);
            return OkStatus();
          });
          return replays;
        });
  }
  findings.finding = predict::FindingOf(findings.detection, findings.diagnoses, names);
  return findings;
}

}  // namespace mosa::cli
