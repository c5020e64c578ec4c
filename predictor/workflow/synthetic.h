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
// What the papers measure apart is a workflow apart: a pipeline's in/k are written beforehand, out
// of the backend if there is one, and results go to the backend afterwards.
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
  // Scales Table 2's sizes, in millionths. No file gets smaller than a byte, no region than 4 KiB.
  uint64_t scale_millionths = kScaleOne;
  uint32_t width = 1;   // N. At least one.
  uint32_t copies = 0;  // For broadcast files; 0: as many as the graph suggests.
  bool stage_in = false;
  bool stage_out = false;
  Duration compute;  // Per task: a program that only starts needs some.
  // And what it needs to make each byte that it writes. At most kMakeNsPerByteMax.
  double make_ns_per_byte = 0;
};

// Bytes of one file that a task reads or writes.
struct Transfer {
  std::string path;
  std::string content;  // What the bytes are: files of one content are equal.
  uint64_t begin = 0;
  uint64_t bytes = 0;
  bool in_backend = false;  // The path is below the backend's directory, not the run's.
  bool is_region = false;   // Written into a file that is there, among others' regions.
};

struct SyntheticTask {
  std::vector<Transfer> reads;
  std::vector<Transfer> writes;  // After all was read.
  uint32_t lane = 0;             // k.
};

enum class Phase : uint8_t { kStageIn, kStages, kStageOut };
const char* ToText(Phase phase);

// "pipeline,medium,scale=0.1,width=4,copies=2,compute=0.01,make=0.3": pattern and size, then what
// differs from the defaults; computing in seconds for each task, and for each GB that it writes.
// Without a width it is 0, for the caller to say.
Result<SyntheticOptions> ParseSynthetic(std::string_view text);

// One phase, to be run when the one before has ended.
struct SyntheticPart {
  Phase phase = Phase::kStages;
  // Files that no pattern in this part's graph says enough of have own hints: inputs of the part
  // that follows, results (the Opportunity Study keeps them where they are written), and files of
  // regions. Those have no producer when they are written by regions, which a graph cannot say:
  // they have to be there, empty.
  Workflow workflow;
  std::vector<SyntheticTask> tasks;  // As the workflow's.
  Duration compute;                  // For each task, between reading and writing,
  double make_ns_per_byte = 0;       // besides what the bytes that it writes need.
};

Duration ComputingOf(const SyntheticPart& part, TaskIndex task);

// Lane k's tasks run on host k, and one that reads or writes a region whose place is known, there:
// regions are what a graph cannot say.
bool HasRegions(const SyntheticPart& part);

// The phases in order; those without a task are left out.
// Precondition: 1 <= width <= kSyntheticWidthMax.
std::vector<SyntheticPart> MakeSynthetic(const SyntheticOptions& options);

// All that the tasks write to the store, each broadcast copy counted.
uint64_t StoredBytes(const std::vector<SyntheticPart>& parts, uint32_t copies);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_SYNTHETIC_H_
