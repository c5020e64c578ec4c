// What a developer is told of an anomaly: what, where, since when, how large, and what to look at.
#ifndef MOSA_PREDICTOR_COMPARE_SENTENCE_H_
#define MOSA_PREDICTOR_COMPARE_SENTENCE_H_

#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/busy.h"
#include "predictor/compare/comparison.h"

namespace mosa::predict {

struct OthersFacts {
  double share = 0;  // Share of the processors.
  bool busy = false;
};

// What is known of an anomaly besides its own fields.
struct AnomalyFacts {
  const ComparedCell* cell = nullptr;
  // Most of it lies between tasks, not in them.
  bool waits = false;
  // Blamed is what others do not have, not what is off from predictions.
  bool beside_others = false;
  // Bytes that lie elsewhere than predicted, and would make it slower; null: none.
  const ComparedBytes* misplaced = nullptr;
  // A node that has more than predicted of what tasks wrote; null: none.
  const ComparedBytes* fuller = nullptr;
  uint64_t link_bytes_per_second = 0;
  // The seconds of its tasks in the runs that show it, and who else was there, if known.
  std::optional<OwnSeconds> own;
  std::optional<OthersFacts> others;
  // How likely a host that is slow beside others in the same runs is that by chance.
  std::optional<double> beside_p;
};

// Whether the best's own time says so, or it explains half of it, or with what requests say half in
// the mean: less is no explanation.
bool Explains(const std::vector<Blame>& blamed);

// "the link of h2".
std::string Describe(const Suspect& suspect);

// What to look at if the suspect is to blame.
std::string OpenFirst(const Suspect& suspect);

// Says which chunk sizes hold more than predicted, and what to do. Precondition: some do.
std::string SayOtherChunks(const std::vector<ChunkShare>& chunks);

// A run that is off alone: what it took, predicted, and the other judged runs.
std::string SayOdd(const std::string& run, const CellName& cell, double measured_s,
                   double predicted_s, const std::vector<double>& others_s);

// Sets the anomaly's sentence, cause and what to open first.
void Explain(const AnomalyFacts& facts, Anomaly& anomaly);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_SENTENCE_H_
