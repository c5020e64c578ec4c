// Derives from the graph which pattern of use each output file has, and so which hints pay
// (Opportunity Study, section II.A and Table 1). Pure.
//
//  1:1     pipeline  one reader, which reads no other 1:1 output of another task: written locally
//  fan-in  reduce    one reader, which gathers the files of several tasks: on one node
//  fan-out broadcast several readers: enough copies that no single node serves them all
//
// Files that several tasks read share the hosts of their level in proportion to their bytes. If
// sizes are not known, the tasks that write them share the hosts equally: what one task writes
// would otherwise lie on one host. Each file gets as many copies as its share has hosts: many files
// spread the readers by themselves, and a copy costs as much as a remote read. A graph cannot show
// scatter and gather, so the workflow must state them. The user's own hints always win. A file that
// no task reads is a result and gets no hint. If Workflow::hints_are_whole, nothing is derived from
// the graph.
#ifndef MOSA_PREDICTOR_WORKFLOW_PATTERNS_H_
#define MOSA_PREDICTOR_WORKFLOW_PATTERNS_H_

#include <string>
#include <vector>

#include "predictor/workflow/workflow.h"

namespace mosa::predict {

struct PatternOptions {
  uint32_t hosts = 1;
  // More than eight copies cost more than they gained with 19 readers (Opportunity Study, Figure
  // 4).
  uint32_t broadcast_copies_max = 8;
};

struct FileHints {
  PathIndex file;
  HintMap hints;       // Empty: none.
  std::string reason;  // For people.
};

// Returns a plan for every file that a task writes, in the order of the files.
std::vector<FileHints> PlanHints(const Workflow& workflow, const PatternOptions& options);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_PATTERNS_H_
