#include "proto/convert/session.h"

#include <utility>

#include "proto/convert/fields.h"
#include "proto/convert/messages.h"

namespace mosa {

namespace {

void Put(const SessionStart& value, wire::ClientMessage* out) {
  Write(value, out->mutable_start());
}
void Put(const RequestEnvelope& value, wire::ClientMessage* out) {
  wire::RequestEnvelope* const item = out->mutable_requests();
  item->set_id(value.id.value);
  item->set_answered_below_id(value.answered_below.value);
  item->mutable_requests()->Reserve(static_cast<int>(value.requests.size()));
  for (const Request& request : value.requests) ToProto(request, item->add_requests());
  item->set_expires_ns(value.expires.ns);
  WriteIds(value.abandoned, item->mutable_abandoned_ids());
}
void Put(const SessionClose&, wire::ClientMessage* out) { out->mutable_close(); }
void Put(const ResidenceReport& value, wire::ClientMessage* out) {
  Write(value, out->mutable_residence());
}

void Put(const SessionReady& value, wire::ManagerMessage* out) {
  wire::SessionReady* const item = out->mutable_ready();
  item->set_cluster_seed(value.cluster_seed);
  item->set_cluster_name(value.cluster_name);
  item->set_now_ns(value.now.ns);
  WriteList(value.nodes, item->mutable_nodes());
  item->mutable_file_ids()->set_first_id(value.file_ids.first.value);
  item->mutable_file_ids()->set_count(value.file_ids.count);
  item->set_chunk_bytes_default(value.chunk_bytes_default);
  item->set_inline_bytes_max(value.inline_bytes_max);
  item->set_bulk_key(value.bulk_key);
  item->set_bulk_tls(value.bulk_tls);
  item->set_era(value.era);
  item->set_replies_kept(value.replies_kept);
}
void Put(const Failure& value, wire::ManagerMessage* out) { Write(value, out->mutable_refused()); }
void Put(const ReplyEnvelope& value, wire::ManagerMessage* out) {
  wire::ReplyEnvelope* const item = out->mutable_replies();
  item->set_id(value.id.value);
  item->mutable_replies()->Reserve(static_cast<int>(value.replies.size()));
  for (const Reply& reply : value.replies) ToProto(reply, item->add_replies());
  item->set_now_ns(value.now.ns);
}
void Put(const RecallPush& value, wire::ManagerMessage* out) {
  wire::RecallPush* const item = out->mutable_recall();
  item->set_recall_id(value.recall.value);
  item->set_file_id(value.file.value);
  item->set_kind(static_cast<wire::RecallKind>(value.kind));
}
void Put(const NodesPush& value, wire::ManagerMessage* out) {
  WriteList(value.nodes, out->mutable_nodes()->mutable_nodes());
}
void Put(const GrantRecallPush& value, wire::ManagerMessage* out) {
  out->mutable_grant_recall()->set_node_id(value.node.value);
}
void Put(const SessionEndPush& value, wire::ManagerMessage* out) {
  out->mutable_session_end()->set_reason(value.reason);
}
void Put(const ResidenceQuery& value, wire::ManagerMessage* out) {
  Write(value, out->mutable_residence_query());
}
void Put(const Push& value, wire::ManagerMessage* out) {
  std::visit([out](const auto& push) { Put(push, out); }, value);
}

Result<RequestEnvelope> ReadEnvelope(const wire::RequestEnvelope& in) {
  FieldChecker check;
  RequestEnvelope value;
  value.id = RequestId{in.id()};
  value.answered_below = RequestId{in.answered_below_id()};
  if (!check.Count("requests.requests", in.requests_size(), kEnvelopeRequestsMax)) {
    return check.status();
  }
  value.requests.reserve(static_cast<size_t>(in.requests_size()));
  for (const wire::Request& item : in.requests()) {
    MOSA_ASSIGN_OR_RETURN(Request request, FromProto(item));
    value.requests.push_back(std::move(request));
  }
  value.expires = {in.expires_ns()};
  value.abandoned =
      ReadIds<RequestId>("requests.abandoned_ids", in.abandoned_ids(), kAbandonedMax, check);
  if (!check.ok()) return check.status();
  return value;
}

Result<ReplyEnvelope> ReadEnvelope(const wire::ReplyEnvelope& in) {
  FieldChecker check;
  ReplyEnvelope value;
  value.id = RequestId{in.id()};
  value.now = {in.now_ns()};
  if (!check.Count("replies.replies", in.replies_size(), kEnvelopeRequestsMax)) {
    return check.status();
  }
  value.replies.reserve(static_cast<size_t>(in.replies_size()));
  for (const wire::Reply& item : in.replies()) {
    MOSA_ASSIGN_OR_RETURN(Reply reply, FromProto(item));
    value.replies.push_back(std::move(reply));
  }
  return value;
}

SessionReady Read(const wire::SessionReady& in, FieldChecker& check) {
  return {.cluster_seed = in.cluster_seed(),
          .cluster_name = check.Name("ready.cluster_name", in.cluster_name()),
          .now = {in.now_ns()},
          .nodes = ReadList<NodeAddress>("ready.nodes", in.nodes(), kNodesMax, check),
          .file_ids = {.first = FileId{in.file_ids().first_id()}, .count = in.file_ids().count()},
          .chunk_bytes_default =
              check.Number("ready.chunk_bytes_default", in.chunk_bytes_default(), kFileBytesMax),
          .inline_bytes_max =
              check.Number("ready.inline_bytes_max", in.inline_bytes_max(), kInlineBytesMax),
          .bulk_key = check.Bytes("ready.bulk_key", in.bulk_key(), kOpaqueBytesMax),
          .bulk_tls = in.bulk_tls(),
          .era = in.era(),
          .replies_kept = in.replies_kept()};
}

ManagerMessage ReadMessage(const wire::ManagerMessage& in, FieldChecker& check) {
  switch (in.message_case()) {
    case wire::ManagerMessage::kReady:
      return Read(in.ready(), check);
    case wire::ManagerMessage::kRefused:
      return Read(in.refused(), check);
    case wire::ManagerMessage::kRecall:
      return RecallPush{.recall = RecallId{in.recall().recall_id()},
                        .file = FileId{in.recall().file_id()},
                        .kind = check.Enum("recall.kind", in.recall().kind(), RecallKind::kEntries,
                                           RecallKind::kDelegation)};
    case wire::ManagerMessage::kNodes:
      return NodesPush{ReadList<NodeAddress>("nodes.nodes", in.nodes().nodes(), kNodesMax, check)};
    case wire::ManagerMessage::kGrantRecall:
      return GrantRecallPush{NodeId{in.grant_recall().node_id()}};
    case wire::ManagerMessage::kSessionEnd:
      return SessionEndPush{
          check.Bytes("session_end.reason", in.session_end().reason(), kTextBytesMax)};
    case wire::ManagerMessage::kResidenceQuery:
      return Read(in.residence_query(), check);
    case wire::ManagerMessage::kReplies:  // Read by FromProto itself.
    case wire::ManagerMessage::MESSAGE_NOT_SET:
      break;
  }
  check.Wrong("message", "is of a kind that this version does not know");
  return Failure{};
}

}  // namespace

void ToProto(const ClientMessage& message, v1::ClientMessage* out) {
  std::visit([out](const auto& value) { Put(value, out); }, message);
}

void ToProto(const RequestEnvelope& envelope, v1::ClientMessage* out) { Put(envelope, out); }

void ToProto(const ManagerMessage& message, v1::ManagerMessage* out) {
  std::visit([out](const auto& value) { Put(value, out); }, message);
}

void SetSpan(SpanContext span, v1::ClientMessage* out) {
  out->mutable_requests()->set_trace_id(span.trace);
  out->mutable_requests()->set_span_id(span.span);
}

SpanContext SpanOf(const v1::ClientMessage& message) {
  return {.trace = message.requests().trace_id(), .span = message.requests().span_id()};
}

Result<ClientMessage> FromProto(const v1::ClientMessage& message) {
  FieldChecker check;
  switch (message.message_case()) {
    case v1::ClientMessage::kStart: {
      SessionStart start = Read(message.start(), check);
      if (!check.ok()) return check.status();
      return start;
    }
    case v1::ClientMessage::kRequests:
      return ReadEnvelope(message.requests());
    case v1::ClientMessage::kClose:
      return SessionClose{};
    case v1::ClientMessage::kResidence: {
      ResidenceReport report = Read(message.residence(), check);
      if (!check.ok()) return check.status();
      return report;
    }
    case v1::ClientMessage::MESSAGE_NOT_SET:
      break;
  }
  check.Wrong("message", "is of a kind that this version does not know");
  return check.status();
}

Result<ManagerMessage> FromProto(const v1::ManagerMessage& message) {
  if (message.message_case() == v1::ManagerMessage::kReplies) {
    return ReadEnvelope(message.replies());
  }
  FieldChecker check;
  ManagerMessage value = ReadMessage(message, check);
  if (!check.ok()) return check.status();
  return value;
}

}  // namespace mosa
