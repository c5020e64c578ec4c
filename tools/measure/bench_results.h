// What `mosa bench patterns` has measured: runs by cell, stored as JSON with stable names, and
// their evaluation. Continues a file of the same configuration.
#ifndef MOSA_TOOLS_MEASURE_BENCH_RESULTS_H_
#define MOSA_TOOLS_MEASURE_BENCH_RESULTS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/measure/bench_statistics.h"
#include "tools/measure/bench_systems.h"

namespace mosa::cli {

// Half of the 95 % interval may be at most this share of the mean.
inline constexpr double kIntervalShare = 0.05;

class BenchResults {
 public:
  // `configuration` is everything that must be equal for runs to be comparable.
  BenchResults(std::string path, nlohmann::json configuration);

  // Loads the file, if there is one. FailedPrecondition if it has another configuration,
  // InvalidArgument if it is not such a file.
  Status Load();
  Status Save(const std::string& outcome);

  size_t RunCount(const Cell& cell) const;
  void AddRun(const Cell& cell, nlohmann::json run);
  // The seconds of the phase ("stages", "stage-in", "stage-out") in each run that has it.
  std::vector<double> SecondsOf(const Cell& cell, const std::string& phase) const;
  // Ratios of run i of one cell to run i of the other, for the runs that both have.
  std::vector<double> RatiosOf(const Cell& cell, const Cell& by) const;
  // The last run; null if there is none.
  const nlohmann::json* LastRun(const Cell& cell) const;

  // Everything, with an evaluation of each cell's runs.
  nlohmann::json ToJson(const std::string& outcome) const;

 private:
  const nlohmann::json* Find(const Cell& cell) const;
  nlohmann::json WithSummary(const nlohmann::json& entry) const;

  const std::string path_;
  const nlohmann::json configuration_;
  std::vector<nlohmann::json> cells_;  // Each with its runs.
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_RESULTS_H_
