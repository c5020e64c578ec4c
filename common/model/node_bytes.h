// Counts how many of a file's bytes each node holds. Pure.
#ifndef MOSA_COMMON_MODEL_NODE_BYTES_H_
#define MOSA_COMMON_MODEL_NODE_BYTES_H_

#include <cstdint>
#include <vector>

#include "common/model/ids.h"
#include "common/model/layout.h"

namespace mosa {

struct NodeBytes {
  NodeId node;
  uint64_t bytes = 0;
  uint32_t positions = 0;  // Stripe positions of the first segment that hold bytes.
};
// Ascending by node. Bytes for which a node is named twice count once. Precondition:
// layout.chunk_bytes > 0.
std::vector<NodeBytes> BytesByNode(const Layout& layout, uint64_t size_bytes);

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_NODE_BYTES_H_
