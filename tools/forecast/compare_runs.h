// Finished runs beside what is predicted of them: what `mosa compare` prints and `mosa report`
// draws.
#ifndef MOSA_TOOLS_FORECAST_COMPARE_RUNS_H_
#define MOSA_TOOLS_FORECAST_COMPARE_RUNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/compare/comparison.h"
#include "predictor/model/configuration.h"
#include "tools/forecast/compare_draws.h"
#include "tools/forecast/compare_output.h"
#include "tools/forecast/compare_record.h"
#include "tools/forecast/predict_inputs.h"

namespace mosa::cli {

// What is to be predicted, in the words of the command line.
struct PredictionWords {
  std::string platform;
  std::string workload;  // Empty: the workflow of the run.
  std::string operations;
  std::string rules;
  std::string plan;
  std::string configuration;
  uint32_t draws = 0;  // 0: as DrawsOf() says.
};
// The deployment of these hosts with what `text` says (predict::ParseConfiguration()): their
// number, slots and memory. What `text` says of the slots or memory of all hosts replaces those of
// each.
Result<predict::Configuration> DeploymentOf(const std::vector<RunHost>& hosts,
                                            predict::System system, const std::string& text);
// As many as are asked for; else 40, of more than 6,000 tasks fewer: such that 240,000 are
// simulated, but 24 at least.
uint32_t DrawsOf(const PredictionWords& words, const predict::Workflow& workflow);
Status CheckDraws(const PredictionWords& words);
// That, and what is wrong with the words and files themselves, whatever run they are for.
Status CheckWords(const PredictionWords& words);

// The same, read.
struct Asked {
  Inputs inputs;
  predict::Configuration configuration;
};
Result<Asked> ReadAsked(const PredictionWords& words, const std::string& workload,
                        const predict::Configuration& base);
uint32_t SlotsOf(const Asked& asked);  // On each host.

std::vector<std::string> NamesOf(const std::vector<RunHost>& hosts);

// Records in their order in time, each once; for the others `notes` says why not. Their hosts are
// those of the first that can be read. The error is the first one's, if none can.
Result<std::vector<RunFile>> ReadRunFiles(const std::vector<std::string>& paths, CutFiles cut,
                                          std::vector<std::string>& notes);

// InvalidArgument if the prediction is not of the hosts on which the run was; what else is unlike
// goes to `notes`.
Status CheckDeployment(const RunFile& file, const Asked& asked, std::vector<std::string>& notes);

struct Compared {
  CompareReport report;
  predict::Comparison comparison;
};
// Takes the notes that there are. Fails if nothing of any run can be compared.
Result<Compared> CompareRuns(const PredictionWords& words, const Asked& asked,
                             const DrawnRuns& drawn, const std::vector<RunFile>& files,
                             std::vector<std::string> notes);

struct FinishedRuns {
  Asked asked;
  DrawnRuns drawn;
  Compared compared;
};
// Predicts as the last of the runs was made, with its rules unless `words` has others.
// Precondition: there is one; all of the same hosts.
Result<FinishedRuns> CompareFinished(const PredictionWords& words,
                                     const std::vector<RunFile>& files,
                                     std::vector<std::string> notes);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_RUNS_H_
