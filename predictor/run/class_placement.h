// Applies a configuration's placements of file classes to a workflow, as if the workflow gave them
// for each file. A class is a glob below the run's directory, ":projected/*.fits", or what the
// tasks of a stage write, "@project" (configuration.h). Later versions of a traced file
// (versions.h) belong to no class: in the store they lie where the file was made.
#ifndef MOSA_PREDICTOR_RUN_CLASS_PLACEMENT_H_
#define MOSA_PREDICTOR_RUN_CLASS_PLACEMENT_H_

#include "common/base/status.h"
#include "predictor/model/configuration.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Returns the workflow with these placements. They replace an output's own placement and pattern,
// and what the graph suggests; its other hints stay. InvalidArgument, one sentence: a malformed
// glob, an unknown stage, a class without a file on the store, or a file in two classes.
Result<Workflow> WithPlacements(const Workflow& workflow, const Configuration& configuration);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_CLASS_PLACEMENT_H_
