// Where the files of a planned run go: as hints for the store, and roughly, for estimates. Pure.
#ifndef MOSA_PREDICTOR_PLAN_FILE_PLACES_H_
#define MOSA_PREDICTOR_PLAN_FILE_PLACES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "predictor/model/configuration.h"
#include "predictor/plan/estimate.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Where a task's output goes.
enum class Writes : uint8_t {
  kByGraph,   // As without a plan.
  kHere,      // On the host of the task.
  kToReader,  // On the host of its readers, if that is one.
};
constexpr Writes kWays[] = {Writes::kByGraph, Writes::kHere, Writes::kToReader};

using Places = std::vector<HostIndex>;
using Ways = std::vector<Writes>;  // For each file to which the graph gives hints, in order.

// "h1" for the first host.
std::string NameOf(HostIndex host);

// The workflow with its tasks on these hosts. Hints of the workflow itself always win.
Workflow Planned(const Workflow& workflow, const std::vector<FileHints>& by_graph,
                 const Places& division, const Ways& ways, Duration patience);

// Roughly where the files of Planned() go, by file.
std::vector<FilePlace> PlacesOfFiles(const Workflow& workflow, const Configuration& configuration,
                                     const std::vector<FileHints>& by_graph, const Places& division,
                                     const Ways& ways);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_PLAN_FILE_PLACES_H_
