// The side file of a workload: what each task does with its files, one operation after the other.
// JSON:
//
//   {"mosa_operations": 1,
//    "tasks": [{"id": "sort", "files": ["in", "out"],
//               "operations": ["2500000 r 0 0 1048576",    # after 2.5 ms of computing: files[0],
//                              "0 d 1",                     # the first 1 MiB; removes "out" if
//                              "0 w 1 0 65536",             # present, and writes 64 KiB of it;
//                              "90000 c"]}]}                # computes at the end
//
// Pure: text in, operations or faults out.
#ifndef MOSA_PREDICTOR_WORKFLOW_OPERATIONS_H_
#define MOSA_PREDICTOR_WORKFLOW_OPERATIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "predictor/workflow/workflow.h"

namespace mosa::predict {

inline constexpr int kOperationsVersion = 1;

// Sets Task::operations of the tasks in the text. Returns one sentence per fault; if there are any,
// the workflow must not be used. A task may read only its inputs and outputs, and write and remove
// only its outputs; known file sizes must not be exceeded. A remove must come before all its other
// operations on the file.
std::vector<std::string> AddOperations(std::string_view text, Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_OPERATIONS_H_
