#include "tools/forecast/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "predictor/explore/explorer.h"
#include "predictor/workflow/versions.h"
#include "tools/console/output.h"
#include "tools/forecast/advise_output.h"
#include "tools/forecast/explore_simulator.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/trial_simulator.h"
#include "tools/forecast/work.h"

namespace mosa::cli {
namespace {

using predict::Deployment;
using predict::Trial;

Result<predict::HintAdvice> AdviseHints(const Work& work, const Advice& advice,
                                        const predict::AdviseOptions& how,
                                        TrialSimulator& simulator) {
  const auto simulate = [&](const std::vector<Trial>& trials) {
    return simulator.Run(trials.size(), [&](size_t i) -> Simulation {
      predict::Configuration configuration = advice.configuration;
      configuration.system = trials[i].system;
      return {std::make_shared<const predict::Workflow>(
                  WithHints(work.workflow, advice.classes, trials[i].choice)),
              configuration, trials[i].draw};
    });
  };
  return predict::FindHints(advice.classes, how, simulate);
}

// Fails if the rules do not reproduce the hints that were simulated.
Status MakeRules(const Work& work, Advice& advice, predict::Workflow& advised) {
  advice.rules = RulesFor(work.workflow, advice.classes, advice.hints.choice);
  advised = WithHints(work.workflow, advice.classes, advice.hints.choice);
  std::vector<predict::HintRuleText> all;
  for (const auto& rules : advice.rules) all.insert(all.end(), rules.begin(), rules.end());
  predict::Workflow ruled = work.workflow;
  MOSA_RETURN_IF_ERROR(predict::ApplyRules(all, ruled).status());
  for (size_t i = 0; i < ruled.files.size(); ++i)
    if (ruled.files[i].producer && ruled.files[i].hints != advised.files[i].hints)
      return FailedPreconditionError(fmt::format(
          "no glob matches '{}' without other outputs: rename them", ruled.files[i].path));
  return OkStatus();
}

Result<predict::Space> SpaceOf(const AdviseRequest& options, const predict::Configuration& as_is) {
  std::vector<predict::Dimension> dimensions;
  for (const std::string& text : options.vary) {
    MOSA_ASSIGN_OR_RETURN(predict::Dimension dimension, predict::ParseDimension(text));
    if (dimension.name == "frequency" || dimension.name == "system")
      return InvalidArgumentError(fmt::format(
          "--vary {}: advice assumes the present system and processors: leave it out", text));
    dimensions.push_back(std::move(dimension));
  }
  if (dimensions.empty()) dimensions = predict::DefaultSpace(as_is);
  return predict::Enumerate(dimensions, as_is);
}

Status AdviseDeployment(const AdviseRequest& options, const Work& work,
                        const predict::Workflow& advised, const predict::AdviseOptions& how,
                        TrialSimulator& simulator, Advice& advice) {
  MOSA_ASSIGN_OR_RETURN(const predict::Space space, SpaceOf(options, advice.configuration));
  advice.points = space.points.size();
  predict::ExploreOptions explore;
  explore.draws = predict::HasSpread(work.platform) ? how.draws : 0;
  MOSA_ASSIGN_OR_RETURN(auto explorer, predict::Explorer::Make(advised, work.platform, nullptr,
                                                               space.points, explore));
  ExploreResults results;
  ExploreSimulator exploring(advised, work.platform, explorer, results, options.jobs);
  MOSA_RETURN_IF_ERROR(exploring.Run(space.points));
  advice.simulations += explorer.jobs_asked() - exploring.remembered();
  std::vector<Deployment> deployments(1);
  deployments[0].configuration = advice.configuration;
  for (const size_t point : predict::Finalists(space.points, explorer.explored()))
    if (space.points[point].configuration != advice.configuration)
      deployments.push_back({space.points[point].configuration, {}, {}, 0, {}});
  const size_t draws = how.draws + 1;
  const auto shared = std::make_shared<const predict::Workflow>(advised);
  MOSA_ASSIGN_OR_RETURN(
      auto outcomes, simulator.Run(deployments.size() * draws, [&](size_t i) -> Simulation {
        return {shared, deployments[i / draws].configuration, static_cast<uint32_t>(i % draws)};
      }));
  for (size_t i = 0; i < outcomes.size(); ++i)
    deployments[i / draws].draws.push_back(std::move(outcomes[i]));
  Deployment as_is = std::move(deployments.front());
  deployments.erase(deployments.begin());
  advice.deployments = predict::JudgeDeployments(std::move(as_is), std::move(deployments), how);
  return OkStatus();
}

Status WriteAdvice(const AdviseRequest& options, const Advice& advice) {
  std::vector<predict::HintRuleText> all;
  for (const auto& rules : advice.rules) all.insert(all.end(), rules.begin(), rules.end());
  const std::string comment =
      fmt::format("mosa advise: hints for '{}' on {}\nmedian {:.3f} s, {:.3f} s without advice",
                  advice.workflow, ToText(advice.configuration), advice.hints.advised.median_s,
                  advice.hints.by_itself.median_s);
  MOSA_RETURN_IF_ERROR(WriteWhole(options.output, predict::WriteRules(all, comment)));
  fmt::print(stderr, "{} rules written to {}: use them with 'mosa run --rules'\n", all.size(),
             options.output);
  return OkStatus();
}

}  // namespace

Status Advise(const AdviseRequest& options, bool as_json) {
  MOSA_RETURN_IF_ERROR(CheckRepeats(options.repeats));
  MOSA_ASSIGN_OR_RETURN(const Work work, ReadWork(options.work));
  Advice advice;
  advice.workflow = work.workflow.name;
  MOSA_ASSIGN_OR_RETURN(advice.configuration, predict::ParseConfiguration(options.configuration));
  if (advice.configuration.system == predict::System::kDss)
    return InvalidArgumentError(fmt::format(
        "--config {}: system=dss takes no hints, so there is nothing to advise: leave it out",
        options.configuration));
  // Reports faults of the space before anything is simulated.
  MOSA_ASSIGN_OR_RETURN(const predict::Space space, SpaceOf(options, advice.configuration));
  if (const auto& placements = space.points.front().configuration.class_placements;
      !placements.empty())
    return InvalidArgumentError(
        fmt::format("placement{}: mosa advise chooses the placement of files itself: leave it out",
                    placements.begin()->first));
  advice.draws = options.repeats;
  const predict::AdviseOptions how{options.repeats, options.least_percent / 100};
  advice.share_min = how.share_min;
  advice.classes = predict::CandidatesOf(
      work.workflow, {advice.configuration.hosts, NodesOf(advice.configuration)});
  if (const auto later = predict::LaterVersionsIn(work.workflow); !later.empty())
    fmt::print(stderr,
               "mosa advise: '{}' and {} more look like later versions of other files in a traced "
               "run and get no hints\n",
               work.workflow.at(later.front()).path, later.size() - 1);
  TrialSimulator simulator(work.platform, options.jobs);
  MOSA_ASSIGN_OR_RETURN(advice.hints, AdviseHints(work, advice, how, simulator));
  predict::Workflow advised;
  MOSA_RETURN_IF_ERROR(MakeRules(work, advice, advised));
  MOSA_RETURN_IF_ERROR(AdviseDeployment(options, work, advised, how, simulator, advice));
  advice.simulations += simulator.done();
  advice.seconds = simulator.seconds();
  if (as_json)
    PrintJson(ToJson(advice));
  else
    PrintAdvice(advice);
  if (const predict::RunTime& run = advice.hints.advised; run.draws_failed > 0)
    fmt::print(
        stderr,
        "mosa advise: with these hints the run would fail in {} of {} draws, for example: {}\n",
        run.draws_failed, std::max(advice.draws, 1U), run.failure);
  if (!options.output.empty()) MOSA_RETURN_IF_ERROR(WriteAdvice(options, advice));
  return work.incomplete;
}

}  // namespace mosa::cli
