// What a workflow asks of a store, stage by stage (MTC Envelope, section 2 and its Tables 1 to 3):
// how many files are opened and created, by how many tasks at the same time, which of them one task
// reads, which all tasks of a stage, and which a few; how many bytes each call moves.
//
// As in the paper, the calls of a stage's tasks are aligned by their order, not by time: the k-th
// call of every task happens at once. That depends on the application alone, not on the machine
// that it was seen on. A call is an open, a create, a read or a write; what several calls in a row
// move of one file the kernel may have joined. Pure.
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

// How many others of the stage read a file that a task reads.
enum class Sharing : uint8_t { kOneToOne = 1, kFewToOne, kAllToOne };

struct StageProfile {
  std::string name;
  uint64_t tasks = 0;
  // Whether tasks' calls are known, as of a traced workload. If not, a task reads each input and
  // writes each output by one call.
  bool calls_known = true;

  // Table 1. A file that several tasks read counts, and its bytes, for each of them.
  uint64_t files_read = 0;
  uint64_t files_written = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;

  // Table 2. A spike is a position of the aligned calls where at least half of the stage's tasks
  // do the same; a spike of reads is one of opens, by what most of the opened files are.
  uint64_t open_spikes = 0;
  uint64_t create_spikes = 0;
  uint64_t open_concurrency_max = 0;
  uint64_t create_concurrency_max = 0;
  std::map<Sharing, uint64_t> read_spikes;
  std::map<Sharing, uint64_t> files_by_sharing;  // Counts `files_read`.

  // Table 3.
  uint64_t trace_length = 0;  // Calls of the task that has the most.
  uint64_t read_concurrency_max = 0;
  uint64_t write_concurrency_max = 0;
  uint64_t bytes_read_per_call_max = 0;  // All tasks' calls at one position together.
  uint64_t bytes_written_per_call_max = 0;

  // How many files of which size are read and written, a few-to-1 read as 1-to-1 (section 3.1).
  // 1-to-1 and N-to-1 reads and writes are keys; never create and open.
  std::map<std::pair<EnvelopeOperation, uint64_t>, uint64_t> transfers;
  uint64_t tasks_creating = 0;  // Any file.
};

// Files and bytes for one kind of operation, over all tasks.
struct TransferAmount {
  double files = 0;
  double bytes = 0;
};
// Precondition: MovesBytes(operation).
TransferAmount AmountOf(const StageProfile& stage, EnvelopeOperation operation);

// By stage, in the order in which the workflow's tasks come to them. InvalidArgument names a file
// without a size, of which nothing can be said.
Result<std::vector<StageProfile>> ProfileOf(const Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_PROFILE_H_
