// The client session's stream messages <-> values of the model (common/model/session.h).
//
// Precondition of ToProto: `out` is fresh. FromProto as in messages.h: InvalidArgument names the
// field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_SESSION_H_
#define MOSA_PROTO_CONVERT_SESSION_H_

#include <cstddef>
#include <variant>

#include "common/base/status.h"
#include "common/model/residence.h"
#include "common/model/session.h"
#include "common/observe/request_log.h"
#include "mosa/v1/session.pb.h"

namespace mosa {

// Limits of one message to the manager; a longer one ends the stream.
inline constexpr size_t kEnvelopeRequestsMax = 4096;
inline constexpr int kClientMessageBytesMax = 16 << 20;
// And of one to a client: as many replies, each at most a page of a directory or inline bytes.
inline constexpr int kManagerMessageBytesMax = 128 << 20;

struct SessionClose {
  bool operator==(const SessionClose&) const = default;
};
using ClientMessage = std::variant<SessionStart, RequestEnvelope, SessionClose, ResidenceReport>;
// Failure: the session is refused.
using ManagerMessage = std::variant<SessionReady, ReplyEnvelope, Push, Failure, ResidenceQuery>;

void ToProto(const ClientMessage& message, v1::ClientMessage* out);
void ToProto(const RequestEnvelope& envelope, v1::ClientMessage* out);
void ToProto(const ManagerMessage& message, v1::ManagerMessage* out);

// Requests on behalf of what; goes beside the value, since no decision depends on it.
void SetSpan(SpanContext span, v1::ClientMessage* out);
SpanContext SpanOf(const v1::ClientMessage& message);

Result<ClientMessage> FromProto(const v1::ClientMessage& message);
Result<ManagerMessage> FromProto(const v1::ManagerMessage& message);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_SESSION_H_
