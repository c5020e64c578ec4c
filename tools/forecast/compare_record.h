// Records of `mosa run` in the form that is compared with a prediction.
#ifndef MOSA_TOOLS_FORECAST_COMPARE_RECORD_H_
#define MOSA_TOOLS_FORECAST_COMPARE_RECORD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/compare/seen_run.h"
#include "predictor/workflow/workflow.h"
#include "tools/runner/run_file.h"

namespace mosa::cli {

// The part of a run that can be compared, and why the rest cannot.
struct MeasuredRun {
  predict::SeenRun seen;
  std::vector<std::string> notes;  // Sentences.
};
// Finds tasks by their names; they must have the same command and files. InvalidArgument if the
// record has faults or is of a run of another workflow.
Result<MeasuredRun> ReadMeasured(const RunFile& file, const predict::Workflow& workflow);

// Gives files of the workflow without a size the size that they had in the run; returns how many.
size_t FillSizes(const RunFile& file, predict::Workflow& workflow);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_RECORD_H_
