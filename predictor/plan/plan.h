// A plan of a run: for each task a host, for files hints, and what the run is predicted to take.
// `mosa plan` writes it; `mosa run --plan` and `mosa predict --plan` follow it. JSON; see
// docs/reference/formats.md.
#ifndef MOSA_PREDICTOR_PLAN_PLAN_H_
#define MOSA_PREDICTOR_PLAN_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/model/draws.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

inline constexpr int kPlanVersion = 1;

struct PlannedTask {
  std::string id;
  std::string host;    // One of Plan::hosts.
  double start_s = 0;  // Predicted, from the beginning of the run.
  double end_s = 0;
  double patience_s = 0;  // How long it waits for a slot there, once it is ready.
};

struct Plan {
  std::string workflow;
  std::string configuration;       // As ToText(Configuration) writes it.
  std::vector<std::string> hosts;  // "h1", ...; hints name them, too.
  // Medians over draws. Times of tasks and bytes on nodes are those of draw 0, as measured.
  double seconds = 0;
  std::optional<Interval<double>> seconds_interval;
  double unplanned_seconds = 0;
  std::string unplanned_failure;  // Not empty: without the plan the run fails in every draw.
  double gain_s = 0;              // Compared draw by draw.
  std::optional<Interval<double>> gain_interval_s;
  double link_bytes = 0;
  double unplanned_link_bytes = 0;
  std::map<std::string, uint64_t> store_bytes_max;  // By host.
  // Empty: nothing that was tried is faster than tasks that go where their data is.
  std::vector<PlannedTask> tasks;
  bool reads_ahead = false;  // As in Workflow.
  // False: streams are plain files (WithoutStreams()), as they are where the plan was made.
  bool streams = true;
  std::map<std::string, HintMap> files;  // Hints for speed by path; a file without any has none.
};

std::string ToJsonText(const Plan& plan);
// InvalidArgument: one sentence.
Result<Plan> ReadPlan(std::string_view text);

// Makes the workflow follow the plan on hosts with these names: the plan's first host is the first
// of them, and so on. The workflow's own hints win. An empty plan changes nothing. Returns the
// files of the plan that no task of the workflow writes. FailedPrecondition, with the workflow as
// it was: the plan is of another workflow or of more hosts.
Result<std::vector<std::string>> ApplyPlan(const Plan& plan, const std::vector<std::string>& hosts,
                                           Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_PLAN_PLAN_H_
