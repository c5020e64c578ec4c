#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "common/base/hash.h"
#include "manager/placement/policies.h"

namespace mosa::manager {
namespace {

// Room is measured in quarters of the roomiest node's, so that small differences do not decide.
constexpr uint64_t kRoomSteps = 4;

struct Score {
  uint64_t room = 0;  // 0 to kRoomSteps.
  uint32_t groups = 0;
  uint64_t favour = 0;
};

Score ScoreOf(const NodeView& node, uint64_t most_free_bytes, std::string_view group) {
  const uint64_t step = std::max<uint64_t>(most_free_bytes / kRoomSteps, 1);
  return {std::min(node.free_bytes / step, kRoomSteps), node.groups,
          HashCombine(Hash64(group), node.node.value)};
}

bool Better(const Score& a, NodeId a_node, const Score& b, NodeId b_node) {
  return std::tuple(b.room, a.groups, b.favour, a_node) <
         std::tuple(a.room, b.groups, a.favour, b_node);
}

class Collocate final : public PlacementPolicy {
 public:
  std::string_view name() const override { return "collocate"; }

  Result<PlacementPlan> Place(const ClusterView& view,
                              const PlacementRequest& request) const override {
    if (!request.excluded.empty()) return Spill(view, request);
    const auto anchor = std::find_if(view.nodes.begin(), view.nodes.end(),
                                     [&](const NodeView& n) { return n.node == request.anchor; });
    if (request.anchor == kNoNode || anchor == view.nodes.end()) return Choose(view, request, "");
    NodeView reclaimed = *anchor;
    reclaimed.free_bytes += reclaimed.reclaimable_bytes;
    const auto why = WhyRejected(reclaimed, request);
    if (!why) {
      PlacementPlan plan;
      plan.segment = {request.begin, 1, {anchor->node}};
      plan.reason =
          fmt::format("collocate: {} is the anchor of group '{}'", anchor->name, request.argument);
      return plan;
    }
    const std::string sentence =
        fmt::format("{}, the anchor of group '{}', {}", anchor->name, request.argument, *why);
    if (request.strict) return FallBack(*this, sentence, view, request);
    return Choose(view, request, sentence);
  }

 private:
  // Places the rest of a file whose node is full; that node may also be the group's anchor.
  Result<PlacementPlan> Spill(const ClusterView& view, const PlacementRequest& request) const {
    MOSA_ASSIGN_OR_RETURN(
        PlacementPlan plan,
        FallBack(*this, fmt::format("a node of group '{}' is full", request.argument), view,
                 request));
    if (std::find(request.excluded.begin(), request.excluded.end(), request.anchor) !=
        request.excluded.end())
      plan.anchor = kNoNode;
    return plan;
  }

  static Result<PlacementPlan> Choose(const ClusterView& view, const PlacementRequest& request,
                                      const std::string& before) {
    const FilteredNodes filtered = FilterNodes(view, request);
    if (filtered.usable.empty()) return NoRoom(request, filtered);
    uint64_t most = 0;
    for (const NodeView* node : filtered.usable) most = std::max(most, node->free_bytes);
    const NodeView* best = nullptr;
    Score best_score;
    for (const NodeView* node : filtered.usable) {
      const Score score = ScoreOf(*node, most, request.argument);
      if (best && !Better(score, node->node, best_score, best->node)) continue;
      best = node;
      best_score = score;
    }
    PlacementPlan plan;
    plan.segment = {request.begin, 1, {best->node}};
    plan.anchor = best->node;
    plan.reason = fmt::format(
        "collocate: {} becomes the anchor of group '{}' (room {} of {}, {} "
        "other groups)",
        best->name, request.argument, best_score.room, kRoomSteps, best->groups);
    if (!before.empty()) plan.reason += "; " + before;
    if (!filtered.rejected.empty()) plan.reason += "; " + filtered.rejected;
    return plan;
  }
};

}  // namespace

const PlacementPolicy& CollocatePolicy() {
  static const Collocate policy;
  return policy;
}

}  // namespace mosa::manager
