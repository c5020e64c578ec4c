// Modes: whether the times of one class of requests have two modes with almost nothing in between:
// quick requests, and others that wait for something with a delay of its own, such as a retry after
// a fixed time. In Provisioning, section 5.1, P3, the retry of connections was found as "a bi-modal
// distribution".
//
// A gap is a range from some duration to three times as much. Twenty requests or more have two
// modes if each side of a gap has at least five of them and a hundredth of all, and the gap itself
// has less than a tenth of the smaller side. Of several gaps, the one with the fewest requests
// counts; then the one with the larger smaller side. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_MODES_H_
#define MOSA_PREDICTOR_COMPARE_MODES_H_

#include <optional>
#include <string>

#include "common/base/duration_counts.h"

namespace mosa::predict {

struct Modes {
  double slow_share = 0;           // Share of the requests.
  double quick_s = 0, slow_s = 0;  // Medians of the two modes.
};

std::optional<Modes> ModesOf(const DurationCounts& times);

// "6 % took about 1.01 s, the others about 3.1 ms".
std::string Say(const Modes& modes);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_MODES_H_
