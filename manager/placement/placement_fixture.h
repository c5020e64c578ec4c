// Test helper: builds cluster views for placement tests.
#ifndef MOSA_MANAGER_PLACEMENT_PLACEMENT_FIXTURE_H_
#define MOSA_MANAGER_PLACEMENT_PLACEMENT_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "manager/placement/policy.h"

namespace mosa::manager {

// Nodes 1, 2, ... named a, b, ... with these free bytes. Negative: accepts nothing new.
inline ClusterView View(const std::vector<int64_t>& free_bytes) {
  ClusterView view;
  for (size_t i = 0; i < free_bytes.size(); ++i)
    view.nodes.push_back(
        {.node = NodeId(static_cast<uint32_t>(i + 1)),
         .name = std::string(1, static_cast<char>('a' + i)),
         .free_bytes = free_bytes[i] < 0 ? 0 : static_cast<uint64_t>(free_bytes[i]),
         .accepts = free_bytes[i] >= 0});
  return view;
}

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_PLACEMENT_PLACEMENT_FIXTURE_H_
