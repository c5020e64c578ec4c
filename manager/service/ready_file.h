// How a daemon tells whoever started it that it serves, and where.
#ifndef MOSA_MANAGER_SERVICE_READY_FILE_H_
#define MOSA_MANAGER_SERVICE_READY_FILE_H_

#include <string>

#include "common/base/status.h"

namespace mosa::manager {

// Writes {"address":"host:port","pid":N} to `path`, whole or not at all. FailedPrecondition if the
// directory cannot be written.
Status WriteReadyFile(const std::string& path, const std::string& address);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_READY_FILE_H_
