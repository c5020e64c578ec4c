#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

class Stripe final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "stripe"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    return RoundRobin("stripe:", view, request);
  }
};

}  // namespace

const PlacementPolicy& StripePolicy() {
  static const Stripe policy;
  return policy;
}

}  // namespace mosa::manager
