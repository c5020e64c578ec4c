// What `mosa envelope run` has measured: samples by store and cell, stored as JSON with stable
// names (predictor/envelope/envelope_json.h), and their evaluation. Continues a file of the same
// configuration.
#ifndef MOSA_TOOLS_MEASURE_ENVELOPE_RESULTS_H_
#define MOSA_TOOLS_MEASURE_ENVELOPE_RESULTS_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "predictor/envelope/envelope.h"
#include "predictor/envelope/figures.h"

namespace mosa::cli {

// Null if there is no number.
nlohmann::json OrNull(const std::optional<double>& number);

struct KeptSample {
  double seconds = 0;                // Time of the cell's operations.
  std::optional<double> busy_share;  // These as in EnvelopeSample.
  std::optional<double> link_share;
};

// A point where a store gets less done with more clients, and what was used up there, if known:
// "processors" or "links", both of the clients' hosts, since those of servers are unknown.
struct ExplainedFall {
  std::string system;
  predict::Fall fall;
  std::optional<double> busy_share;  // Medians.
  std::optional<double> link_share;
  std::string used_up;  // Empty: neither, or unknown.
};

class EnvelopeResults {
 public:
  // `configuration` is everything that must be equal for samples to be comparable, including the
  // `grid`; `conditions` tells readers how they are taken.
  EnvelopeResults(std::string path, predict::EnvelopeGrid grid, nlohmann::json configuration,
                  std::string conditions);

  // Loads the file, if there is one. FailedPrecondition if it has another configuration, and says
  // what differs; InvalidArgument if it is not such a file.
  Status Load();
  // `outcome`: "running", "done", "out of time", "interrupted" or "failed".
  Status Save(const std::string& outcome);

  bool empty() const { return cells_.empty(); }
  size_t Count(const std::string& system, const predict::EnvelopeCell& cell) const;
  void Add(const std::string& system, const predict::EnvelopeCell& cell, const KeptSample& sample);

  // In the order of `systems`; without cells that have no samples.
  std::vector<predict::Envelope> Envelopes(const std::vector<std::string>& systems) const;
  std::vector<ExplainedFall> Falls(const std::vector<std::string>& systems) const;
  // With the last outcome.
  nlohmann::json ToJson() const;

  // Adds a note about the figures; each note once.
  void AddNote(const std::string& note) { notes_.insert(note); }
  const std::set<std::string>& notes() const { return notes_; }

 private:
  predict::Estimate RateOf(const predict::EnvelopeCell& cell,
                           const std::vector<KeptSample>& samples) const;

  const std::string path_;
  const predict::EnvelopeGrid grid_;
  const nlohmann::json configuration_;
  const std::string conditions_;
  std::string outcome_ = "running";
  std::set<std::string> notes_;
  std::map<std::pair<std::string, predict::EnvelopeCell>, std::vector<KeptSample>> cells_;
};

// Prints a line for each fall of `envelopes`, or a line that says that there is none.
void PrintFalls(const std::vector<ExplainedFall>& falls,
                const std::vector<predict::Envelope>& envelopes);

// Rows of operations and sizes, columns of clients.
void PrintEnvelopes(const std::vector<predict::Envelope>& envelopes);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_RESULTS_H_
