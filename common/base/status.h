// The error type of every library: `Status` and `Result<T>`, with two macros to pass errors on.
//
// Both are nodiscard. Choose the code by what the caller should do next (ARCHITECTURE.md,
// "Errors"). Only this header includes absl's status headers, so the error type can still be
// replaced.
#ifndef MOSA_COMMON_BASE_STATUS_H_
#define MOSA_COMMON_BASE_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mosa {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using Result = absl::StatusOr<T>;

using absl::AbortedError;
using absl::AlreadyExistsError;
using absl::DataLossError;
using absl::DeadlineExceededError;
using absl::FailedPreconditionError;
using absl::InternalError;
using absl::InvalidArgumentError;
using absl::NotFoundError;
using absl::OkStatus;
using absl::PermissionDeniedError;
using absl::ResourceExhaustedError;
using absl::UnauthenticatedError;
using absl::UnavailableError;
using absl::UnimplementedError;

// The message of an error. (Distributions build absl with their own string_view; only this function
// meets that type.)
inline std::string MessageOf(const Status& status) {
  return std::string(status.message().data(), status.message().size());
}

}  // namespace mosa

#define MOSA_STATUS_CONCAT_(a, b) a##b
#define MOSA_STATUS_NAME_(a, b) MOSA_STATUS_CONCAT_(a, b)

// If `expression` (a Status) is an error, returns it from the enclosing function.
#define MOSA_RETURN_IF_ERROR(expression)        \
  do {                                          \
    ::mosa::Status mosa_status_ = (expression); \
    if (!mosa_status_.ok()) [[unlikely]]        \
      return mosa_status_;                      \
  } while (false)

// Evaluates `expression` (a Result<T>). Returns its error, or moves its value into `declaration`.
#define MOSA_ASSIGN_OR_RETURN(declaration, expression) \
  MOSA_ASSIGN_OR_RETURN_(MOSA_STATUS_NAME_(mosa_result_, __LINE__), declaration, expression)
#define MOSA_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) [[unlikely]]                                \
    return std::move(result).status();                          \
  declaration = *std::move(result)

#endif  // MOSA_COMMON_BASE_STATUS_H_
