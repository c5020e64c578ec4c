// The policies themselves, for the registry and for tests.
#ifndef MOSA_MANAGER_PLACEMENT_POLICIES_H_
#define MOSA_MANAGER_PLACEMENT_POLICIES_H_

#include "manager/placement/policy.h"

namespace mosa::manager {

// Round robin over min(width, usable) nodes, beginning at the node that the file's seed names.
const PlacementPolicy& StripePolicy();
// All chunks on the writer's own node; `stripe` when it has none, or none with room.
const PlacementPolicy& LocalPolicy();

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_POLICIES_H_
