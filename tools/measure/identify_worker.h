// What `mosa identify`, `mosa envelope` and `mosa capacity` start on each host: it says what the
// host is, sends and receives, and does to files what it is told, timed.
#ifndef MOSA_TOOLS_MEASURE_IDENTIFY_WORKER_H_
#define MOSA_TOOLS_MEASURE_IDENTIFY_WORKER_H_

#include <sys/types.h>

#include <string>

#include "common/base/status.h"

namespace mosa::cli {

// Until standard input ends. `parent` is the process with which this one ends; 0: none. Enters
// `net_namespace` first; empty: stays where it is.
Status ServeAsIdentifyWorker(pid_t parent, const std::string& net_namespace);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_WORKER_H_
