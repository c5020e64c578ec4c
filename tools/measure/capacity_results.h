// What `mosa capacity run` has measured: samples by load, stored as JSON with stable names
// (predictor/capacity/capacity_json.h), and their evaluation. Continues a file of the same
// configuration.
#ifndef MOSA_TOOLS_MEASURE_CAPACITY_RESULTS_H_
#define MOSA_TOOLS_MEASURE_CAPACITY_RESULTS_H_

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "common/base/status.h"
#include "predictor/capacity/capacity.h"

namespace mosa::cli {

class CapacityResults {
 public:
  // `configuration` is everything that must be equal for samples to be comparable; `conditions`
  // tells readers how they are taken.
  CapacityResults(std::string path, std::string store, nlohmann::json configuration,
                  std::string conditions);

  // Loads the file, if there is one. FailedPrecondition if it has another configuration, and says
  // what differs; InvalidArgument if it is not such a file.
  Status Load();
  // `outcome`: "running", "done", "out of time", "interrupted" or "failed".
  Status Save(const std::string& outcome);

  size_t Count(const predict::CapacityLoad& load) const;
  void Add(const predict::CapacityLoad& load, const predict::OperationRates& rates);
  void AddNote(const std::string& note) { notes_.insert(note); }

  const predict::Capacity& capacity() const { return capacity_; }
  const std::set<std::string>& notes() const { return notes_; }

 private:
  const std::string path_;
  const nlohmann::json configuration_;
  const std::string conditions_;
  predict::Capacity capacity_;
  std::set<std::string> notes_;
};

// The error names the file.
Result<predict::Capacity> ReadCapacityFile(const std::string& path);

// Prints seeds, checks with errors, and a sentence for each size.
void PrintCapacity(const predict::Capacity& capacity);
nlohmann::json ToJson(const predict::Capacity& capacity);
// "812 (790-833)", in operations per second.
std::string RateText(const predict::Estimate& rate);
// "64K".
std::string SizeText(uint64_t size_bytes);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_CAPACITY_RESULTS_H_
