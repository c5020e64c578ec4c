// The process that `mosa identify`, `mosa envelope` and `mosa capacity` start on each host: it
// reports what the host is, sends and receives, and operates on files as it is told, timed.
#ifndef MOSA_TOOLS_MEASURE_IDENTIFY_WORKER_H_
#define MOSA_TOOLS_MEASURE_IDENTIFY_WORKER_H_

#include <sys/types.h>

#include <string>

#include "common/base/status.h"

namespace mosa::cli {

// Serves until standard input ends. This process ends together with `parent`; 0: with none. Enters
// `net_namespace` first; empty: stays where it is.
Status ServeAsIdentifyWorker(pid_t parent, const std::string& net_namespace);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_WORKER_H_
