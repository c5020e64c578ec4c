// What has been simulated of an exploration, kept in a file, so that one that was interrupted goes
// on, and another one of the same workflow uses what is known.
//
// A line of JSON per simulation, appended when it is done; its key is a digest of all that the
// outcome depends on, and it ends in a digest of itself. A last line that was cut short is dropped.
// Outcomes of another build of this program are never used: what it simulates may have changed.
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

// All of a workflow that a prediction depends on.
uint64_t DigestOf(const predict::Workflow& workflow);

// One thread at a time.
class ExploreResults {
 public:
  // Nothing outlives this.
  ExploreResults() = default;
  // Reads the file, or makes it. FailedPrecondition: another exploration has it open, it is of
  // something else or no regular file, a line was changed, or it cannot be written; one sentence.
  static Result<ExploreResults> Open(const std::string& path);

  std::optional<predict::Outcome> Find(uint64_t key) const;
  // The file is left whole: what a failed write left of a line is cut off.
  Status Add(uint64_t key, const std::string& configuration, const predict::Outcome& outcome);
  // A digest of this program; enters every key.
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
