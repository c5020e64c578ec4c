// Finds which deployment pays for a workflow with its hints: the fastest of an explored space
// (explorer.h), compared with the present one, and cheaper ones that cannot be told apart from it.
//
// An exploration simulates each point with one place for each file to begin, so among many similar
// points it finds the luckiest. The finalists are therefore drawn again, with new places, like
// hints (search.h), and judged by those draws. Pure.
#ifndef MOSA_PREDICTOR_ADVISE_DEPLOYMENTS_H_
#define MOSA_PREDICTOR_ADVISE_DEPLOYMENTS_H_

#include <cstddef>
#include <vector>

#include "predictor/advise/search.h"
#include "predictor/explore/explorer.h"
#include "predictor/explore/space.h"

namespace mosa::predict {

// Returns numbers of hosts up to the present one that still have enough nodes for the copies, chunk
// sizes, stripe widths and the default placement. The deployment's own values are included.
std::vector<Dimension> DefaultSpace(const Configuration& as_is);

// Returns the fastest and the cheapest of the points that cannot be told apart from the best, in
// ascending order.
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
  Deployment best;  // The present one, unless another one pays.
  // Not slower than the best as far as draws tell; the cheapest first.
  std::vector<Deployment> cheaper;
};
// Precondition: all deployments have the same number of draws.
DeploymentAdvice JudgeDeployments(Deployment as_is, std::vector<Deployment> finalists,
                                  const AdviseOptions& options);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_DEPLOYMENTS_H_
