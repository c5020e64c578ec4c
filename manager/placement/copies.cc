#include "manager/placement/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <tuple>

#include "common/base/hash.h"
#include "common/base/units.h"

namespace mosa::manager {
namespace {

bool Contains(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// Returns the holders of one position, the first copy first.
std::vector<NodeId> HoldersOf(const Segment& segment, uint32_t position) {
  std::vector<NodeId> holders;
  for (uint32_t copy = 0; copy < segment.copies(); ++copy) {
    const NodeId node = segment.nodes[copy * segment.width + position];
    if (node != kNoNode) holders.push_back(node);
  }
  return holders;
}

// Returns the next node of the stripe after this position that can take a copy.
std::optional<NodeId> NextInStripe(const Segment& stripe, uint32_t position,
                                   const std::vector<NodeId>& holders,
                                   const std::vector<const NodeView*>& usable) {
  for (uint32_t i = 1; i < stripe.width; ++i) {
    const NodeId node = stripe.nodes[(position + i) % stripe.width];
    const bool can = std::any_of(usable.begin(), usable.end(),
                                 [node](const NodeView* each) { return each->node == node; });
    if (can && !Contains(holders, node)) return node;
  }
  return std::nullopt;
}

std::optional<NodeId> BestOutside(const Segment& segment, uint64_t seed, uint32_t position,
                                  const std::vector<NodeId>& holders,
                                  const std::vector<const NodeView*>& usable) {
  const auto rank = [&](const NodeView& node) {
    return std::tuple(Contains(segment.nodes, node.node), -std::bit_width(node.free_bytes),
                      HashCombine(HashCombine(seed, position), node.node.value), node.node);
  };
  const NodeView* best = nullptr;
  for (const NodeView* node : usable) {
    if (Contains(holders, node->node)) continue;
    if (!best || rank(*node) < rank(*best)) best = node;
  }
  if (!best) return std::nullopt;
  return best->node;
}

CopiesForecast::const_iterator RowFor(const CopiesForecast& forecast, size_t usable_nodes) {
  const auto row = forecast.lower_bound(static_cast<uint32_t>(usable_nodes));
  return row == forecast.end() && !forecast.empty() ? std::prev(row) : row;
}

uint32_t CopiesByRule(size_t usable_nodes) {
  uint32_t root = 2;
  while (size_t{root} * root < usable_nodes) ++root;
  return root;
}

uint32_t AtMost(uint32_t copies, size_t usable_nodes) {
  return std::min(copies, static_cast<uint32_t>(std::max<size_t>(usable_nodes, 1)));
}

}  // namespace

CopiesChoice ChooseCopies(const CopiesForecast& forecast, size_t usable_nodes,
                          std::optional<uint64_t> size_bytes) {
  const auto row = RowFor(forecast, usable_nodes);
  if (row == forecast.end() || row->second.empty())
    return {CopiesByRule(usable_nodes), 0, std::nullopt};
  const std::vector<CopiesForBytes>& sizes = row->second;
  size_t nearest = sizes.size() - 1;
  if (size_bytes) {
    // The boundary between two sizes is their geometric mean.
    const auto is_below = [size_bytes](const CopiesForBytes& low, const CopiesForBytes& high) {
      const auto size = static_cast<double>(*size_bytes);
      return size * size <= static_cast<double>(low.bytes) * static_cast<double>(high.bytes);
    };
    while (nearest > 0 && is_below(sizes[nearest - 1], sizes[nearest])) --nearest;
  }
  CopiesChoice choice{AtMost(sizes[nearest].copies, usable_nodes), row->first, std::nullopt};
  if (size_bytes) choice.bytes = sizes[nearest].bytes;
  return choice;
}

uint32_t MostCopies(const CopiesForecast& forecast, size_t usable_nodes) {
  const auto row = RowFor(forecast, usable_nodes);
  if (row == forecast.end() || row->second.empty()) return CopiesByRule(usable_nodes);
  uint32_t most = 1;
  for (const CopiesForBytes& size : row->second) most = std::max(most, size.copies);
  return AtMost(most, usable_nodes);
}

std::string ToText(const CopiesChoice& choice) {
  const std::string copies =
      choice.copies == 1 ? "1 copy" : fmt::format("{} copies", choice.copies);
  if (choice.nodes == 0)
    return copies + ": the square root of the nodes, since nothing is forecast";
  const std::string bytes = choice.bytes ? HumanBytes(static_cast<int64_t>(*choice.bytes))
                                         : "a long file (its size is not known yet)";
  return fmt::format("{}, predicted best for {} on {} node{}", copies, bytes, choice.nodes,
                     choice.nodes == 1 ? "" : "s");
}

CopiesPlan PlanCopies(const ClusterView& view, const CopiesRequest& request) {
  const PlacementRequest wanted{.needed_bytes = request.needed_bytes, .excluded = request.excluded};
  const FilteredNodes filtered = FilterNodes(view, wanted);
  const Segment& stripe = request.holders;
  const bool within = stripe.width > request.copies;
  CopiesPlan plan{stripe, UINT32_MAX, {}};
  const auto add = [&plan](uint32_t position, NodeId node) {
    const uint32_t width = plan.holders.width;
    uint32_t copy = 1;
    while (copy < plan.holders.copies() && plan.holders.nodes[copy * width + position] != kNoNode)
      ++copy;
    if (copy == plan.holders.copies())
      plan.holders.nodes.resize(plan.holders.nodes.size() + width, kNoNode);
    plan.holders.nodes[copy * width + position] = node;
  };
  for (uint32_t position = 0; position < stripe.width; ++position) {
    std::vector<NodeId> holders = HoldersOf(stripe, position);
    auto staying =
        static_cast<uint32_t>(std::count_if(holders.begin(), holders.end(), [&](NodeId node) {
          return !Contains(request.leaving, node);
        }));
    std::vector<NodeId> added;
    while (staying < request.copies) {
      std::optional<NodeId> node;
      if (within) node = NextInStripe(stripe, position, holders, filtered.usable);
      if (!node) node = BestOutside(plan.holders, request.seed, position, holders, filtered.usable);
      if (!node) break;
      if (Contains(plan.holders.nodes, *node))
        node = NextInStripe(stripe, position, holders, filtered.usable).value_or(*node);
      holders.push_back(*node);
      added.push_back(*node);
      ++staying;
    }
    std::stable_partition(added.begin(), added.end(),
                          [&](NodeId node) { return !Contains(request.writers, node); });
    for (const NodeId node : added) add(position, node);
    plan.copies = std::min(plan.copies, staying);
  }
  if (plan.copies < request.copies)
    plan.reason =
        fmt::format("{} of {} copies: {}", plan.copies, request.copies,
                    filtered.rejected.empty() ? fmt::format("there are {} nodes", view.nodes.size())
                                              : filtered.rejected);
  return plan;
}

}  // namespace mosa::manager
