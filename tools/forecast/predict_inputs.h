// Reads the inputs of predictions from files.
#ifndef MOSA_TOOLS_FORECAST_PREDICT_INPUTS_H_
#define MOSA_TOOLS_FORECAST_PREDICT_INPUTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/model/energy.h"
#include "predictor/model/platform.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/synthetic.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

Result<predict::Platform> ReadPlatformFile(const std::string& path);
// The error lists every fault of the workflow, one per line.
Result<predict::Workflow> ReadWorkload(const std::string& path);
// The same for a side file of operations, which are added to the tasks.
Status ReadOperations(const std::string& path, predict::Workflow& workflow);
// The same for a file of rules (predictor/advise/rules.h), which become hints of the outputs.
Status ReadRules(const std::string& path, predict::Workflow& workflow);
// Says so on standard error if tasks have no runtime. `command`: "predict".
void NoteTasksWithoutRuntime(std::string_view command, const predict::Workflow& workflow);
// "h1", ...: how predictions and `mosa cluster up` name hosts.
std::vector<std::string> HostNames(uint32_t hosts);
// Makes the workflow follow the plan in a file (predictor/plan/plan.h) on these hosts.
Status FollowPlan(const std::string& path, const std::vector<std::string>& hosts,
                  predict::Workflow& workflow);
Result<predict::PowerProfile> ReadPowerFile(const std::string& path);

struct Inputs {
  predict::Workflow workflow;
  // "synthetic:pipeline,medium,scale=0.1", as `mosa bench patterns` runs them. `workflow` is then
  // made from its stages by ForHosts().
  std::optional<predict::SyntheticOptions> synthetic;
  std::vector<predict::SyntheticPart> parts;
  predict::Platform platform;  // At the speed of the power level.
  std::optional<predict::PowerLevel> power;
};

// Makes the synthetic workflow, with one lane per host unless its options set the number of lanes.
void ForHosts(uint32_t hosts, Inputs& inputs);
// Predicts the inputs on any platform.
Result<predict::Prediction> PredictInputs(const Inputs& inputs, const predict::Platform& platform,
                                          const predict::Configuration& configuration,
                                          const predict::PredictOptions& options = {});

// `power` may be empty; `frequency_mhz` is one of its levels, or 0 with the meaning of
// predict::LevelAt().
Result<Inputs> ReadInputs(const std::string& platform, const std::string& workload,
                          const std::string& power, uint32_t frequency_mhz);

// The same without power, and only for files: a synthetic workflow is an error.
Result<Inputs> ReadFiles(const std::string& platform, const std::string& workload);

// InvalidArgument unless it is 0 or enough for an interval.
Status CheckRepeats(uint32_t repeats);

// Returns the energy of a whole run.
double JoulesOf(const predict::Prediction& prediction, const predict::PowerLevel& level);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PREDICT_INPUTS_H_
