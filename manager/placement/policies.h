// The individual policies, for the registry and for tests.
#ifndef MOSA_MANAGER_PLACEMENT_POLICIES_H_
#define MOSA_MANAGER_PLACEMENT_POLICIES_H_

#include "manager/placement/policy.h"

namespace mosa::manager {

// stripe: round robin over min(width, usable) nodes, beginning at the node that the file's seed
// selects.
const PlacementPolicy& StripePolicy();
// near: as stripe, but the first chunk lies on the writer's own node. So short files are written,
// and read by whoever works on there, without the network.
const PlacementPolicy& NearPolicy();
// local: all chunks on the writer's own node (Opportunity Study, III.B, pipeline).
const PlacementPolicy& LocalPolicy();
// collocate:<group>: all files of a group on one node, its anchor (Opportunity Study, III.B,
// reduce). The anchor is the node with the most room, in quarters; ties go to the fewest groups,
// then to a hash of group and node. When the anchor is full, or accepts nothing new, the next file
// chooses another one. A file already begun spills by the fallback.
const PlacementPolicy& CollocatePolicy();
// scatter:<chunks>: runs of that many chunks on each node in turn, so that N tasks work on N
// regions (Opportunity Study, III.B, scatter and gather). One chunk of the layout is such a run.
const PlacementPolicy& ScatterPolicy();
// node:<name>: all chunks on the named node.
const PlacementPolicy& NodePolicy();

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_POLICIES_H_
