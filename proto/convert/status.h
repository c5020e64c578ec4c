// Errors across processes: Status <-> Failure (a value of the model) <-> grpc::Status, each
// translation in one place. The reason (what errno a program sees) travels along in all three.
//
// Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_STATUS_H_
#define MOSA_PROTO_CONVERT_STATUS_H_

#include <grpcpp/support/status.h>

#include "common/base/status.h"
#include "common/model/messages.h"

namespace mosa {

// Attaches the reason to an error; ReasonOf finds it again, kNone if there is none.
Status WithReason(Status status, ErrorReason reason);
ErrorReason ReasonOf(const Status& status);

// Precondition: `status` is an error.
Failure FailureOf(const Status& status);
Status StatusOf(const Failure& failure);

// Codes are equal on both sides; a code that nobody defined becomes kUnknown.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_STATUS_H_
