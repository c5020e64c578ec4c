// Placement policies: which nodes get which chunks. Pure: plain values in, a plan out; the
// predictor links the same code.
//
// Every policy filters (required: live, not excluded, room), scores (preferred) and takes the best
// node by a total order that ends in the node's id. A new policy is one .cc file, one row in
// policies_test.cc and one line in registry.cc.
#ifndef MOSA_MANAGER_PLACEMENT_POLICY_H_
#define MOSA_MANAGER_PLACEMENT_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/ids.h"
#include "common/model/layout.h"

namespace mosa::manager {

struct NodeView {
  NodeId node;
  std::string name;
  uint64_t free_bytes = 0;         // The writer's own grants count as free.
  bool accepts = true;             // Live and not draining.
  uint64_t reclaimable_bytes = 0;  // In addition: granted to other mounts and unused.
  uint32_t groups = 0;             // Number of groups anchored here.
};

// The cluster as a policy sees it, as old as the last heartbeats.
struct ClusterView {
  std::vector<NodeView> nodes;  // Ascending by id.
};

struct PlacementRequest {
  uint64_t seed = 0;          // FileSeed(), combined with the file's number of segments.
  uint64_t begin = 0;         // Start of the segment, in bytes.
  uint64_t needed_bytes = 0;  // Nodes with less room are skipped.
  uint32_t stripe_width = 0;  // 0: all nodes.
  NodeId writer_node{};       // kNoNode if the writer's host has none.
  // Nodes found full. Not empty: the rest of a file continues elsewhere.
  std::vector<NodeId> excluded{};
  std::string argument{};           // The policy's argument: "g" in "collocate:g".
  bool exact_width = false;         // Refuse rather than stripe over fewer nodes.
  bool strict = false;              // Refuse rather than use the fallback.
  std::string fallback = "stripe";  // The policy to use if this one cannot place.
  NodeId anchor{};                  // The group's anchor; kNoNode if it has none yet.
};

struct PlacementPlan {
  Segment segment;
  std::string reason;  // For people: policy, score, choice, and skipped nodes with reasons.
  // The group's anchor from now on; kNoNode: the next file chooses one. Absent: unchanged.
  std::optional<NodeId> anchor{};
};

// Stateless and thread-safe; lives as long as the process.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual std::string_view name() const = 0;
  // ResourceExhausted, with every node's numbers, if no node has room.
  virtual Result<PlacementPlan> Place(const ClusterView& view,
                                      const PlacementRequest& request) const = 0;
};

// Places by the policy that `policy` names, such as "local" or "collocate:g". If that policy cannot
// place, `request.fallback` does, and the plan's reason says so. An unknown name means `stripe`.
Result<PlacementPlan> Place(std::string_view policy, const ClusterView& view,
                            const PlacementRequest& request);
// Returns every policy, sorted by name.
const std::vector<const PlacementPolicy*>& AllPolicies();

// Returns a file's placement seed. Different files start at different nodes; a repeated make starts
// at the same node.
uint64_t FileSeed(uint64_t cluster_seed, FileId parent, std::string_view name, uint64_t generation);

// ---- building blocks of policies

struct FilteredNodes {
  std::vector<const NodeView*> usable;  // Ascending by id.
  std::string rejected;                 // "b has 0 B free of 1 MiB needed, c takes nothing new".
};
FilteredNodes FilterNodes(const ClusterView& view, const PlacementRequest& request);
// Returns why the node cannot be used, such as "takes nothing new"; nothing if it can.
std::optional<std::string> WhyRejected(const NodeView& node, const PlacementRequest& request);
// Stripes over min(stripe_width, usable) nodes, beginning at the node that the seed selects. The
// reason begins with `what`. If the width is exact, all stripe_width nodes are required.
Result<PlacementPlan> RoundRobin(std::string_view what, const ClusterView& view,
                                 const PlacementRequest& request);
// Returns the answer of a `policy` that cannot place because of `why`: the fallback's plan, or
// ResourceExhausted if the request is strict.
Result<PlacementPlan> FallBack(const PlacementPolicy& policy, std::string_view why,
                               const ClusterView& view, const PlacementRequest& request);
Status NoRoom(const PlacementRequest& request, const FilteredNodes& filtered);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_POLICY_H_
