#include <fmt/format.h>

#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

class Local final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "local"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    const FilteredNodes filtered = FilterNodes(view, request);
    for (const NodeView* node : filtered.usable) {
      if (node->node != request.writer_node) continue;
      PlacementPlan plan;
      plan.segment = {request.begin, 1, {node->node}};
      plan.reason = fmt::format("local: {} is the writer's node", node->name);
      return plan;
    }
    MOSA_ASSIGN_OR_RETURN(PlacementPlan plan, StripePolicy().Place(view, request));
    plan.reason =
        fmt::format("local: {}; {}",
                    request.writer_node == kNoNode ? "the writer's host has no storage node"
                                                   : "the writer's node cannot take it",
                    plan.reason);
    return plan;
  }
};

}  // namespace

const PlacementPolicy& LocalPolicy() {
  static const Local policy;
  return policy;
}

}  // namespace mosa::manager
