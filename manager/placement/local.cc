#include <fmt/format.h>

#include <algorithm>

#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

class Local final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "local"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    const auto node = std::find_if(view.nodes.begin(), view.nodes.end(), [&](const NodeView& n) {
      return n.node == request.writer_node;
    });
    if (request.writer_node == kNoNode || node == view.nodes.end())
      return FallBack(*this, "the writer's host has no storage node", view, request);
    if (const auto why = WhyRejected(*node, request))
      return FallBack(*this, fmt::format("the writer's node {} {}", node->name, *why), view,
                      request);
    PlacementPlan plan;
    plan.segment = {request.begin, 1, {node->node}};
    plan.reason = fmt::format("local: {} is the writer's node", node->name);
    return plan;
  }
};

}  // namespace

const PlacementPolicy& LocalPolicy() {
  static const Local policy;
  return policy;
}

}  // namespace mosa::manager
