#include "client-sai/sai/failures.h"

#include <utility>

namespace mosa::sai {

Failure Fail(StatusCode code, ErrorReason reason, std::string message) {
  return {code, reason, std::move(message)};
}

Failure FromStatus(const Status& status) {
  ErrorReason reason = ErrorReason::kNone;
  switch (status.code()) {
    case StatusCode::kResourceExhausted:
      reason = ErrorReason::kNoSpace;
      break;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      reason = ErrorReason::kNodeLost;
      break;
    case StatusCode::kDataLoss:
      reason = ErrorReason::kCorrupt;
      break;
    case StatusCode::kPermissionDenied:
    case StatusCode::kNotFound:
      reason = ErrorReason::kStale;
      break;
    case StatusCode::kInvalidArgument:
      reason = ErrorReason::kInvalid;
      break;
    case StatusCode::kUnimplemented:
      reason = ErrorReason::kUnsupported;
      break;
    default:
      break;
  }
  return {status.code(), reason, MessageOf(status)};
}

}  // namespace mosa::sai
