#include <fmt/format.h>

#include <algorithm>

#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

class Near final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "near"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    const auto writer = std::find_if(view.nodes.begin(), view.nodes.end(), [&](const NodeView& n) {
      return n.node == request.writer_node;
    });
    // What follows when a node is full goes round like any stripe.
    if (request.begin > 0 || writer == view.nodes.end()) return RoundRobin("near:", view, request);
    if (const auto why = WhyRejected(*writer, request))
      return RoundRobin(fmt::format("near, but the writer's node {} {}:", writer->name, *why), view,
                        request);
    MOSA_ASSIGN_OR_RETURN(PlacementPlan plan, RoundRobin("near:", view, request));
    // The others keep their order, so that the second chunks of many files are spread, too.
    std::vector<NodeId>& nodes = plan.segment.nodes;
    const auto own = std::find(nodes.begin(), nodes.end(), writer->node);
    if (own == nodes.end())
      nodes.pop_back();
    else
      nodes.erase(own);
    nodes.insert(nodes.begin(), writer->node);
    plan.reason = fmt::format("near: {} of {} nodes, from {}, which is the writer's", nodes.size(),
                              FilterNodes(view, request).usable.size(), writer->name);
    return plan;
  }
};

}  // namespace

const PlacementPolicy& NearPolicy() {
  static const Near policy;
  return policy;
}

}  // namespace mosa::manager
