#include "proto/convert/admin.h"

#include <optional>
#include <utility>

#include "proto/convert/fields.h"

namespace mosa {

namespace {

void Write(const NodeStatus& value, wire::NodeStatus* out) {
  Write(value.address, out->mutable_address());
  out->set_limit_bytes(value.limit_bytes);
  out->set_used_bytes(value.used_bytes);
  out->set_granted_bytes(value.granted_bytes);
  out->set_object_count(value.object_count);
  out->set_last_heard_ns(value.last_heard.ns);
  Write(value.last_heartbeat, out->mutable_last_heartbeat());
  if (value.files_left) out->set_files_left(*value.files_left);
}
NodeStatus Read(const wire::NodeStatus& in, FieldChecker& check) {
  check.Present("nodes.address", in.has_address());
  return {
      .address = Read(in.address(), check),
      .limit_bytes = check.Number("nodes.limit_bytes", in.limit_bytes()),
      .used_bytes = check.Number("nodes.used_bytes", in.used_bytes()),
      .granted_bytes = check.Number("nodes.granted_bytes", in.granted_bytes()),
      .object_count = in.object_count(),
      .last_heard = {in.last_heard_ns()},
      .last_heartbeat = Read(in.last_heartbeat(), check),
      .files_left = in.has_files_left() ? std::optional<uint64_t>(in.files_left()) : std::nullopt};
}

void Write(const SessionStatus& value, wire::SessionStatus* out) {
  Write(value.start, out->mutable_start());
  out->set_connected(value.connected);
  out->set_open_files(value.open_files);
  out->set_interests(value.interests);
  out->set_delegations(value.delegations);
}
SessionStatus Read(const wire::SessionStatus& in, FieldChecker& check) {
  check.Present("sessions.start", in.has_start());
  return {.start = Read(in.start(), check),
          .connected = in.connected(),
          .open_files = in.open_files(),
          .interests = in.interests(),
          .delegations = in.delegations()};
}

void Write(const CopyStatus& value, wire::CopyStatus* out) {
  out->set_node_id(value.node.value);
  out->set_state(static_cast<wire::CopyState>(value.state));
  out->set_copied_bytes(value.copied_bytes);
  out->set_why(value.why);
}
CopyStatus Read(const wire::CopyStatus& in, FieldChecker& check) {
  return {.node = NodeId{in.node_id()},
          .state = check.Enum("file.copies.state", in.state(), CopyStatus::State::kValid,
                              CopyStatus::State::kFailed),
          .copied_bytes = check.Number("file.copies.copied_bytes", in.copied_bytes()),
          .why = check.Bytes("file.copies.why", in.why(), kTextBytesMax)};
}

}  // namespace

void ToProto(const ClusterStatus& status, v1::GetClusterStatusResponse* out) {
  out->set_cluster_name(status.cluster_name);
  out->set_now_ns(status.now.ns);
  out->set_in_grace(status.in_grace);
  out->set_files(status.files);
  out->set_directories(status.directories);
  for (const NodeStatus& node : status.nodes) Write(node, out->add_nodes());
  for (const SessionStatus& session : status.sessions) Write(session, out->add_sessions());
  for (const LimitStatus& limit : status.limits) {
    v1::LimitStatus* const item = out->add_limits();
    item->set_name(limit.name);
    item->set_used(limit.used);
    item->set_limit(limit.limit);
    item->set_is_bytes(limit.is_bytes);
  }
  out->set_growth_refused(status.growth_refused);
}

void ToProto(const FileStatus& status, v1::FileStatus* out) {
  out->set_path(status.path);
  Write(status.entry, out->mutable_entry());
  Write(status.layout, out->mutable_layout());
  out->set_is_inline(status.is_inline);
  out->set_lost(status.lost);
  out->set_task(status.task);
  for (const auto& [node, bytes] : status.allocated_bytes) {
    v1::FileStatus::NodeBytes* const item = out->add_allocated();
    item->set_node_id(node.value);
    item->set_allocated_bytes(bytes);
  }
  out->set_copies_wanted(status.copies_wanted);
  out->set_copies_valid(status.copies_valid);
  for (const CopyStatus& copy : status.copies) Write(copy, out->add_copies());
  out->set_copies_missing(status.copies_missing);
  out->set_damage(status.damage);
}

Result<ClusterStatus> FromProto(const v1::GetClusterStatusResponse& message) {
  FieldChecker check;
  ClusterStatus status{
      .cluster_name = check.Name("cluster_name", message.cluster_name()),
      .now = {message.now_ns()},
      .in_grace = message.in_grace(),
      .files = message.files(),
      .directories = message.directories(),
      .nodes = {},
      .sessions = {},
      .limits = {},
      .growth_refused = check.Bytes("growth_refused", message.growth_refused(), kTextBytesMax)};
  for (const auto& node : message.nodes()) status.nodes.push_back(Read(node, check));
  for (const auto& session : message.sessions()) status.sessions.push_back(Read(session, check));
  for (const auto& limit : message.limits())
    status.limits.push_back({.name = check.Name("limit.name", limit.name()),
                             .used = limit.used(),
                             .limit = limit.limit(),
                             .is_bytes = limit.is_bytes()});
  if (!check.ok()) return check.status();
  return status;
}

Result<FileStatus> FromProto(const v1::FileStatus& message) {
  FieldChecker check;
  check.Present("file.entry", message.has_entry());
  check.Present("file.layout", message.has_layout());
  FileStatus status{.path = check.Bytes("file.path", message.path(), kLongPathBytesMax),
                    .entry = Read(message.entry(), check),
                    .layout = Read(message.layout(), check),
                    .is_inline = message.is_inline(),
                    .lost = message.lost(),
                    .damage = check.Bytes("file.damage", message.damage(), kTextBytesMax),
                    .task = check.Bytes("file.task", message.task(), kPathBytesMax),
                    .allocated_bytes = {},
                    .copies_wanted = message.copies_wanted(),
                    .copies_valid = message.copies_valid(),
                    .copies = {},
                    .copies_missing = check.Bytes("file.copies_missing", message.copies_missing(),
                                                  kTextBytesMax)};
  if (check.Count("file.copies", message.copies_size(), kNodesMax)) {
    for (const auto& item : message.copies()) status.copies.push_back(Read(item, check));
  }
  for (const auto& item : message.allocated()) {
    status.allocated_bytes.emplace_back(
        NodeId{item.node_id()}, check.Number("file.allocated.bytes", item.allocated_bytes()));
  }
  if (!check.ok()) return check.status();
  return status;
}

}  // namespace mosa
