// The failures that a mount answers with.
#ifndef MOSA_CLIENT_SAI_SAI_FAILURES_H_
#define MOSA_CLIENT_SAI_SAI_FAILURES_H_

#include <string>

#include "client-sai/core/outcome.h"
#include "common/base/status.h"

namespace mosa::sai {

Failure Fail(StatusCode code, ErrorReason reason, std::string message);
// The failure that a node's answer stands for.
Failure FromStatus(const Status& status);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_FAILURES_H_
