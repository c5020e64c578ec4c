// The sentences of an anomaly: what, where, since when, how large, and what to look at.
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

// What is known about an anomaly besides its own fields.
struct AnomalyFacts {
  const ComparedCell* cell = nullptr;
  // Most of its time is lost between tasks, not in them.
  bool waits = false;
  // The suspect is found by comparing hosts, not by comparing with predictions.
  bool beside_others = false;
  // Bytes that lie elsewhere than predicted, and would slow the cell; null: none.
  const ComparedBytes* misplaced = nullptr;
  // A node that holds more of the tasks' output than predicted; null: none.
  const ComparedBytes* fuller = nullptr;
  uint64_t link_bytes_per_second = 0;
  // Processor time of its tasks in the runs that show it, and other work on their machines, if
  // known.
  std::optional<OwnSeconds> own;
  std::optional<OthersFacts> others;
  // The probability that chance makes a host this much slower than others in the same runs.
  std::optional<double> beside_p;
};

// Whether the best suspect has evidence of its own, or explains half of the deviation, alone or in
// the mean with requests: less is not an explanation.
bool Explains(const std::vector<Blame>& blamed);
// True if a part of this host explains the deviation, and, unless there is evidence of its own,
// nothing that all hosts share explains nearly as much.
bool BlamesHost(const std::vector<Blame>& blamed, const std::string& host);

// "the link of h2".
std::string Describe(const Suspect& suspect);

// What to look at first if the suspect is to blame.
std::string OpenFirst(const Suspect& suspect);

// Names the chunk size that holds more than predicted, and what to do. Precondition: there is one.
std::string SayOtherChunks(const std::vector<ChunkShare>& chunks);

// Describes a run that deviates alone: its time, the prediction, and the other judged runs.
std::string SayOdd(const std::string& run, const CellName& cell, double measured_s,
                   double predicted_s, const std::vector<double>& others_s);

// Sets the anomaly's sentence, cause and what to open first.
void Explain(const AnomalyFacts& facts, Anomaly& anomaly);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_SENTENCE_H_
