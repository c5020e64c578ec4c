// Which nodes get which chunks. Pure: plain values in, a plan out; the predictor links the same
// code.
//
// Every policy filters (must: live, not excluded, room), scores (want) and takes the best by a
// total order that ends in the node's id. A new policy is one .cc, one row in policies_test.cc and
// one line in registry.cc.
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
  uint64_t free_bytes = 0;         // For the writer: its own grants count as free.
  bool accepts = true;             // Live and not draining.
  uint64_t reclaimable_bytes = 0;  // Besides: granted to others, who have not used it.
  uint32_t groups = 0;             // How many groups have their anchor here.
};

// What a policy knows of the cluster, as old as the last heartbeats.
struct ClusterView {
  std::vector<NodeView> nodes;  // Ascending by id.
};

struct PlacementRequest {
  uint64_t seed = 0;          // FileSeed(), combined with the number of segments that the file has.
  uint64_t begin = 0;         // Where the segment begins, in bytes.
  uint64_t needed_bytes = 0;  // A node with less room is passed over.
  uint32_t stripe_width = 0;  // 0: all nodes.
  NodeId writer_node{};       // kNoNode if the writer's host has none.
  std::vector<NodeId> excluded{};   // Found full. Not empty: the rest of a file goes on elsewhere.
  std::string argument{};           // The policy's: "g" in "collocate:g".
  bool exact_width = false;         // Refuse rather than stripe over fewer nodes.
  bool strict = false;              // Refuse rather than place otherwise than the policy says.
  std::string fallback = "stripe";  // The policy for what cannot be had.
  NodeId anchor{};                  // The group's anchor; kNoNode if it has none yet.
};

struct PlacementPlan {
  Segment segment;
  std::string reason;  // For people: policy, score, choice, and which nodes were skipped and why.
  // The group's anchor from now on; kNoNode: the next file chooses one. Absent: as before.
  std::optional<NodeId> anchor{};
};

// Stateless and safe from any thread; lives as long as the process.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual std::string_view name() const = 0;
  // ResourceExhausted, with the numbers of every node, if no node has room.
  virtual Result<PlacementPlan> Place(const ClusterView& view,
                                      const PlacementRequest& request) const = 0;
};

// The policy that `policy` names, as "local" or "collocate:g". When it cannot have what it wants,
// `request.fallback` places, and the plan's reason says so; a name that no policy has gets
// `stripe`.
Result<PlacementPlan> Place(std::string_view policy, const ClusterView& view,
                            const PlacementRequest& request);
// Every policy, in the order of names.
const std::vector<const PlacementPolicy*>& AllPolicies();

// The placement seed of a file: different files start at different nodes, a repeated make at the
// same.
uint64_t FileSeed(uint64_t cluster_seed, FileId parent, std::string_view name, uint64_t generation);

// ---- what policies are made of

struct FilteredNodes {
  std::vector<const NodeView*> usable;  // Ascending by id.
  std::string rejected;                 // "b has 0 B free of 1 MiB needed, c takes nothing new".
};
FilteredNodes FilterNodes(const ClusterView& view, const PlacementRequest& request);
// Why the node cannot be used, or nothing: "takes nothing new".
std::optional<std::string> WhyRejected(const NodeView& node, const PlacementRequest& request);
// Chunk by chunk over min(stripe_width, usable) nodes, beginning at the one that the seed names;
// the reason begins with `what`. A strict request needs all of its stripe_width.
Result<PlacementPlan> RoundRobin(std::string_view what, const ClusterView& view,
                                 const PlacementRequest& request);
// What `policy` answers when it cannot be had, because of `why`: the plan of the fallback, or
// ResourceExhausted if the request is strict.
Result<PlacementPlan> FallBack(const PlacementPolicy& policy, std::string_view why,
                               const ClusterView& view, const PlacementRequest& request);
Status NoRoom(const PlacementRequest& request, const FilteredNodes& filtered);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_POLICY_H_
