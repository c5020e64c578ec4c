// Where the copies of a file's bytes go beyond the first. Pure: plain values in, a plan out; the
// predictor links the same code.
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

// How many copies of a file of so many bytes pay if every node reads it, as somebody predicts who
// knows how fast nodes and links are (predictor/run/copies_forecast.h). By bytes, ascending.
struct CopiesForBytes {
  uint64_t bytes = 0;
  uint32_t copies = 1;
  bool operator==(const CopiesForBytes&) const = default;
};
using CopiesForecast = std::map<uint32_t, std::vector<CopiesForBytes>>;  // By how many nodes.

// What `replicas=auto` comes to, with the first copy.
struct CopiesChoice {
  uint32_t copies = 1;
  uint32_t nodes = 0;             // As predicted for so many; 0: by the rule.
  std::optional<uint64_t> bytes;  // And for files of so many; absent: the longest, since the size
                                  // is not known yet.
};
// As predicted for the nearest size, by its logarithm, and the nearest number of nodes that is not
// less, or else the greatest: where a node is lost before anybody has predicted for one less, what
// is there stays. Without a forecast by rule: the square root of the nodes, rounded up, and at
// least 2. (With n copies, n links carry the reads and n - 1 transfers make the copies, if one node
// sends them all; their sum is least near the square root.)
CopiesChoice ChooseCopies(const CopiesForecast& forecast, size_t usable_nodes,
                          std::optional<uint64_t> size_bytes);
// The most that it comes to for any size.
uint32_t MostCopies(const CopiesForecast& forecast, size_t usable_nodes);
// "4 copies, predicted best for 10.0 MiB on 4 nodes".
std::string ToText(const CopiesChoice& choice);

struct CopiesRequest {
  uint64_t seed = 0;  // As of PlacementRequest.
  // Which node holds each stripe position now, copy by copy, the first copy first; kNoNode where
  // none does.
  Segment holders;
  uint32_t copies = 1;             // Wanted for each position, on nodes that stay.
  std::vector<NodeId> leaving{};   // Holders that do not count.
  uint64_t needed_bytes = 0;       // Per position. A node with less room is skipped.
  std::vector<NodeId> excluded{};  // Found full.
  std::vector<NodeId> writers{};   // Whose links carry what is written there.
};

struct CopiesPlan {
  Segment holders;      // As asked, with the new ones behind; nobody is taken out.
  uint32_t copies = 0;  // On nodes that stay, at the position that has the fewest.
  std::string reason;   // Why not more, and which nodes were skipped; empty if all are there.
};

// A stripe with more nodes than copies keeps them within it, each position's on the nodes behind
// it, so that no file grows wider. Otherwise a node without any part of the segment is preferred,
// then the nodes behind it in the stripe, then the one with most room (by powers of two, so that
// not everybody takes the same one), then the order of the seed. Each copy is fetched from the one
// before it: those on writers' nodes come last, since nobody fetches from the last.
CopiesPlan PlanCopies(const ClusterView& view, const CopiesRequest& request);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_COPIES_H_
