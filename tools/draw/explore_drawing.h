// Explorations as pictures, after Figures 8, 9 and 11 of the Provisioning paper: each a page, as
// SVG. Pure.
#ifndef MOSA_TOOLS_DRAW_EXPLORE_DRAWING_H_
#define MOSA_TOOLS_DRAW_EXPLORE_DRAWING_H_

#include <string>

#include "tools/forecast/explore_output.h"

namespace mosa::cli {

// A row for each dimension, with time, cost, and energy if it counts, over its values: a curve for
// each value of the dimension that matters most beside it, where all others are as is best. A bar
// is the interval. A hollow point says that what was pruned there may be better; a "^" that all
// was, and what its bound is; an "x" at the bottom that all that was simulated there fails. Between
// values nothing is joined across one where nothing is known to end well. Precondition: some point
// ends well, and there is a dimension.
std::string DrawCurves(const Exploration& exploration);

// Time over cost, and over energy if it counts, of all that was simulated: the front numbered, with
// its intervals, and shaded what cannot be told apart from the fastest. Below it the front in
// words, and how many others there are. Precondition: some point ends well.
std::string DrawFront(const Exploration& exploration);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_EXPLORE_DRAWING_H_
