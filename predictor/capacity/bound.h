// Measured limits of a store, as an upper bound for simulated rates. If a stage's simulated tasks
// open, create, read or write faster than the store's envelope or capacity allows, the simulation
// is too fast, or the stage writes to its own hosts, which neither measures.
//
// A simulated rate is the amount that a stage's tasks move, over the time in which any of them has
// a file open for it. It may be too low, never too high. A limit holds for one rate alone, whatever
// else happens at the same time, and is the upper end of the measured interval. A rate below all
// limits may therefore still be too fast.
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
  bool is_only_named = false;  // Opens and creates, which move no bytes.
  double amount = 0;           // All tasks of the stage together; > 0.
  double most = 0;             // Per second, all clients together.
};

// Limits from the envelope's rates at up to that many clients, the highest of any file size.
// FailedPrecondition: that many clients were not measured. Precondition: clients > 0.
Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Envelope& envelope,
                                        uint32_t clients);
// Limits from the rates of pure reads and pure writes, for sizes with both seeds. Files per second
// are limited if some measured size is at most the smallest file (or a page), since a file takes at
// least one operation. Bytes per second are limited if some measured size is at least one request.
// FailedPrecondition: that many clients were not measured, or their number is not known.
Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Capacity& capacity,
                                        uint32_t clients);

struct OpenSpan {
  Time begin;
  Time end;
};
// The time in which any task has a file open, and the most tasks that have one open at once.
struct OpenTime {
  double seconds = 0;
  uint32_t tasks_max = 0;
};
OpenTime OpenTimeOf(const std::vector<std::vector<OpenSpan>>& by_task);

// Spans shorter than this give no meaningful rate.
inline constexpr double kOpenSecondsMin = 0.02;

// Total transfer of a stage in one direction.
struct StageTransfer {
  bool is_input = true;
  double seconds = 0;  // As in OpenTime.
  // Read on the task's own host or from its page cache; measured limits do not cover these.
  double own_bytes = 0;
};
struct Excess {
  RateLimit limit;
  double simulated = 0;  // Per second.
};
// Returns the exceeded limits, the furthest exceeded first; none below kOpenSecondsMin. Own bytes
// may belong to any kind of read and to any file. They are therefore subtracted from every kind,
// and file rates of reads are not judged.
std::vector<Excess> ExcessesOf(const std::vector<RateLimit>& limits, const StageTransfer& transfer);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_BOUND_H_
