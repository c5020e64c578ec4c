#include "proto/convert/status.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "common/base/check.h"

namespace mosa {

namespace {

constexpr char kReasonUrl[] = "mosa.v1.FailureReason";
constexpr int kCodeLast = 16;  // google.rpc.Code ends with UNAUTHENTICATED.

std::string ReasonBytes(ErrorReason reason) {
  return std::string(1, static_cast<char>(static_cast<uint8_t>(reason)));
}

ErrorReason ReasonFromBytes(const std::string& bytes) {
  if (bytes.size() != 1) return ErrorReason::kNone;
  const auto value = static_cast<uint8_t>(bytes[0]);
  return value <= static_cast<uint8_t>(kErrorReasonLast) ? static_cast<ErrorReason>(value)
                                                         : ErrorReason::kNone;
}

}  // namespace

Status WithReason(Status status, ErrorReason reason) {
  if (reason != ErrorReason::kNone) {
    status.SetPayload(kReasonUrl, absl::Cord(ReasonBytes(reason)));
  }
  return status;
}

ErrorReason ReasonOf(const Status& status) {
  const auto payload = status.GetPayload(kReasonUrl);
  return payload.has_value() ? ReasonFromBytes(std::string(*payload)) : ErrorReason::kNone;
}

Failure FailureOf(const Status& status) {
  MOSA_CHECK(!status.ok());
  return {.code = status.code(), .reason = ReasonOf(status), .message = MessageOf(status)};
}

Status StatusOf(const Failure& failure) {
  return WithReason(Status(failure.code, failure.message), failure.reason);
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const ErrorReason reason = ReasonOf(status);
  return {static_cast<grpc::StatusCode>(status.code()), MessageOf(status),
          reason == ErrorReason::kNone ? std::string() : ReasonBytes(reason)};
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  // gRPC calls it Unavailable, as if waiting could help.
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      status.error_message().find("certificate verify failed") != std::string::npos) {
    return UnauthenticatedError(
        "the manager has a different cluster secret than this program: give both a --secret that "
        "the same `mosa secret create` made");
  }
  const int code = static_cast<int>(status.error_code());
  return WithReason(
      Status(code >= 1 && code <= kCodeLast ? static_cast<StatusCode>(code) : StatusCode::kUnknown,
             status.error_message()),
      ReasonFromBytes(status.error_details()));
}

}  // namespace mosa
