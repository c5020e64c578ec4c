// Where a configuration puts classes of a workflow's files, as if the workflow said it of each
// file. A class is a glob below the run's directory, ":projected/*.fits", or what the tasks of a
// stage write, "@project" (configuration.h). What a traced run wrote later of a file (versions.h)
// is of no class: on a store it lies where the file was made.
#ifndef MOSA_PREDICTOR_RUN_CLASS_PLACEMENT_H_
#define MOSA_PREDICTOR_RUN_CLASS_PLACEMENT_H_

#include "common/base/status.h"
#include "predictor/model/configuration.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// The workflow whose outputs have these placements, in the place of the placement and the pattern
// that it says or its graph suggests; what else is said of them stays. InvalidArgument, one
// sentence: a glob that is none, a class without a file on the store, a file of two classes.
Result<Workflow> WithPlacements(const Workflow& workflow, const Configuration& configuration);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_CLASS_PLACEMENT_H_
