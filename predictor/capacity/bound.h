// What a store was measured to do at most, as a bound of what is simulated of it: a stage whose
// simulated tasks open, create, read or write faster than the store's envelope or capacity has it
// is simulated too fast, or writes to its own hosts, which these do not measure.
//
// A simulated rate is what a stage's tasks move over the time in which any of them has a file open
// for it: it may be too low, never too high. A limit is of one rate alone, whatever else happens
// meanwhile, and it is the upper end of what was measured: a rate below all limits may still be
// too fast.
//
// Pure.
#ifndef MOSA_PREDICTOR_CAPACITY_BOUND_H_
#define MOSA_PREDICTOR_CAPACITY_BOUND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/capacity/capacity.h"
#include "predictor/envelope/envelope.h"
#include "predictor/envelope/profile.h"

namespace mosa::predict {

struct RateLimit {
  std::string name;  // "1-to-1 read bandwidth".
  bool is_input = true;
  bool is_bandwidth = false;   // Bytes; else files.
  bool is_only_named = false;  // Opens and creates, which move no byte.
  double amount = 0;           // All tasks of the stage together, above 0.
  double most = 0;             // Per second, all clients together.
};

// By the rates of that many clients and fewer: the highest of any file size. FailedPrecondition:
// there were never as many. Precondition: clients > 0.
Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Envelope& envelope,
                                        uint32_t clients);
// By the rates of only reads and only writes, of sizes with both seeds. Files per second are bound
// where a size was measured that is not above the smallest file (or a page), since a file takes one
// operation at least; bytes where one was that is not below what is asked for at once.
// FailedPrecondition: there were never as many clients, or it does not say how many.
Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Capacity& capacity,
                                        uint32_t clients);

struct OpenSpan {
  Time begin;
  Time end;
};
// The time in which any task has a file open, and the most tasks that have one at once.
struct OpenTime {
  double seconds = 0;
  uint32_t tasks_max = 0;
};
OpenTime OpenTimeOf(const std::vector<std::vector<OpenSpan>>& by_task);

// Shorter is no time for a rate.
inline constexpr double kOpenSecondsMin = 0.02;

// What all tasks of a stage do in one direction.
struct StageTransfer {
  bool is_input = true;
  double seconds = 0;    // As of OpenTime.
  double own_bytes = 0;  // Read on the task's own host or in its pages, which nobody measures.
};
struct Excess {
  RateLimit limit;
  double simulated = 0;  // Per second.
};
// What is exceeded, the furthest above its limit first; nothing of less than kOpenSecondsMin. All
// of the own bytes may be of any one kind of reads, and which files they are of is not known: then
// reads have no files per second.
std::vector<Excess> ExcessesOf(const std::vector<RateLimit>& limits, const StageTransfer& transfer);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_BOUND_H_
