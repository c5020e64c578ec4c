// What a node counts of its work since it began.
#ifndef MOSA_STORAGE_NODE_ENGINE_NODE_COUNTERS_H_
#define MOSA_STORAGE_NODE_ENGINE_NODE_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace mosa::node {

struct NodeCounters {
  std::atomic<uint64_t> bytes_read_remote{0};
  std::atomic<uint64_t> bytes_written_remote{0};
  std::atomic<uint64_t> bytes_written_local{0};
  std::atomic<uint64_t> descriptors_passed{0};
  std::atomic<uint64_t> measurements{0};  // Rounds of accounting.
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_NODE_COUNTERS_H_
