// Which pattern of use each output file of a workflow has, told from the graph, and so which hints
// pay (Opportunity Study, section II.A and Table 1). Pure.
//
//   1:1 pipeline      one reader, and it has no other file of this kind to fetch: written locally
//   fan-in reduce     one reader, which gathers the files of several tasks: on one node
//   fan-out broadcast several readers: as many copies as keep one node from serving them all
//
// Files of one level that several tasks read share the hosts by their bytes (by their number, as
// far as sizes are not known), and a file gets as many copies as its share has
// hosts: many files spread the readers by themselves, and a copy costs what a remote read costs.
// Scatter and gather cannot be seen in a graph: whoever writes the workflow says so, and the user's
// own hints always win. What nobody reads is a result and gets no hint. Where hints are whole
// (workflow.h) nothing is told from the graph.
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

// For every file that a task writes, in the order of the files.
std::vector<FileHints> PlanHints(const Workflow& workflow, const PatternOptions& options);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_PATTERNS_H_
