// Which deployment pays for a workflow with its hints: the fastest of a space that was explored
// (explorer.h), compared with the one that is there, and those that cost less and cannot be told
// apart from it.
//
// An exploration finds the best of many as measured, with one place for each file to begin: of many
// that are alike it finds the luckiest. So the finalists are drawn again, places and all, as hints
// are (search.h), and judged by that. Pure.
#ifndef MOSA_PREDICTOR_ADVISE_DEPLOYMENTS_H_
#define MOSA_PREDICTOR_ADVISE_DEPLOYMENTS_H_

#include <cstddef>
#include <vector>

#include "predictor/advise/search.h"
#include "predictor/explore/explorer.h"
#include "predictor/explore/space.h"

namespace mosa::predict {

// Hosts from one, or as many as copies need nodes, to those that are there, chunk sizes, stripe
// widths, the default placement: with the deployment's own among them.
std::vector<Dimension> DefaultSpace(const Configuration& as_is);

// Those that cannot be told apart from the best, the fastest and the cheapest of them; by point.
std::vector<size_t> Finalists(const std::vector<Point>& points,
                              const std::vector<Explored>& explored);

struct Deployment {
  Configuration configuration;
  std::vector<TrialOutcome> draws;  // Draw 0 first.
  // Set by JudgeDeployments():
  RunTime run;
  double node_hours = 0;
  Gain over_as_is;
};

struct DeploymentAdvice {
  Deployment as_is;
  Deployment best;                  // As it is, unless another one pays.
  std::vector<Deployment> cheaper;  // Not told apart from the best; the cheapest first.
};
// Precondition: the same number of draws of all.
DeploymentAdvice JudgeDeployments(Deployment as_is, std::vector<Deployment> finalists,
                                  const AdviseOptions& options);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_DEPLOYMENTS_H_
