// What a workflow asks of a store, stage by stage (MTC Envelope, section 2 and its Tables 1 to 3):
// how many files are opened and created, by how many concurrent tasks; whether a file is read by
// one task, a few or all of a stage; and how many bytes each call moves.
//
// As in the paper, the calls of a stage's tasks are aligned by order, not by time: the k-th calls
// of all tasks happen at once. The profile therefore depends on the application alone, not on the
// machine where it was traced. A call is an open, create, read or write; the kernel may have merged
// consecutive transfers of one file. Pure.
#ifndef MOSA_PREDICTOR_ENVELOPE_PROFILE_H_
#define MOSA_PREDICTOR_ENVELOPE_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "predictor/envelope/envelope.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// How many tasks of the stage read a file.
enum class Sharing : uint8_t { kOneToOne = 1, kFewToOne, kAllToOne };

struct StageProfile {
  std::string name;
  uint64_t tasks = 0;
  // True if the tasks' calls are known, as in a traced workload. Otherwise each task reads each
  // input and writes each output by one call.
  bool calls_known = true;

  // Table 1. A file and its bytes count once for each task that reads it.
  uint64_t files_read = 0;
  uint64_t files_written = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;

  // Table 2. A spike is a position of the aligned calls at which at least half of the stage's tasks
  // make the same call. A read spike is an open spike, classified by how most of the opened files
  // are shared.
  uint64_t open_spikes = 0;
  uint64_t create_spikes = 0;
  uint64_t open_concurrency_max = 0;
  uint64_t create_concurrency_max = 0;
  std::map<Sharing, uint64_t> read_spikes;
  std::map<Sharing, uint64_t> files_by_sharing;  // Adds up to `files_read`.

  // Table 3.
  uint64_t trace_length = 0;  // Calls of the task that makes the most.
  uint64_t read_concurrency_max = 0;
  uint64_t write_concurrency_max = 0;
  uint64_t bytes_read_per_call_max = 0;  // Sum over all tasks' calls at one position.
  uint64_t bytes_written_per_call_max = 0;

  // Number of files read and written, by operation and size. Few-to-1 reads count as 1-to-1
  // (section 3.1). Keys are 1-to-1 reads, N-to-1 reads and writes; never create and open.
  std::map<std::pair<EnvelopeOperation, uint64_t>, uint64_t> transfers;
  uint64_t tasks_creating = 0;  // Tasks that create any file.
};

// Files and bytes of one kind of operation, summed over tasks.
struct TransferAmount {
  double files = 0;
  double bytes = 0;
};
// Precondition: MovesBytes(operation).
TransferAmount AmountOf(const StageProfile& stage, EnvelopeOperation operation);

// Stages are in the order in which the workflow's tasks reach them. InvalidArgument names a file
// that has no size and is transferred whole.
Result<std::vector<StageProfile>> ProfileOf(const Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_PROFILE_H_
