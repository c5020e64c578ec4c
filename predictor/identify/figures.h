// The figures of a platform that probes tell: what is guessed of them before, and which of them go
// together, because nothing that a program sees tells them apart.
#ifndef MOSA_PREDICTOR_IDENTIFY_FIGURES_H_
#define MOSA_PREDICTOR_IDENTIFY_FIGURES_H_

#include <string>
#include <vector>

#include "predictor/model/platform.h"

namespace mosa::predict {

// Guesses for every figure, of some machine: right to a factor of three or so, with nothing said of
// machine and date. What is measured replaces them.
Platform ReferencePlatform();

struct FigureGroup {
  const char* name;  // Names the first, as in the file.
  // They keep their ratios. The first is the one that is reported.
  std::vector<double*> (*slots)(Platform& platform);
};

// What probes of files tell, and what runs of tasks tell.
const std::vector<FigureGroup>& StoreFigures();
const std::vector<FigureGroup>& RunnerFigures();

// `platform` with each group times its factor. Precondition: as many factors as groups.
Platform Scaled(const Platform& platform, const std::vector<FigureGroup>& groups,
                const std::vector<double>& factors);

// Every Cost of a platform by the name of its `ns_per_call`, without that: "client.send".
std::vector<std::pair<std::string, Cost*>> CostsOf(Platform& platform);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_FIGURES_H_
