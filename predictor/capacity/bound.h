// What a store was measured to do at most, as a bound of what is simulated of it: a stage whose
// simulated tasks open, create, read or write faster than the store's envelope (paper 004) or
// capacity (paper 003) has it is simulated too fast, or reads what these do not measure, such as
// files of its own host.
//
// A limit is of one rate alone, whatever else happens meanwhile, and it is the upper end of what
// was measured: who stays below all of them may still be too fast.
//
// Pure.
#ifndef MOSA_PREDICTOR_CAPACITY_BOUND_H_
#define MOSA_PREDICTOR_CAPACITY_BOUND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/capacity/capacity.h"
#include "predictor/envelope/envelope.h"
#include "predictor/envelope/profile.h"

namespace mosa::predict {

struct RateLimit {
  std::string name;  // "1-to-1 read bandwidth".
  bool is_input = true;
  bool is_bandwidth = false;  // Bytes; else files.
  double amount = 0;          // Of all tasks of the stage, above 0.
  double most = 0;            // Per second, of all clients together.
};

// By the rates of that many clients: the highest of any file size, and of the measured numbers of
// clients next to it. As Envelope::At(). Precondition: clients > 0.
Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Envelope& envelope,
                                        uint32_t clients);
// By the rates of only reads and only writes, the highest of any size; a file takes one operation
// at least. Of sizes with both seeds.
std::vector<RateLimit> LimitsOf(const StageProfile& stage, const Capacity& capacity);

struct Excess {
  RateLimit limit;
  double simulated = 0;  // Per second.
};
// What a stage exceeds that takes so many seconds for all of its input, and for all of its output:
// the furthest above its limit first.
std::vector<Excess> ExcessesOf(const std::vector<RateLimit>& limits, double input_seconds,
                               double output_seconds);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_BOUND_H_
