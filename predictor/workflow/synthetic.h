// The synthetic workflows of the Opportunity Study (section III.C, Figure 1 and Table 2), with what
// each task reads and writes, byte by byte. Pure: `mosa bench patterns` runs them, the predictor
// simulates them.
//
//   pipeline   N times: in/k -> stage 1 -> mid-1/k -> stage 2 -> mid-2/k -> stage 3 -> out/k
//   reduce     N writers of parts/k, one task that reads them all and writes out/all
//   broadcast  one writer of data/shared, N readers of all of it, each of which writes out/k
//   scatter    one writer of data/scattered, N readers of one region each
//   gather     N writers of one region of data/gathered each, one reader of all of it
//
// The papers measure staging separately, so each phase is a workflow of its own. A pipeline's in/k
// are written beforehand, from the backend if there is one; results go to the backend afterwards.
#ifndef MOSA_PREDICTOR_WORKFLOW_SYNTHETIC_H_
#define MOSA_PREDICTOR_WORKFLOW_SYNTHETIC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

enum class Pattern : uint8_t { kPipeline, kReduce, kBroadcast, kScatter, kGather };
enum class WorkloadSize : uint8_t { kSmall, kMedium, kLarge };

const char* ToText(Pattern pattern);
const char* ToText(WorkloadSize size);
std::optional<Pattern> ParsePattern(std::string_view text);
std::optional<WorkloadSize> ParseWorkloadSize(std::string_view text);

inline constexpr uint32_t kSyntheticWidthMax = 1000;
inline constexpr uint64_t kScaleOne = 1'000'000;
inline constexpr double kMakeNsPerByteMax = 1000;

struct SyntheticOptions {
  Pattern pattern = Pattern::kPipeline;
  WorkloadSize size = WorkloadSize::kSmall;
  // Scales Table 2's sizes, in millionths. A file keeps at least one byte, a region at least 4 KiB.
  uint64_t scale_millionths = kScaleOne;
  uint32_t width = 1;   // N; at least one.
  uint32_t copies = 0;  // Copies of broadcast files; 0: as many as the graph suggests.
  bool stage_in = false;
  bool stage_out = false;
  Duration compute;  // Per task, even if it only starts.
  // Additional computing per byte that the task writes. At most kMakeNsPerByteMax.
  double make_ns_per_byte = 0;
};

// Bytes of one file that a task reads or writes.
struct Transfer {
  std::string path;
  std::string content;  // Names the bytes: files with the same content are equal.
  uint64_t begin = 0;
  uint64_t bytes = 0;
  bool in_backend = false;  // The path is below the backend's directory, not the run's.
  bool is_region = false;   // Written into an existing file, among others' regions.
};

struct SyntheticTask {
  std::vector<Transfer> reads;
  std::vector<Transfer> writes;  // Written after all reads.
  uint32_t lane = 0;             // k.
};

enum class Phase : uint8_t { kStageIn, kStages, kStageOut };
const char* ToText(Phase phase);

// Parses "pipeline,medium,scale=0.1,width=4,copies=2,compute=0.01,make=0.3": pattern and size, then
// what differs from the defaults. `compute` is seconds per task, `make` seconds per GB that it
// writes. Without a width it is 0, and the caller must set it.
Result<SyntheticOptions> ParseSynthetic(std::string_view text);

// One phase; it runs when the previous one has ended.
struct SyntheticPart {
  Phase phase = Phase::kStages;
  // Files get hints of their own where this part's graph does not determine their pattern: inputs
  // of the next part, results (the Opportunity Study keeps them where they are written), and files
  // with regions. A file that is written by regions has no producer, since a graph cannot express
  // that; it must exist, empty.
  Workflow workflow;
  std::vector<SyntheticTask> tasks;  // In the order of the workflow's tasks.
  Duration compute;                  // For each task, between reading and writing.
  double make_ns_per_byte = 0;       // Additional, per byte that it writes.
};

Duration ComputingOf(const SyntheticPart& part, TaskIndex task);

// Whether the part has regions, which a graph cannot express. Then lane k's tasks run on host k,
// except that a task whose region has a known place runs there.
bool HasRegions(const SyntheticPart& part);

// Returns the phases in order, without those that have no task. Precondition: 1 <= width <=
// kSyntheticWidthMax.
std::vector<SyntheticPart> MakeSynthetic(const SyntheticOptions& options);

// Bytes that the tasks write to the store, with each broadcast copy counted.
uint64_t StoredBytes(const std::vector<SyntheticPart>& parts, uint32_t copies);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_SYNTHETIC_H_
