// What tasks do with streams, the files that are read while they are written (the hint
// stream=append). Pure.
#ifndef MOSA_PREDICTOR_WORKFLOW_STREAMS_H_
#define MOSA_PREDICTOR_WORKFLOW_STREAMS_H_

#include <vector>

#include "predictor/workflow/workflow.h"

namespace mosa::predict {

inline constexpr uint32_t kStreamStepsMax = 100;

bool HasStreams(const Workflow& workflow);
// The same workflow with streams as plain files: their readers start after their writers.
Workflow WithoutStreams(Workflow workflow);

// The operations of a task that reads or writes streams, if none are known of it: it reads its
// other inputs; then, step by step, a share of each stream that it reads, computes a share of its
// time, and writes a share of each stream that it writes; its other outputs it writes at the end
// (which is left out). Empty: the task has operations, or neither reads nor writes a stream.
// Files without a size count as empty.
std::vector<TaskOperation> StreamSteps(const Workflow& workflow, const Task& task);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_STREAMS_H_
