// Files that a traced run wrote several times. Pure.
#ifndef MOSA_PREDICTOR_WORKFLOW_VERSIONS_H_
#define MOSA_PREDICTOR_WORKFLOW_VERSIONS_H_

#include <vector>

#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Returns the outputs that stand for a later version of a traced file: "path#2" beside "path",
// which is the same name in the store. Ascending.
std::vector<PathIndex> LaterVersionsIn(const Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_VERSIONS_H_
