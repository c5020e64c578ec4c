// Maps an error to a program's exit code by what the caller should do next (ARCHITECTURE.md,
// "Errors"). 0: success. 2: fix the command. 3: the state of the system forbids it. 4: no room. 5:
// try again later. 6: bytes are lost or damaged. 7: `mosa compare` worked and found a difference
// from the prediction. 70: a bug in Mosa.
#ifndef MOSA_COMMON_BASE_EXIT_CODE_H_
#define MOSA_COMMON_BASE_EXIT_CODE_H_

#include "common/base/status.h"

namespace mosa {

inline constexpr int kExitAnomaly = 7;

constexpr int ToExitCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return 2;
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated:
    case StatusCode::kUnimplemented:
      return 3;
    case StatusCode::kResourceExhausted:
      return 4;
    case StatusCode::kUnavailable:
    case StatusCode::kAborted:
    case StatusCode::kCancelled:
    case StatusCode::kDeadlineExceeded:
      return 5;
    case StatusCode::kDataLoss:
      return 6;
    default:
      return 70;
  }
}

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_EXIT_CODE_H_
