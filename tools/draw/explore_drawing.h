// Explorations as pictures, after Figures 8, 9 and 11 of the Provisioning paper: each a page, as
// SVG. Pure.
#ifndef MOSA_TOOLS_DRAW_EXPLORE_DRAWING_H_
#define MOSA_TOOLS_DRAW_EXPLORE_DRAWING_H_

#include <string>

#include "tools/forecast/explore_output.h"

namespace mosa::cli {

// One row per dimension, with time, cost and, if it counts, energy over its values. Each curve is
// for a value of the most important other dimension, with all further dimensions at their best. A
// bar is the interval. A hollow point says that a pruned point there may be better; a "^" that all
// points there were pruned, and their bound; an "x" at the bottom that all simulated points there
// fail. Curves do not join values across one without a point known to succeed. Precondition: some
// point succeeds, and there is a dimension.
std::string DrawCurves(const Exploration& exploration);

// Time over cost, and over energy if it counts, of all simulated points: the front is numbered,
// with its intervals, and what cannot be told apart from the fastest is shaded. Below it the front
// in words, and the number of other points. Precondition: some point succeeds.
std::string DrawFront(const Exploration& exploration);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_EXPLORE_DRAWING_H_
