// What predictions are made of, read from files.
#ifndef MOSA_TOOLS_FORECAST_PREDICT_INPUTS_H_
#define MOSA_TOOLS_FORECAST_PREDICT_INPUTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/model/energy.h"
#include "predictor/model/platform.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/synthetic.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

Result<predict::Platform> ReadPlatformFile(const std::string& path);
// Every fault of the workflow, a line each.
Result<predict::Workflow> ReadWorkload(const std::string& path);
// The same for the side file of its operations, which become its tasks'.
Status ReadOperations(const std::string& path, predict::Workflow& workflow);
// The same for a file of rules (predictor/advise/rules.h), which become its outputs' hints.
Status ReadRules(const std::string& path, predict::Workflow& workflow);
Result<predict::PowerProfile> ReadPowerFile(const std::string& path);

struct Inputs {
  predict::Workflow workflow;
  // "synthetic:pipeline,medium,scale=0.1": as `mosa bench patterns` runs them. Then the workflow is
  // that of its stages, once ForHosts() was called.
  std::optional<predict::SyntheticOptions> synthetic;
  std::vector<predict::SyntheticPart> parts;
  predict::Platform platform;  // At the level's speed.
  std::optional<predict::PowerLevel> power;
};

// Makes the synthetic workflow, of as many lanes as hosts unless it says otherwise.
void ForHosts(uint32_t hosts, Inputs& inputs);
// What is to be predicted, on any platform.
Result<predict::Prediction> PredictInputs(const Inputs& inputs, const predict::Platform& platform,
                                          const predict::Configuration& configuration,
                                          const predict::PredictOptions& options = {});

// `power` may be empty; `frequency_mhz` is one of its levels, 0 as in predict::LevelAt().
Result<Inputs> ReadInputs(const std::string& platform, const std::string& workload,
                          const std::string& power, uint32_t frequency_mhz);

// The same without power, and for files alone: no synthetic workflow.
Result<Inputs> ReadFiles(const std::string& platform, const std::string& workload);

// 0, or enough for an interval.
Status CheckRepeats(uint32_t repeats);

// The energy of a whole run.
double JoulesOf(const predict::Prediction& prediction, const predict::PowerLevel& level);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PREDICT_INPUTS_H_
