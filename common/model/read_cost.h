// A scheduler's question before it starts tasks, and the answer: how long each host would take to
// read their inputs. Plain values.
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

// Limits of one query. The manager answers nobody else meanwhile, so they keep it to some 10 ms.
inline constexpr size_t kReadSetsMax = 2'000;
inline constexpr size_t kReadPathsMax = 10'000;       // Over all sets.
inline constexpr size_t kReadAnswersMax = 50'000;     // Sets times hosts.
inline constexpr size_t kReadAddendsMax = 2'000'000;  // Paths of all sets times hosts.
// Limit on the nodes named by the layouts of all files, counted per position and copy. Files after
// the one that reaches the limit are not looked up.
inline constexpr size_t kReadNodesMax = size_t{1} << 17;

struct ReadCostQuery {
  std::vector<std::vector<std::string>> sets;  // Absolute paths in the store.
  // Names of nodes; duplicates count once. Empty: all nodes that respond.
  std::vector<std::string> hosts;
  bool operator==(const ReadCostQuery&) const = default;
};

struct ReadCost {
  Duration time;
  uint64_t local_bytes = 0;   // On the host's own node, or inline in the manager.
  uint64_t remote_bytes = 0;  // On other hosts.
  bool operator==(const ReadCost&) const = default;
};

struct HostReadCost {
  uint32_t host = 0;  // Index into the answer's hosts.
  ReadCost cost;
  bool operator==(const HostReadCost&) const = default;
};
struct ReadSetCost {
  // Set if a file cannot be read; describes the first such file. kArgumentTooBig: this set may
  // succeed in a query of its own.
  std::optional<Failure> failure;
  // All hosts, best first; ties in the order of the answer's hosts.
  std::vector<HostReadCost> hosts;
  bool operator==(const ReadSetCost&) const = default;
};
struct ReadCostAnswer {
  std::vector<std::string> hosts;
  std::vector<ReadSetCost> sets;  // In the order of the question.
  bool operator==(const ReadCostAnswer&) const = default;
};

// A file as readers see it, or why it cannot be read.
struct ReadableFile {
  std::optional<Failure> failure;
  uint64_t size_bytes = 0;
  bool is_inline = false;
  Layout layout;  // All readable copies; `reason` is empty.
  bool operator==(const ReadableFile&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_READ_COST_H_
