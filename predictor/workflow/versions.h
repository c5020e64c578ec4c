// Files that a traced run wrote more than once. Pure.
#ifndef MOSA_PREDICTOR_WORKFLOW_VERSIONS_H_
#define MOSA_PREDICTOR_WORKFLOW_VERSIONS_H_

#include <vector>

#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Outputs that are taken for what another task of a traced run wrote of a file: "path#2" beside
// "path", the same name on the store. Ascending.
std::vector<PathIndex> LaterVersionsIn(const Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_VERSIONS_H_
