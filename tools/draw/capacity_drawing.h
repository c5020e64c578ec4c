// Figures 2 to 5 of Fighting with Unknowns for one store, each a page.
#ifndef MOSA_TOOLS_DRAW_CAPACITY_DRAWING_H_
#define MOSA_TOOLS_DRAW_CAPACITY_DRAWING_H_

#include <string>

#include "common/base/status.h"

namespace mosa::cli {

// Writes ratios.svg, factors.svg and mixes.svg into `directory`, which is made if it is absent;
// what was not checked is left out. FailedPrecondition if the results have no size with both seeds.
Status PlotCapacity(const std::string& file, const std::string& directory);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_CAPACITY_DRAWING_H_
