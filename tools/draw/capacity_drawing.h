// Draws Figures 2 to 5 of Fighting with Unknowns for one store, each as a page.
#ifndef MOSA_TOOLS_DRAW_CAPACITY_DRAWING_H_
#define MOSA_TOOLS_DRAW_CAPACITY_DRAWING_H_

#include <string>

#include "common/base/status.h"

namespace mosa::cli {

// Writes ratios.svg, factors.svg and mixes.svg into `directory`, which is created if absent; leaves
// out what was not checked. FailedPrecondition if no size in the results has both seeds.
Status PlotCapacity(const std::string& file, const std::string& directory);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_CAPACITY_DRAWING_H_
