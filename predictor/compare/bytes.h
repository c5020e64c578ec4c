// Compares the bytes of a run with the prediction: what crosses links because of where files lie,
// what each node holds, and in chunks of which size. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_BYTES_H_
#define MOSA_PREDICTOR_COMPARE_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

// Bytes that tasks find or put on nodes other than their host's, because of where files lie.
struct ComparedBytes {
  std::string name;        // A stage, or the host whose link carries the bytes.
  double predicted = 0;    // Median of the draws,
  Interval<double> drawn;  // and their least and most.
  double measured = 0;     // Median.
  // Whether it would be outside the range by a tenth, and by 1 MiB, if the run had moved the
  // predicted total.
  bool off = false;
};

// The share of all file bytes that is in chunks of this size: 0 to 1.
struct ChunkShare {
  uint64_t chunk_bytes = 0;
  double predicted = 0, measured = 0;
};

// Compares whole runs only, because others moved less. Skips what no whole run has.
struct ComparedPlaces {
  std::vector<ComparedBytes> stages, links;
  std::vector<ComparedBytes> nodes;  // The bytes that tasks wrote, by node.
};
ComparedPlaces CompareBytes(const Workflow& workflow, const std::vector<SeenRun>& draws,
                            const std::vector<const SeenRun*>& runs);

// From the last whole run that has chunk sizes; else empty.
std::vector<ChunkShare> CompareChunks(const SeenRun& draw, const std::vector<const SeenRun*>& runs);

// Whether more than a tenth of all bytes is in chunks of an unpredicted size.
bool AreInOtherChunks(const std::vector<ChunkShare>& chunks);

// Names the chunk size that holds more than predicted, and what to do. Precondition: there is one.
std::string SayOtherChunks(const std::vector<ChunkShare>& chunks);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BYTES_H_
