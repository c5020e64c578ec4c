// What a scheduler asks before it starts tasks, and what it is told: how long reading their inputs
// would take on each host. Plain values.
#ifndef MOSA_COMMON_MODEL_READ_COST_H_
#define MOSA_COMMON_MODEL_READ_COST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/messages.h"

namespace mosa {

// Limits on one question.
inline constexpr size_t kReadSetsMax = 10'000;
inline constexpr size_t kReadPathsMax = 10'000;        // All sets together.
inline constexpr size_t kReadAnswersMax = 1'000'000;   // Sets times hosts.
inline constexpr size_t kReadAddendsMax = 10'000'000;  // Paths of all sets times hosts.
// Nodes that the layouts of its files name, each for each position and copy. The files behind the
// one with which there are so many are not looked up.
inline constexpr size_t kReadNodesMax = size_t{1} << 20;

struct ReadCostQuery {
  std::vector<std::vector<std::string>> sets;  // Absolute paths in the store.
  // Names of nodes, one that is repeated counts once; none: all that answer.
  std::vector<std::string> hosts;
  bool operator==(const ReadCostQuery&) const = default;
};

struct ReadCost {
  Duration time;
  uint64_t local_bytes = 0;   // On the host's own node, or kept by the manager.
  uint64_t remote_bytes = 0;  // On other hosts.
  bool operator==(const ReadCost&) const = default;
};

struct HostReadCost {
  uint32_t host = 0;  // Index into the answer's hosts, from 0.
  ReadCost cost;
  bool operator==(const HostReadCost&) const = default;
};
struct ReadSetCost {
  // The set's first file that cannot be read; kArgumentTooBig: the set alone might be answered.
  std::optional<Failure> failure;
  std::vector<HostReadCost> hosts;  // Every host, best first; equal ones in the answer's order.
  bool operator==(const ReadSetCost&) const = default;
};
struct ReadCostAnswer {
  std::vector<std::string> hosts;
  std::vector<ReadSetCost> sets;  // In the order of the question.
  bool operator==(const ReadCostAnswer&) const = default;
};

// A file as readers find it, or why it cannot be read.
struct ReadableFile {
  std::optional<Failure> failure;
  uint64_t size_bytes = 0;
  bool is_inline = false;
  Layout layout;  // All copies that can be read; without its reason.
  bool operator==(const ReadableFile&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_READ_COST_H_
