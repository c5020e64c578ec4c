// Records of `mosa run`, as what is laid beside a prediction.
#ifndef MOSA_TOOLS_FORECAST_COMPARE_RECORD_H_
#define MOSA_TOOLS_FORECAST_COMPARE_RECORD_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/configuration.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

struct RecordedHost {
  std::string name;
  uint32_t slots = 1;
  uint64_t link_bytes_per_second = 0;  // 0: not known.
  bool operator==(const RecordedHost&) const = default;
};

// What can be said of a record without the workflow.
struct RunFile {
  std::string path;
  std::string workflow_path;
  predict::System system = predict::System::kWass;
  std::vector<RecordedHost> hosts;
  double start_s = 0;   // Since the epoch.
  bool is_cut = false;  // Its text ends in the middle of the tasks: there are those before that.
  nlohmann::json root;
};

// What becomes of a record whose text ends too early.
enum class CutFiles : uint8_t { kRefuse, kReadAsFarAsTheyGo };

// InvalidArgument if it is no whole record: what is wrong with it.
Result<RunFile> ReadRunFile(const std::string& path, CutFiles cut);

// The part of a run that can be compared, and why the rest cannot.
struct MeasuredRun {
  predict::SeenRun seen;
  std::vector<std::string> notes;  // Sentences.
};
// Tasks are found by their names, and must have the same command and files. InvalidArgument if it
// is a run of another workflow.
Result<MeasuredRun> ReadMeasured(const RunFile& file, const predict::Workflow& workflow);

// Gives files of the workflow that have no size the one that they had in the run; how many.
size_t FillSizes(const RunFile& file, predict::Workflow& workflow);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_RECORD_H_
