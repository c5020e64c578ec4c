#include "client-sai/fuse/to_errno.h"

#include <cerrno>

namespace mosa::sai {

namespace {

int CodeToErrno(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return EINVAL;
    case StatusCode::kNotFound:
      return ENOENT;
    case StatusCode::kAlreadyExists:
      return EEXIST;
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated:
      return EACCES;
    case StatusCode::kResourceExhausted:
      return ENOSPC;
    case StatusCode::kDeadlineExceeded:
      return ETIMEDOUT;
    case StatusCode::kCancelled:
      return EINTR;
    case StatusCode::kUnimplemented:
      return EOPNOTSUPP;
    default:
      return EIO;
  }
}

}  // namespace

int ToErrno(const Failure& failure) {
  switch (failure.reason) {
    case ErrorReason::kNone:
      return CodeToErrno(failure.code);
    case ErrorReason::kNoEntry:
      return ENOENT;
    case ErrorReason::kExists:
      return EEXIST;
    case ErrorReason::kNotDirectory:
      return ENOTDIR;
    case ErrorReason::kIsDirectory:
      return EISDIR;
    case ErrorReason::kNotEmpty:
      return ENOTEMPTY;
    case ErrorReason::kNameTooLong:
      return ENAMETOOLONG;
    case ErrorReason::kTooManyLinks:
      return EMLINK;
    case ErrorReason::kNotPermitted:
      return EPERM;
    case ErrorReason::kAccessDenied:
      return EACCES;
    case ErrorReason::kInvalid:
      return EINVAL;
    case ErrorReason::kNoSpace:
      return ENOSPC;
    case ErrorReason::kTooBig:
      return EFBIG;
    case ErrorReason::kRange:
      return ERANGE;
    case ErrorReason::kArgumentTooBig:
      return E2BIG;
    case ErrorReason::kNoAttribute:
      return ENODATA;
    case ErrorReason::kWouldBlock:
      return EAGAIN;
    case ErrorReason::kInterrupted:
      return EINTR;
    case ErrorReason::kDeadlock:
      return EDEADLK;
    case ErrorReason::kNoLocks:
      return ENOLCK;
    case ErrorReason::kStale:
      return ESTALE;
    case ErrorReason::kBusy:
      return EBUSY;
    case ErrorReason::kUnsupported:
      return EOPNOTSUPP;
    case ErrorReason::kNodeLost:
    case ErrorReason::kCorrupt:
      return EIO;
    case ErrorReason::kTimedOut:
      return ETIMEDOUT;
    case ErrorReason::kQuota:
      return EDQUOT;
  }
  return EIO;
}

}  // namespace mosa::sai
