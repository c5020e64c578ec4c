// Modes: whether requests of one class are of two kinds with next to nothing in between: quick
// ones, and others that wait for something with a time of its own, as what is tried again a fixed
// time later. In Provisioning, section 5.1, P3, the retry of connections, was found as "a bi-modal
// distribution".
//
// A gap is a stretch from some duration to three times as much. With twenty requests or more there
// are two kinds if on either side of a gap are five of them and a hundredth of all, and in it less
// than a tenth of the fewer of these. Among several gaps it is the one with least in it; then
// the one with more on the side of fewer. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_MODES_H_
#define MOSA_PREDICTOR_COMPARE_MODES_H_

#include <optional>
#include <string>

#include "common/base/duration_counts.h"

namespace mosa::predict {

struct Modes {
  double slow_share = 0;           // Share of the requests.
  double quick_s = 0, slow_s = 0;  // Medians of either kind.
};

std::optional<Modes> ModesOf(const DurationCounts& times);

// "6 % took about 1.01 s, the others about 3.1 ms".
std::string Say(const Modes& modes);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_MODES_H_
