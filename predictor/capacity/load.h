// What clients do to a store at the same time: I/O of one or more sizes, each with a share of reads
// (Fighting with Unknowns, section 2). Plain values; pure.
#ifndef MOSA_PREDICTOR_CAPACITY_LOAD_H_
#define MOSA_PREDICTOR_CAPACITY_LOAD_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace mosa::predict {

// What the parts of a mix share out.
enum class ShareOf : uint8_t {
  kClients = 1,  // The clients, each of which does one size.
  kOperations,   // All operations: every client does all sizes.
};
// "clients", "operations".
std::string_view NameOf(ShareOf share_of);

struct CapacityPart {
  uint64_t size_bytes = 0;
  uint32_t read_percent = 100;
  uint32_t share_percent = 100;

  auto operator<=>(const CapacityPart&) const = default;
};

// Shares are 100 % together.
struct CapacityLoad {
  ShareOf share_of = ShareOf::kClients;
  std::vector<CapacityPart> parts;

  auto operator<=>(const CapacityLoad&) const = default;
  bool is_mix() const { return parts.size() > 1; }
  // Only reads or only writes of one size: what the model is made of.
  bool is_seed() const;
};
CapacityLoad OneSize(uint64_t size_bytes, uint32_t read_percent);

// "4K:70%r:0.5,1M:50%r:0.5": sizes, reads and shares; "operations=4K:70%r:0.5,..." for shares of
// operations. InvalidArgument says which part is wrong.
Result<CapacityLoad> ParseLoad(std::string_view text);
// As ParseLoad() reads it.
std::string TextOf(const CapacityLoad& load);
// What is parsed and read. With one size, shares of operations are those of clients.
// InvalidArgument if there can be none such.
Result<CapacityLoad> MakeLoad(ShareOf share_of, std::vector<CapacityPart> parts);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_LOAD_H_
