// The platform figures that probes determine: initial guesses for them, and which of them vary
// together because nothing a program sees tells them apart.
#ifndef MOSA_PREDICTOR_IDENTIFY_FIGURES_H_
#define MOSA_PREDICTOR_IDENTIFY_FIGURES_H_

#include <string>
#include <vector>

#include "predictor/model/platform.h"

namespace mosa::predict {

// Guesses for every figure, right to a factor of about three; machine and date are left empty.
// Measured figures replace them.
Platform ReferencePlatform();

struct FigureGroup {
  const char* name;  // Name of the first figure, as in the file.
  // These keep their ratios. The first one is reported.
  std::vector<double*> (*slots)(Platform& platform);
};

// The groups that probes of files determine, and those that runs of tasks determine.
const std::vector<FigureGroup>& StoreFigures();
const std::vector<FigureGroup>& RunnerFigures();

// `platform` with each group multiplied by its factor. Precondition: factors.size() ==
// groups.size().
Platform Scaled(const Platform& platform, const std::vector<FigureGroup>& groups,
                const std::vector<double>& factors);

// Every Cost of a platform, with its name: "client.send" for "client.send.ns_per_call".
std::vector<std::pair<std::string, Cost*>> CostsOf(Platform& platform);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_FIGURES_H_
