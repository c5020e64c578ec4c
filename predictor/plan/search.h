// Finds a plan for a workflow: which host runs each task, and where files are put.
//
// Candidates are divisions of the tasks among the hosts (partition.h), for several bounds on the
// imbalance, each with several ways to place what the tasks write: by the graph's hints, where it
// is written, or where it will be read. Estimates (estimate.h) put them in order and improve the
// best step by step. The simulator decides: as many candidates, and further steps from the best of
// them, as the workflow's size allows are tried on a few draws, the best on all, and the winner is
// compared with the run without a plan, draw by draw (common random numbers, as in
// advise/search.h). A plan that is not faster is no plan, so following one is never predicted to be
// slower. Pure.
#ifndef MOSA_PREDICTOR_PLAN_SEARCH_H_
#define MOSA_PREDICTOR_PLAN_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "predictor/advise/search.h"
#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"
#include "predictor/plan/plan.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// One simulation to run.
struct PlanTrial {
  std::shared_ptr<const Workflow> workflow;
  uint32_t draw = 0;
  bool wants_prediction = false;
};
struct PlanTrialOutcome {
  TrialOutcome outcome;
  std::shared_ptr<const Prediction> prediction;  // If it was wanted.
};
// Returns the outcomes of these trials, in order.
using SimulatePlans =
    std::function<Result<std::vector<PlanTrialOutcome>>(const std::vector<PlanTrial>&)>;

struct PlanOptions {
  uint32_t draws = 20;  // 0: only draw 0.
  uint64_t seed = 1;
  // Asked before each step with the number of its simulations. True: leave it out, and take the
  // best of what was tried.
  std::function<bool(size_t)> is_too_much = [](size_t) { return false; };
};

// FailedPrecondition: the run would fail with and without a plan. InvalidArgument as Predict(); the
// configuration's system must be wass.
Result<Plan> FindPlan(const Workflow& workflow, const Platform& platform,
                      const Configuration& configuration, const PlanOptions& options,
                      const SimulatePlans& simulate);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_PLAN_SEARCH_H_
