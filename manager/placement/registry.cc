#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/units.h"
#include "manager/placement/policies.h"
#include "manager/placement/policy.h"

namespace mosa::manager {
namespace {

// Of the sentence about nodes that were passed over: a cluster may have thousands, and the sentence
// goes out with a reply.
constexpr size_t kRejectedBytesMax = 2000;

}  // namespace

const std::vector<const PlacementPolicy*>& AllPolicies() {
  static const std::vector<const PlacementPolicy*> policies = {
      &LocalPolicy(),
      &StripePolicy(),
  };
  return policies;
}

Result<PlacementPlan> Place(std::string_view policy, const ClusterView& view,
                            const PlacementRequest& request) {
  for (const PlacementPolicy* candidate : AllPolicies()) {
    if (candidate->name() == policy) return candidate->Place(view, request);
  }
  MOSA_ASSIGN_OR_RETURN(PlacementPlan plan, StripePolicy().Place(view, request));
  plan.reason = fmt::format("there is no policy '{}': {}", policy, plan.reason);
  return plan;
}

uint64_t FileSeed(uint64_t cluster_seed, FileId parent, std::string_view name,
                  uint64_t generation) {
  return HashCombine(HashCombine(cluster_seed, parent.value), Hash64(name, generation));
}

FilteredNodes FilterNodes(const ClusterView& view, const PlacementRequest& request) {
  FilteredNodes filtered;
  size_t more = 0;
  const auto reject = [&filtered, &more](const std::string& why) {
    if (filtered.rejected.size() >= kRejectedBytesMax) {
      ++more;
      return;
    }
    if (!filtered.rejected.empty()) filtered.rejected += ", ";
    filtered.rejected += why;
  };
  for (const NodeView& node : view.nodes) {
    if (!node.accepts) {
      reject(fmt::format("{} takes nothing new", node.name));
    } else if (std::find(request.excluded.begin(), request.excluded.end(), node.node) !=
               request.excluded.end()) {
      reject(fmt::format("{} was found full", node.name));
    } else if (node.free_bytes < request.needed_bytes) {
      reject(fmt::format("{} has {} free of {} needed", node.name,
                         HumanBytes(static_cast<int64_t>(node.free_bytes)),
                         HumanBytes(static_cast<int64_t>(request.needed_bytes))));
    } else {
      filtered.usable.push_back(&node);
    }
  }
  if (more > 0) filtered.rejected += fmt::format(", and so on with {} more", more);
  return filtered;
}

Status NoRoom(const PlacementRequest& request, const FilteredNodes& filtered) {
  if (filtered.rejected.empty())
    return ResourceExhaustedError("no storage node is registered: start one");
  return ResourceExhaustedError(fmt::format(
      "no storage node has room for what comes at byte {}: {}; remove files or add nodes",
      request.begin, filtered.rejected));
}

}  // namespace mosa::manager
