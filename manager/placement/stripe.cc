#include <fmt/format.h>

#include <algorithm>

#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

class Stripe final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "stripe"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    const FilteredNodes filtered = FilterNodes(view, request);
    if (filtered.usable.empty()) return NoRoom(request, filtered);
    const auto usable = static_cast<uint32_t>(filtered.usable.size());
    const uint32_t width =
        request.stripe_width == 0 ? usable : std::min(request.stripe_width, usable);
    const uint64_t start = request.seed % usable;
    PlacementPlan plan;
    plan.segment.begin = request.begin;
    plan.segment.width = width;
    for (uint32_t i = 0; i < width; ++i)
      plan.segment.nodes.push_back(filtered.usable[(start + i) % usable]->node);
    plan.reason = fmt::format("stripe: {} of {} nodes, from {} by the file's seed", width, usable,
                              filtered.usable[start]->name);
    if (!filtered.rejected.empty()) plan.reason += "; " + filtered.rejected;
    return plan;
  }
};

}  // namespace

const PlacementPolicy& StripePolicy() {
  static const Stripe policy;
  return policy;
}

}  // namespace mosa::manager
