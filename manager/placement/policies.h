// The policies themselves, for the registry and for tests.
#ifndef MOSA_MANAGER_PLACEMENT_POLICIES_H_
#define MOSA_MANAGER_PLACEMENT_POLICIES_H_

#include "manager/placement/policy.h"

namespace mosa::manager {

// Round robin over min(width, usable) nodes, beginning at the node that the file's seed names.
const PlacementPolicy& StripePolicy();
// All chunks on the writer's own node (Opportunity Study, III.B, pipeline).
const PlacementPolicy& LocalPolicy();
// collocate:<group>: all files of a group on one node, its anchor (Opportunity Study, III.B,
// reduce). The anchor is the node with the most room, in quarters; then the one with the fewest
// groups; then the one that a hash of group and node favours. When it is full, or takes nothing
// new, the next file chooses another one; what has begun spills by the fallback.
const PlacementPolicy& CollocatePolicy();
// scatter:<chunks>: that many chunks in a row on one node, then as many on the next, so that N
// tasks work on N regions (Opportunity Study, III.B, scatter and gather). The layout's chunk is
// such a run.
const PlacementPolicy& ScatterPolicy();
// node:<name>: all chunks on the node of that name.
const PlacementPolicy& NodePolicy();

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_POLICIES_H_
