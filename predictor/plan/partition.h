// Divides a workflow's tasks among hosts, so that few bytes have to be moved and every host gets
// its share of the work of each level (the tasks at one distance from the start, which may run at
// the same time).
//
// Multilevel partitioning of the hypergraph in which each file connects its producer and its
// consumers: coarsening by heavy connections, greedy placing of the coarsest graph, and refinement
// on each level (Karypis and Kumar, "Multilevel k-way Hypergraph Partitioning", 1999; Fiduccia and
// Mattheyses, "A Linear-Time Heuristic for Improving Network Partitions", 1982). A file costs its
// bytes times the number of hosts, less one, that produce or read it. Pure; the same arguments give
// the same answer.
#ifndef MOSA_PREDICTOR_PLAN_PARTITION_H_
#define MOSA_PREDICTOR_PLAN_PARTITION_H_

#include <cstdint>
#include <vector>

#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

struct PartitionOptions {
  // Each host's share of the work; they add up to 1. A host with 0 gets no task.
  std::vector<double> shares;
  // How much more of a level than its share a host may get, as a share of it. A host may always get
  // one task of each level.
  double imbalance = 0.1;
  uint64_t seed = 1;
};

// `seconds`: by task, how long it takes; 0 counts as very little. Returns each task's host.
// Precondition: some share is above 0.
std::vector<HostIndex> PartitionTasks(const Workflow& workflow, const std::vector<double>& seconds,
                                      const PartitionOptions& options);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_PLAN_PARTITION_H_
