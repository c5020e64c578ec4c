#include "common/base/errno_status.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace mosa {
namespace {

StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return StatusCode::kResourceExhausted;
    case ENOENT:
    case ENXIO:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return StatusCode::kPermissionDenied;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case EINVAL:
    case EFBIG:
    case ENAMETOOLONG:
      return StatusCode::kInvalidArgument;
    case EIO:
      return StatusCode::kDataLoss;
    case EOPNOTSUPP:
    case ENOSYS:
      return StatusCode::kUnimplemented;
    case ETIMEDOUT:
    case EAGAIN:
      return StatusCode::kDeadlineExceeded;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENOTCONN:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRINUSE:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

Status ErrnoStatus(int error_number, std::string_view what) {
  return Status(CodeOf(error_number),
                fmt::format("{}: {}", what, std::generic_category().message(error_number)));
}

}  // namespace mosa
