// Rng: SplitMix64, a small deterministic generator. Seed it from (cluster seed, subject of the
// decision), so that decisions do not influence one another. Not for secrets. One owner, one
// thread.
#ifndef MOSA_COMMON_BASE_RNG_H_
#define MOSA_COMMON_BASE_RNG_H_

#include <cstdint>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace mosa {

__extension__ typedef unsigned __int128 Wide;

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    const uint64_t value = Mix64(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return value;
  }

  // Returns a number in [0, limit). The bias is negligible for limits below 2^32. Precondition:
  // limit > 0.
  uint64_t Below(uint64_t limit) {
    MOSA_CHECK(limit > 0);
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * limit) >> 64);
  }

  // True with probability per_mille / 1000.
  bool Chance(uint64_t per_mille) { return Below(1000) < per_mille; }

 private:
  uint64_t state_;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_RNG_H_
