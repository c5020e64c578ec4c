#include <fmt/format.h>

#include <algorithm>

#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

class Node final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "node"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    const auto node = std::find_if(view.nodes.begin(), view.nodes.end(),
                                   [&](const NodeView& n) { return n.name == request.argument; });
    if (node == view.nodes.end())
      return FallBack(*this, fmt::format("there is no node {}", request.argument), view, request);
    if (const auto why = WhyRejected(*node, request))
      return FallBack(*this, fmt::format("{} {}", node->name, *why), view, request);
    PlacementPlan plan;
    plan.segment = {request.begin, 1, {node->node}};
    plan.reason = fmt::format("node: {} is the node that was named", node->name);
    return plan;
  }
};

}  // namespace

const PlacementPolicy& NodePolicy() {
  static const Node policy;
  return policy;
}

}  // namespace mosa::manager
