#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/units.h"
#include "manager/placement/policies.h"
#include "manager/placement/policy.h"

namespace mosa::manager {
namespace {

// Limits the sentence about skipped nodes, which is sent in a reply: a cluster may have thousands.
constexpr size_t kRejectedBytesMax = 2000;

}  // namespace

const std::vector<const PlacementPolicy*>& AllPolicies() {
  static const std::vector<const PlacementPolicy*> policies = {
      &CollocatePolicy(), &LocalPolicy(),   &NearPolicy(),
      &NodePolicy(),      &ScatterPolicy(), &StripePolicy(),
  };
  return policies;
}

Result<PlacementPlan> Place(std::string_view policy, const ClusterView& view,
                            const PlacementRequest& request) {
  const size_t colon = std::min(policy.find(':'), policy.size());
  for (const PlacementPolicy* candidate : AllPolicies()) {
    if (candidate->name() != policy.substr(0, colon)) continue;
    PlacementRequest with_argument = request;
    with_argument.argument = policy.substr(std::min(colon + 1, policy.size()));
    return candidate->Place(view, with_argument);
  }
  MOSA_ASSIGN_OR_RETURN(PlacementPlan plan, StripePolicy().Place(view, request));
  plan.reason = fmt::format("there is no policy '{}': {}", policy, plan.reason);
  return plan;
}

uint64_t FileSeed(uint64_t cluster_seed, FileId parent, std::string_view name,
                  uint64_t generation) {
  return HashCombine(HashCombine(cluster_seed, parent.value), Hash64(name, generation));
}

std::optional<std::string> WhyRejected(const NodeView& node, const PlacementRequest& request) {
  if (!node.accepts) return "takes nothing new";
  if (std::find(request.excluded.begin(), request.excluded.end(), node.node) !=
      request.excluded.end())
    return "was found full";
  if (node.free_bytes < request.needed_bytes)
    return fmt::format("has {} free of {} needed",
                       HumanBytes(static_cast<int64_t>(node.free_bytes)),
                       HumanBytes(static_cast<int64_t>(request.needed_bytes)));
  return std::nullopt;
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
    if (const auto why = WhyRejected(node, request)) {
      reject(fmt::format("{} {}", node.name, *why));
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
      "no storage node has free space for the bytes from {} on: {}; remove files or add nodes",
      request.begin, filtered.rejected));
}

Result<PlacementPlan> RoundRobin(std::string_view what, const ClusterView& view,
                                 const PlacementRequest& request) {
  const FilteredNodes filtered = FilterNodes(view, request);
  if (filtered.usable.empty()) return NoRoom(request, filtered);
  const auto usable = static_cast<uint32_t>(filtered.usable.size());
  if (request.exact_width && usable < request.stripe_width)
    return ResourceExhaustedError(
        fmt::format("strict=1 needs all {} nodes of the stripe, but only {} are usable: {}; free "
                    "space, add nodes, or set strict to 0",
                    request.stripe_width, usable, filtered.rejected));
  const uint32_t width =
      request.stripe_width == 0 ? usable : std::min(request.stripe_width, usable);
  const uint64_t start = request.seed % usable;
  PlacementPlan plan;
  plan.segment.begin = request.begin;
  plan.segment.width = width;
  for (uint32_t i = 0; i < width; ++i)
    plan.segment.nodes.push_back(filtered.usable[(start + i) % usable]->node);
  plan.reason = fmt::format("{} {} of {} nodes, from {} by the file's seed", what, width, usable,
                            filtered.usable[start]->name);
  if (!filtered.rejected.empty()) plan.reason += "; " + filtered.rejected;
  return plan;
}

Result<PlacementPlan> FallBack(const PlacementPolicy& policy, std::string_view why,
                               const ClusterView& view, const PlacementRequest& request) {
  const std::string wanted = request.argument.empty()
                                 ? std::string(policy.name())
                                 : fmt::format("{}:{}", policy.name(), request.argument);
  if (request.strict)
    return ResourceExhaustedError(fmt::format(
        "strict=1, but placement {} is not possible: {}; free space there, or set strict to 0",
        wanted, why));
  // If the fallback itself cannot place, `stripe` does, since it needs no particular node.
  const std::string_view name =
      request.fallback == wanted ? StripePolicy().name() : std::string_view(request.fallback);
  PlacementRequest otherwise = request;
  otherwise.fallback = StripePolicy().name();
  MOSA_ASSIGN_OR_RETURN(PlacementPlan plan, Place(name, view, otherwise));
  plan.reason = fmt::format("{}: {}; {}", policy.name(), why, plan.reason);
  return plan;
}

}  // namespace mosa::manager
