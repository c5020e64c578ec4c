// Plans the copies of a file beyond the first. Pure: plain values in, a plan out; the predictor
// links the same code.
#ifndef MOSA_MANAGER_PLACEMENT_COPIES_H_
#define MOSA_MANAGER_PLACEMENT_COPIES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model/ids.h"
#include "common/model/layout.h"
#include "manager/placement/policy.h"

namespace mosa::manager {

// The number of copies that pays for a file of `bytes` if every node reads it, as predicted from
// the speed of nodes and links (predictor/run/copies_forecast.h). Lists ascend by bytes.
struct CopiesForBytes {
  uint64_t bytes = 0;
  uint32_t copies = 1;
  bool operator==(const CopiesForBytes&) const = default;
};
using CopiesForecast = std::map<uint32_t, std::vector<CopiesForBytes>>;  // By number of nodes.

// The meaning of `replicas=auto`, including the first copy.
struct CopiesChoice {
  uint32_t copies = 1;
  uint32_t nodes = 0;  // Number of nodes of the forecast used; 0: by the rule.
  // File size of the forecast used. Absent: its largest, since the file's size is not known yet.
  std::optional<uint64_t> bytes;
};
// Uses the forecast for the nearest size (by logarithm) and the nearest number of nodes that is not
// less, else the greatest: the loss of a node then seldom removes copies. Without a forecast the
// rule applies: the square root of the number of nodes, rounded up, at least 2. (With n copies, n
// links carry the reads, and n - 1 transfers make the copies if one node sends them all; the total
// is least near the square root.)
CopiesChoice ChooseCopies(const CopiesForecast& forecast, size_t usable_nodes,
                          std::optional<uint64_t> size_bytes);
// Returns the largest number of copies that ChooseCopies gives for any size.
uint32_t MostCopies(const CopiesForecast& forecast, size_t usable_nodes);
// "4 copies, predicted best for 10.0 MiB on 4 nodes".
std::string ToText(const CopiesChoice& choice);

struct CopiesRequest {
  uint64_t seed = 0;  // As in PlacementRequest.
  // The current holder of each stripe position, copy by copy, the first copy first; kNoNode where
  // there is none.
  Segment holders;
  uint32_t copies = 1;             // Wanted for each position, on nodes that stay.
  std::vector<NodeId> leaving{};   // Holders that do not count.
  uint64_t needed_bytes = 0;       // Per position. A node with less room is skipped.
  std::vector<NodeId> excluded{};  // Found full.
  std::vector<NodeId> writers{};   // Nodes whose links carry what is written to the file.
};

struct CopiesPlan {
  Segment holders;      // The requested holders, then the new ones; none is removed.
  uint32_t copies = 0;  // On nodes that stay, at the position with the fewest.
  // Why there are fewer than wanted, and which nodes were skipped; empty if all are there.
  std::string reason;
};

// A stripe with more nodes than copies keeps its copies within the stripe: those of each position
// go to the next nodes, so that no file grows wider. Otherwise the preference is: a node without
// any part of the segment, then the next nodes in the stripe, then the most free space (by powers
// of two, so that not all files choose the same node), then the order of the seed. Each copy is
// fetched from the one before it. Copies on writers' nodes come last, since nobody fetches from the
// last.
CopiesPlan PlanCopies(const ClusterView& view, const CopiesRequest& request);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_COPIES_H_
