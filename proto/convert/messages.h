// Requests and replies as protobuf messages, one to one (common/model/messages.h says what they
// mean).
//
// Precondition of ToProto: `out` is fresh. FromProto trusts nothing: an alternative or enum value
// that this version does not know, text or a list that is too long, a number that is out of range
// or a missing part is InvalidArgument and names the field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_MESSAGES_H_
#define MOSA_PROTO_CONVERT_MESSAGES_H_

#include "common/base/status.h"
#include "common/model/messages.h"
#include "mosa/v1/session.pb.h"

namespace mosa {

void ToProto(const Request& request, v1::Request* out);
void ToProto(const Reply& reply, v1::Reply* out);

Result<Request> FromProto(const v1::Request& request);
Result<Reply> FromProto(const v1::Reply& reply);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_MESSAGES_H_
