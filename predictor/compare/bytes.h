// Bytes of a run beside what is predicted of it: what crosses links, by where files lie, what lies
// on each node, and in chunks of which size. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_BYTES_H_
#define MOSA_PREDICTOR_COMPARE_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

// Bytes that tasks find or put on other nodes than their host's, by where files lie.
struct ComparedBytes {
  std::string name;        // A stage, or a host: what its link carries of that.
  double predicted = 0;    // Median,
  Interval<double> drawn;  // least and most of the draws.
  double measured = 0;     // Median.
  // Were as much moved in all as predicted:
  double more = 0;   // beyond the median,
  bool off = false;  // and outside the range by a tenth, and by a MiB.
};

// The share of all file bytes that is in chunks of that size: 0 to 1.
struct ChunkShare {
  uint64_t chunk_bytes = 0;
  double predicted = 0, measured = 0;
};

// Compares whole runs only: others moved less. What no such run has is not compared.
struct ComparedPlaces {
  std::vector<ComparedBytes> stages, links;
  std::vector<ComparedBytes> nodes;  // What each node holds of the bytes that tasks wrote.
};
ComparedPlaces CompareBytes(const Workflow& workflow, const std::vector<SeenRun>& draws,
                            const std::vector<const SeenRun*>& runs);

// As the last whole run that says it has them; else empty.
std::vector<ChunkShare> CompareChunks(const SeenRun& draw, const std::vector<const SeenRun*>& runs);

// Whether more than a tenth of all bytes is in chunks of another size than predicted.
bool AreInOtherChunks(const std::vector<ChunkShare>& chunks);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BYTES_H_
