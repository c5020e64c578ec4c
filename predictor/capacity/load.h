// What clients do to a store concurrently: I/O of one or more sizes, each with a share of reads
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

// What the shares of a mix refer to.
enum class ShareOf : uint8_t {
  kClients = 1,  // Clients: each does one size.
  kOperations,   // Operations: every client does all sizes.
};
// "clients", "operations".
std::string_view NameOf(ShareOf share_of);

struct CapacityPart {
  uint64_t size_bytes = 0;
  uint32_t read_percent = 100;
  uint32_t share_percent = 100;

  auto operator<=>(const CapacityPart&) const = default;
};

// The shares add up to 100 %.
struct CapacityLoad {
  ShareOf share_of = ShareOf::kClients;
  std::vector<CapacityPart> parts;

  auto operator<=>(const CapacityLoad&) const = default;
  bool is_mix() const { return parts.size() > 1; }
  // Pure reads or pure writes of one size, from which the model is made.
  bool is_seed() const;
};
CapacityLoad OneSize(uint64_t size_bytes, uint32_t read_percent);

// Parses "4K:70%r:0.5,1M:50%r:0.5" (sizes, reads and shares), or "operations=4K:70%r:0.5,..." for
// shares of operations. InvalidArgument says which part is wrong.
Result<CapacityLoad> ParseLoad(std::string_view text);
// The inverse of ParseLoad().
std::string TextOf(const CapacityLoad& load);
// Validates and normalises a load. With one size, shares of operations become shares of clients.
// InvalidArgument if no such load can exist.
Result<CapacityLoad> MakeLoad(ShareOf share_of, std::vector<CapacityPart> parts);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_LOAD_H_
