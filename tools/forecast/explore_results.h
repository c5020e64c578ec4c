// Keeps the outcomes of simulations in a file, so that an interrupted exploration can continue and
// another exploration of the same workflow can reuse them.
//
// The file has one line of JSON per simulation, appended when it is done. Its key is a digest of
// all inputs of the outcome; the line ends in a digest of itself. A truncated last line is dropped.
// Outcomes of another build of this program are never used, because they may differ.
#ifndef MOSA_TOOLS_FORECAST_EXPLORE_RESULTS_H_
#define MOSA_TOOLS_FORECAST_EXPLORE_RESULTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "predictor/explore/explorer.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

// Covers everything in a workflow that a prediction depends on.
uint64_t DigestOf(const predict::Workflow& workflow);

// Not thread-safe.
class ExploreResults {
 public:
  // Keeps outcomes in memory only.
  ExploreResults() = default;
  // Reads the file, or creates it. FailedPrecondition, with one sentence, if another exploration
  // has it open, it is not a regular file or not a results file, a line was changed, or it cannot
  // be written.
  static Result<ExploreResults> Open(const std::string& path);

  std::optional<predict::Outcome> Find(uint64_t key) const;
  // Removes what a failed write left of a line, so the file stays valid.
  Status Add(uint64_t key, const std::string& configuration, const predict::Outcome& outcome);
  // A digest of this program, part of every key.
  uint64_t program() const { return program_; }

 private:
  Status ReadAll();
  Status Read(const std::string& text);
  Status Append(const std::string& line);

  std::string path_;
  UniqueFd file_;
  uint64_t program_ = 0;
  uint64_t size_bytes_ = 0;
  std::map<uint64_t, predict::Outcome> outcomes_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_EXPLORE_RESULTS_H_
