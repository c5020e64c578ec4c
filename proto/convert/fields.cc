#include "proto/convert/fields.h"

#include <utility>

#include "fmt/format.h"
#include "proto/convert/status.h"

namespace mosa {

std::string FieldChecker::Bytes(std::string_view field, const std::string& value, size_t bytes_max,
                                ErrorReason reason) {
  if (value.size() <= bytes_max) return value;
  Note(fmt::format("{} has {} bytes, at most {} are allowed", field, value.size(), bytes_max),
       reason);
  return {};
}

uint64_t FieldChecker::Number(std::string_view field, uint64_t value, uint64_t value_max) {
  if (value > value_max) {
    Note(fmt::format("{} is {}, at most {} is allowed", field, value, value_max),
         ErrorReason::kInvalid);
  }
  return value;
}

bool FieldChecker::Count(std::string_view field, int count, size_t count_max) {
  if (static_cast<size_t>(count) <= count_max) return true;
  Note(fmt::format("{} has {} entries, at most {} are allowed", field, count, count_max),
       ErrorReason::kInvalid);
  return false;
}

bool FieldChecker::Present(std::string_view field, bool present) {
  if (!present) Note(fmt::format("{} is missing", field), ErrorReason::kInvalid);
  return present;
}

void FieldChecker::Unknown(std::string_view field, int value) {
  Note(fmt::format("{} is {}, which this version does not know", field, value),
       ErrorReason::kInvalid);
}

void FieldChecker::Wrong(std::string_view field, std::string_view what) {
  Note(fmt::format("{} {}", field, what), ErrorReason::kInvalid);
}

void FieldChecker::Note(std::string text, ErrorReason reason) {
  if (status_.ok()) status_ = WithReason(InvalidArgumentError(text), reason);
}

// ---- files

void Write(const Attributes& value, wire::Attributes* out) {
  out->set_type(static_cast<wire::FileType>(value.type));
  out->set_permissions(value.permissions);
  out->set_uid(value.uid);
  out->set_gid(value.gid);
  out->set_link_count(value.link_count);
  out->set_device(value.device);
  out->set_size_bytes(value.size_bytes);
  out->set_allocated_bytes(value.allocated_bytes);
  out->set_access_time_ns(value.access_time.ns);
  out->set_modify_time_ns(value.modify_time.ns);
  out->set_change_time_ns(value.change_time.ns);
  out->set_birth_time_ns(value.birth_time.ns);
  out->set_data_version(value.data_version);
  out->set_shared(value.shared);
  out->set_stream(static_cast<wire::StreamState>(value.stream));
}

Attributes Read(const wire::Attributes& in, FieldChecker& check) {
  return {
      .type = check.Enum("attributes.type", in.type(), FileType::kRegular, FileType::kBlockDevice),
      .permissions = check.Permissions("attributes.permissions", in.permissions()),
      .uid = in.uid(),
      .gid = in.gid(),
      .link_count = in.link_count(),
      .device = in.device(),
      .size_bytes = check.Number("attributes.size_bytes", in.size_bytes()),
      .allocated_bytes = check.Number("attributes.allocated_bytes", in.allocated_bytes()),
      .access_time = {in.access_time_ns()},
      .modify_time = {in.modify_time_ns()},
      .change_time = {in.change_time_ns()},
      .birth_time = {in.birth_time_ns()},
      .data_version = in.data_version(),
      .shared = in.shared(),
      .stream =
          check.Enum("attributes.stream", in.stream(), StreamState::kNone, StreamState::kBroken)};
}

void Write(const Entry& value, wire::Entry* out) {
  out->set_file_id(value.file.value);
  Write(value.attributes, out->mutable_attributes());
}

Entry Read(const wire::Entry& in, FieldChecker& check) {
  check.Present("entry.attributes", in.has_attributes());
  return {.file = FileId{in.file_id()}, .attributes = Read(in.attributes(), check)};
}

void Write(const Segment& value, wire::Segment* out) {
  out->set_begin_bytes(value.begin);
  out->set_width(value.width);
  WriteIds(value.nodes, out->mutable_node_ids());
}

void Write(const Layout& value, wire::Layout* out) {
  out->set_chunk_bytes(value.chunk_bytes);
  out->mutable_segments()->Reserve(static_cast<int>(value.segments.size()));
  for (const Segment& segment : value.segments) Write(segment, out->add_segments());
  out->set_reason(value.reason);
}

Segment Read(const wire::Segment& in, FieldChecker& check) {
  Segment segment{
      .begin = check.Number("segment.begin_bytes", in.begin_bytes(), kFileBytesMax),
      .width = static_cast<uint32_t>(check.Number("segment.width", in.width(), kNodesMax)),
      .nodes = ReadIds<NodeId>("segment.node_ids", in.node_ids(), kNodesMax, check)};
  // Arithmetic on layouts divides by the width and relies on a first copy.
  if (segment.width == 0 || segment.nodes.empty() || segment.nodes.size() % segment.width != 0) {
    check.Wrong("segment.node_ids", fmt::format("has {} nodes, not a multiple of the width {}",
                                                segment.nodes.size(), segment.width));
  }
  return segment;
}

Layout Read(const wire::Layout& in, FieldChecker& check) {
  Layout layout;
  layout.chunk_bytes = check.Number("layout.chunk_bytes", in.chunk_bytes(), kFileBytesMax);
  layout.reason = check.Bytes("layout.reason", in.reason(), kTextBytesMax);
  if (!check.Count("layout.segments", in.segments_size(), kSegmentsMax)) return layout;
  layout.segments.reserve(static_cast<size_t>(in.segments_size()));
  for (const wire::Segment& item : in.segments()) {
    Segment segment = Read(item, check);
    const bool in_order =
        layout.segments.empty() ? segment.begin == 0 : layout.segments.back().begin < segment.begin;
    if (!in_order || segment.begin % kSegmentUnit != 0)
      check.Wrong("layout.segments", "must begin at byte 0 and ascend by whole pages");
    layout.segments.push_back(std::move(segment));
  }
  if (layout.bound() && layout.chunk_bytes == 0) {
    check.Wrong("layout.chunk_bytes", "is 0 though the layout has segments");
  }
  return layout;
}

void Write(const DataAccess& value, wire::DataAccess* out) {
  Write(value.layout, out->mutable_layout());
  out->set_may_write(value.may_write);
  out->set_expires_ns(value.expires.ns);
  out->set_capability(value.capability);
  out->set_is_inline(value.is_inline);
  out->set_inline_data(value.inline_data);
  out->set_inline_valid_bytes(value.inline_valid_bytes);
  out->set_inline_bytes_max(value.inline_bytes_max);
  out->set_lost(value.lost);
  out->set_frozen(value.frozen);
  out->set_copied_eagerly(value.copied_eagerly);
  out->set_close_copies(value.close_copies);
  out->set_generation(value.generation);
  out->set_kept_since(value.kept_since);
  WriteIds(value.empty_nodes, out->mutable_empty_node_ids());
}

DataAccess Read(const wire::DataAccess& in, FieldChecker& check) {
  check.Present("access.layout", in.has_layout());
  return {.layout = Read(in.layout(), check),
          .may_write = in.may_write(),
          .expires = {in.expires_ns()},
          .capability = check.Bytes("access.capability", in.capability(), kOpaqueBytesMax),
          .is_inline = in.is_inline(),
          .inline_data = check.Bytes("access.inline_data", in.inline_data(), kInlineBytesMax),
          .inline_valid_bytes = check.Number("access.inline_valid_bytes", in.inline_valid_bytes()),
          .inline_bytes_max =
              check.Number("access.inline_bytes_max", in.inline_bytes_max(), kInlineBytesMax),
          .lost = in.lost(),
          .frozen = in.frozen(),
          .copied_eagerly = in.copied_eagerly(),
          .close_copies = in.close_copies(),
          .generation = check.Number("access.generation", in.generation()),
          .kept_since = check.Number("access.kept_since", in.kept_since()),
          .empty_nodes =
              ReadIds<NodeId>("access.empty_node_ids", in.empty_node_ids(), kNodesMax, check)};
}

void Write(const Failure& value, wire::Failure* out) {
  out->set_code(static_cast<int32_t>(value.code));
  out->set_reason(static_cast<wire::FailureReason>(value.reason));
  out->set_message(value.message);
}

Failure Read(const wire::Failure& in, FieldChecker& check) {
  return {.code = check.Enum("failure.code", in.code(), StatusCode::kCancelled,
                             StatusCode::kUnauthenticated),
          .reason = check.Enum("failure.reason", in.reason(), ErrorReason::kNone, kErrorReasonLast),
          .message = check.Bytes("failure.message", in.message(), kTextBytesMax)};
}

// ---- nodes and sessions

void Write(const NodeAddress& value, wire::NodeAddress* out) {
  out->set_node_id(value.node.value);
  out->set_name(value.name);
  out->set_address(value.address);
  out->set_socket_path(value.socket_path);
  out->set_host_identity(value.host_identity);
  out->set_incarnation(value.incarnation);
  out->set_state(static_cast<wire::NodeState>(value.state));
}

NodeAddress Read(const wire::NodeAddress& in, FieldChecker& check) {
  return {.node = NodeId{in.node_id()},
          .name = check.Name("node.name", in.name()),
          .address = check.Bytes("node.address", in.address(), kPathBytesMax),
          .socket_path = check.Bytes("node.socket_path", in.socket_path(), kPathBytesMax),
          .host_identity = check.Bytes("node.host_identity", in.host_identity(), kPathBytesMax),
          .incarnation = in.incarnation(),
          .state = check.Enum("node.state", in.state(), NodeState::kLive, NodeState::kDraining)};
}

void Write(const Lock& value, wire::Lock* out) {
  out->set_type(static_cast<wire::LockType>(value.type));
  out->set_begin_bytes(value.begin);
  out->set_last_bytes(value.last);
  out->set_owner(value.owner);
  out->set_pid(value.pid);
  out->set_whole_file(value.whole_file);
}

Lock Read(const wire::Lock& in, FieldChecker& check) {
  if (in.begin_bytes() > in.last_bytes()) {
    check.Wrong("lock.begin_bytes",
                fmt::format("is {}, after its last byte {}", in.begin_bytes(), in.last_bytes()));
  }
  return {.type = check.Enum("lock.type", in.type(), LockType::kShared, LockType::kUnlock),
          .begin = in.begin_bytes(),
          .last = in.last_bytes(),
          .owner = in.owner(),
          .pid = in.pid(),
          .whole_file = in.whole_file()};
}

HeldOpen Read(const wire::HeldOpen& in, FieldChecker&) {
  return {.file = FileId{in.file_id()}, .write = in.write()};
}
HeldLock Read(const wire::HeldLock& in, FieldChecker& check) {
  check.Present("start.locks.lock", in.has_lock());
  return {.file = FileId{in.file_id()}, .lock = Read(in.lock(), check)};
}
HeldGrant Read(const wire::HeldGrant& in, FieldChecker& check) {
  return {.node = NodeId{in.node_id()}, .bytes = check.Number("start.grants.bytes", in.bytes())};
}

HeldName Read(const wire::HeldName& in, FieldChecker& check) {
  return {.directory = FileId{in.directory_id()},
          .name = check.Name("start.names.name", in.name())};
}

void Write(const SessionStart& value, wire::SessionStart* out) {
  out->set_client_id(value.client.value);
  out->set_node_name(value.node_name);
  out->set_host_identity(value.host_identity);
  out->set_mount_point(value.mount_point);
  for (const HeldOpen& open : value.opens) {
    wire::HeldOpen* const item = out->add_opens();
    item->set_file_id(open.file.value);
    item->set_write(open.write);
  }
  for (const HeldLock& lock : value.locks) {
    wire::HeldLock* const item = out->add_locks();
    item->set_file_id(lock.file.value);
    Write(lock.lock, item->mutable_lock());
  }
  for (const HeldGrant& grant : value.grants) {
    wire::HeldGrant* const item = out->add_grants();
    item->set_node_id(grant.node.value);
    item->set_bytes(grant.bytes);
  }
  WriteIds(value.delegations, out->mutable_delegation_ids());
  for (const HeldName& held : value.names) {
    wire::HeldName* const item = out->add_names();
    item->set_directory_id(held.directory.value);
    item->set_name(held.name);
  }
}

SessionStart Read(const wire::SessionStart& in, FieldChecker& check) {
  if (in.client_id() == 0) check.Wrong("start.client_id", "is 0, which names no client");
  return {
      .client = ClientId{in.client_id()},
      .node_name = check.Name("start.node_name", in.node_name()),
      .host_identity = check.Bytes("start.host_identity", in.host_identity(), kPathBytesMax),
      .mount_point = check.Bytes("start.mount_point", in.mount_point(), kPathBytesMax),
      .opens = ReadList<HeldOpen>("start.opens", in.opens(), kListMax, check),
      .locks = ReadList<HeldLock>("start.locks", in.locks(), kListMax, check),
      .grants = ReadList<HeldGrant>("start.grants", in.grants(), kNodesMax, check),
      .delegations = ReadIds<FileId>("start.delegation_ids", in.delegation_ids(), kListMax, check),
      .names = ReadList<HeldName>("start.names", in.names(), kListMax, check)};
}

void Write(const NodeHeartbeat& value, wire::NodeHeartbeat* out) {
  out->set_used_bytes(value.used_bytes);
  out->set_limit_bytes(value.limit_bytes);
  out->set_object_count(value.object_count);
  out->set_read_remote_bytes(value.bytes_read_remote);
  out->set_written_remote_bytes(value.bytes_written_remote);
  out->set_written_local_bytes(value.bytes_written_local);
  out->set_descriptors_passed(value.descriptors_passed);
  out->set_unsealed_objects(value.unsealed_objects);
  out->set_corrupt_blocks(value.corrupt_blocks);
  WriteIds(value.corrupt_objects, out->mutable_corrupt_object_ids());
  const BulkUse& bulk = value.bulk;
  wire::BulkUse* const use = out->mutable_bulk_now();
  use->set_connections(bulk.connections);
  use->set_connections_max(bulk.connections_max);
  use->set_unproven(bulk.unproven);
  use->set_unproven_max(bulk.unproven_max);
  use->set_threads(bulk.threads);
  use->set_threads_max(bulk.threads_max);
  use->set_buffer_bytes(bulk.buffer_bytes);
  use->set_buffer_bytes_max(bulk.buffer_bytes_max);
  use->set_turned_away(bulk.turned_away);
  WriteIds(value.healed_objects, out->mutable_healed_object_ids());
  WriteIds(value.untold_objects, out->mutable_untold_object_ids());
  out->set_measurements(value.measurements);
  out->set_drops_done(value.drops_done);
}

namespace {

BulkUse Read(const wire::BulkUse& in) {
  return {.connections = in.connections(),
          .connections_max = in.connections_max(),
          .unproven = in.unproven(),
          .unproven_max = in.unproven_max(),
          .threads = in.threads(),
          .threads_max = in.threads_max(),
          .buffer_bytes = in.buffer_bytes(),
          .buffer_bytes_max = in.buffer_bytes_max(),
          .turned_away = in.turned_away()};
}

}  // namespace

NodeHeartbeat Read(const wire::NodeHeartbeat& in, FieldChecker& check) {
  return {
      .used_bytes = check.Number("heartbeat.used_bytes", in.used_bytes()),
      .limit_bytes = check.Number("heartbeat.limit_bytes", in.limit_bytes()),
      .object_count = in.object_count(),
      .bytes_read_remote = in.read_remote_bytes(),
      .bytes_written_remote = in.written_remote_bytes(),
      .bytes_written_local = in.written_local_bytes(),
      .descriptors_passed = in.descriptors_passed(),
      .unsealed_objects = in.unsealed_objects(),
      .corrupt_blocks = in.corrupt_blocks(),
      .corrupt_objects =
          ReadIds<FileId>("heartbeat.corrupt_object_ids", in.corrupt_object_ids(), kListMax, check),
      .healed_objects =
          ReadIds<FileId>("heartbeat.healed_object_ids", in.healed_object_ids(), kListMax, check),
      .untold_objects =
          ReadIds<FileId>("heartbeat.untold_object_ids", in.untold_object_ids(), kListMax, check),
      .bulk = Read(in.bulk_now()),
      .measurements = in.measurements(),
      .drops_done = in.drops_done()};
}

wire::RequestLogOrder ToProto(RequestLogOrder order) {
  return static_cast<wire::RequestLogOrder>(order);  // In the same order.
}
RequestLogOrder OrderOf(wire::RequestLogOrder order) {
  switch (order) {
    case wire::REQUEST_LOG_ORDER_BEGIN:
      return RequestLogOrder::kBegin;
    case wire::REQUEST_LOG_ORDER_END:
      return RequestLogOrder::kEnd;
    default:
      return RequestLogOrder::kNone;
  }
}
void Write(const ResidenceQuery& value, wire::ResidenceQuery* out) {
  out->set_query(value.query);
  out->set_log_order(ToProto(value.log_order));
  out->set_log_directory(value.log_directory);
}
ResidenceQuery Read(const wire::ResidenceQuery& in, FieldChecker& check) {
  return {.query = in.query(),
          .log_order = OrderOf(in.log_order()),
          .log_directory = check.Bytes("residence_query.log_directory", in.log_directory(), 4096)};
}
void Write(const ResidenceReport& value, wire::ResidenceReport* out) {
  out->set_query(value.query);
  out->set_snapshot(value.snapshot);
}
ResidenceReport Read(const wire::ResidenceReport& in, FieldChecker& check) {
  return {.query = in.query(),
          .snapshot = check.Bytes("residence.snapshot", in.snapshot(), kResidenceBytesMax)};
}

}  // namespace mosa
