#include <fmt/format.h>

#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

class Scatter final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "scatter"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    return RoundRobin(fmt::format("scatter: runs of {} chunks in turn over", request.argument),
                      view, request);
  }
};

}  // namespace

const PlacementPolicy& ScatterPolicy() {
  static const Scatter policy;
  return policy;
}

}  // namespace mosa::manager
