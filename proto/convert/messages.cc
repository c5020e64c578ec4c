#include "proto/convert/messages.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "proto/convert/fields.h"

namespace mosa {

namespace {

std::optional<Time> OptionalTime(bool has, int64_t ns) {
  return has ? std::optional<Time>(Time{ns}) : std::nullopt;
}

// ---- names

void Put(const LookupRequest& value, wire::Request* out) {
  wire::LookupRequest* const item = out->mutable_lookup();
  item->set_parent_id(value.parent.value);
  item->set_name(value.name);
  if (value.reserve_for) item->set_reserve_for(*value.reserve_for);
}
LookupRequest Read(const wire::LookupRequest& in, FieldChecker& check) {
  LookupRequest value{.parent = FileId{in.parent_id()},
                      .name = check.Name("lookup.name", in.name())};
  if (in.has_reserve_for()) value.reserve_for = in.reserve_for();
  return value;
}

void Put(const GetAttributesRequest& value, wire::Request* out) {
  out->mutable_get_attributes()->set_file_id(value.file.value);
}
GetAttributesRequest Read(const wire::GetAttributesRequest& in, FieldChecker&) {
  return {.file = FileId{in.file_id()}};
}

void Put(const ListDirectoryRequest& value, wire::Request* out) {
  wire::ListDirectoryRequest* const item = out->mutable_list_directory();
  item->set_directory_id(value.directory.value);
  item->set_after_name(value.after_name);
  item->set_entries_max(value.entries_max);
}
ListDirectoryRequest Read(const wire::ListDirectoryRequest& in, FieldChecker& check) {
  return {.directory = FileId{in.directory_id()},
          .after_name = check.Name("list_directory.after_name", in.after_name()),
          .entries_max = in.entries_max()};
}

void Put(const MakeRequest& value, wire::Request* out) {
  wire::MakeRequest* const item = out->mutable_make();
  item->set_parent_id(value.parent.value);
  item->set_name(value.name);
  item->set_file_id(value.file.value);
  item->set_type(static_cast<wire::FileType>(value.type));
  item->set_permissions(value.permissions);
  item->set_uid(value.uid);
  item->set_gid(value.gid);
  item->set_device(value.device);
  item->set_symlink_target(value.symlink_target);
  item->set_task(value.task);
  item->set_now_ns(value.now.ns);
  item->set_open(value.open);
  item->set_bind(value.bind);
  for (const HintValue& hint : value.hints) {
    wire::HintValue* const out_hint = item->add_hints();
    out_hint->set_name(hint.name);
    out_hint->set_value(hint.value);
  }
}
std::vector<HintValue> ReadHints(const wire::MakeRequest& in, FieldChecker& check) {
  std::vector<HintValue> hints;
  if (!check.Count("make.hints", in.hints_size(), kHintsAtMakeMax)) return hints;
  for (const wire::HintValue& hint : in.hints())
    hints.push_back({check.Name("make.hints.name", hint.name()),
                     check.Bytes("make.hints.value", hint.value(), kTextBytesMax)});
  return hints;
}
MakeRequest Read(const wire::MakeRequest& in, FieldChecker& check) {
  return {.parent = FileId{in.parent_id()},
          .name = check.Name("make.name", in.name()),
          .file = FileId{in.file_id()},
          .type = check.Enum("make.type", in.type(), FileType::kRegular, FileType::kBlockDevice),
          .permissions = check.Permissions("make.permissions", in.permissions()),
          .uid = in.uid(),
          .gid = in.gid(),
          .device = in.device(),
          .symlink_target = check.Bytes("make.symlink_target", in.symlink_target(), kPathBytesMax,
                                        ErrorReason::kNameTooLong),
          .task = check.Bytes("make.task", in.task(), kPathBytesMax),
          .now = {in.now_ns()},
          .open = in.open(),
          .bind = in.bind(),
          .hints = ReadHints(in, check)};
}

void Put(const LinkRequest& value, wire::Request* out) {
  wire::LinkRequest* const item = out->mutable_link();
  item->set_file_id(value.file.value);
  item->set_new_parent_id(value.new_parent.value);
  item->set_new_name(value.new_name);
}
LinkRequest Read(const wire::LinkRequest& in, FieldChecker& check) {
  return {.file = FileId{in.file_id()},
          .new_parent = FileId{in.new_parent_id()},
          .new_name = check.Name("link.new_name", in.new_name())};
}

void Put(const RemoveRequest& value, wire::Request* out) {
  wire::RemoveRequest* const item = out->mutable_remove();
  item->set_parent_id(value.parent.value);
  item->set_name(value.name);
  item->set_directory(value.directory);
  item->set_holds_open(value.holds_open);
  item->set_file_id(value.file.value);
}
RemoveRequest Read(const wire::RemoveRequest& in, FieldChecker& check) {
  return {.parent = FileId{in.parent_id()},
          .name = check.Name("remove.name", in.name()),
          .directory = in.directory(),
          .holds_open = in.holds_open(),
          .file = FileId{in.file_id()}};
}

void Put(const RenameRequest& value, wire::Request* out) {
  wire::RenameRequest* const item = out->mutable_rename();
  item->set_old_parent_id(value.old_parent.value);
  item->set_old_name(value.old_name);
  item->set_new_parent_id(value.new_parent.value);
  item->set_new_name(value.new_name);
  item->set_no_replace(value.no_replace);
  item->set_exchange(value.exchange);
  item->set_holds_open(value.holds_open);
  item->set_moved_id(value.moved.value);
  if (value.replaced) item->set_replaced_id(value.replaced->value);
}
RenameRequest Read(const wire::RenameRequest& in, FieldChecker& check) {
  return {
      .old_parent = FileId{in.old_parent_id()},
      .old_name = check.Name("rename.old_name", in.old_name()),
      .new_parent = FileId{in.new_parent_id()},
      .new_name = check.Name("rename.new_name", in.new_name()),
      .no_replace = in.no_replace(),
      .exchange = in.exchange(),
      .holds_open = in.holds_open(),
      .moved = FileId{in.moved_id()},
      .replaced = in.has_replaced_id() ? std::optional(FileId{in.replaced_id()}) : std::nullopt};
}

void Put(const ReadSymlinkRequest& value, wire::Request* out) {
  out->mutable_read_symlink()->set_file_id(value.file.value);
}
ReadSymlinkRequest Read(const wire::ReadSymlinkRequest& in, FieldChecker&) {
  return {.file = FileId{in.file_id()}};
}

void Put(const SetAttributesRequest& value, wire::Request* out) {
  wire::SetAttributesRequest* const item = out->mutable_set_attributes();
  item->set_file_id(value.file.value);
  if (value.permissions) item->set_permissions(*value.permissions);
  if (value.uid) item->set_uid(*value.uid);
  if (value.gid) item->set_gid(*value.gid);
  if (value.size_bytes) item->set_size_bytes(*value.size_bytes);
  if (value.access_time) item->set_access_time_ns(value.access_time->ns);
  if (value.modify_time) item->set_modify_time_ns(value.modify_time->ns);
  item->set_access_time_now(value.access_time_now);
  item->set_modify_time_now(value.modify_time_now);
  item->set_generation(value.generation);
  item->set_lay_out_anew(value.lay_out_anew);
}
SetAttributesRequest Read(const wire::SetAttributesRequest& in, FieldChecker& check) {
  SetAttributesRequest value;
  value.file = FileId{in.file_id()};
  if (in.has_permissions()) {
    value.permissions = check.Permissions("set_attributes.permissions", in.permissions());
  }
  if (in.has_uid()) value.uid = in.uid();
  if (in.has_gid()) value.gid = in.gid();
  if (in.has_size_bytes()) {
    value.size_bytes = check.Number("set_attributes.size_bytes", in.size_bytes());
  }
  value.access_time = OptionalTime(in.has_access_time_ns(), in.access_time_ns());
  value.modify_time = OptionalTime(in.has_modify_time_ns(), in.modify_time_ns());
  value.access_time_now = in.access_time_now();
  value.modify_time_now = in.modify_time_now();
  value.generation = check.Number("set_attributes.generation", in.generation());
  value.lay_out_anew = in.lay_out_anew();
  return value;
}

// ---- bytes

void Put(const OpenRequest& value, wire::Request* out) {
  wire::OpenRequest* const item = out->mutable_open();
  item->set_file_id(value.file.value);
  item->set_write(value.write);
  item->set_task(value.task);
}
OpenRequest Read(const wire::OpenRequest& in, FieldChecker& check) {
  return {.file = FileId{in.file_id()},
          .write = in.write(),
          .task = check.Bytes("open.task", in.task(), kPathBytesMax)};
}

void Put(const BindRequest& value, wire::Request* out) {
  wire::BindRequest* const item = out->mutable_bind();
  item->set_file_id(value.file.value);
  item->set_first_bytes(value.first_bytes);
}
BindRequest Read(const wire::BindRequest& in, FieldChecker& check) {
  return {.file = FileId{in.file_id()},
          .first_bytes = check.Number("bind.first_bytes", in.first_bytes())};
}

void Put(const FreezeRequest& value, wire::Request* out) {
  out->mutable_freeze()->set_file_id(value.file.value);
}
FreezeRequest Read(const wire::FreezeRequest& in, FieldChecker&) {
  return {.file = FileId{in.file_id()}};
}

void Put(const RelocateRequest& value, wire::Request* out) {
  wire::RelocateRequest* const item = out->mutable_relocate();
  item->set_file_id(value.file.value);
  item->set_begin_bytes(value.begin);
  item->set_end_bytes(value.end);
  WriteIds(value.full, item->mutable_full_node_ids());
  WriteIds(value.cleaned, item->mutable_cleaned_node_ids());
}
RelocateRequest Read(const wire::RelocateRequest& in, FieldChecker& check) {
  const uint64_t begin = check.Number("relocate.begin_bytes", in.begin_bytes(), kFileBytesMax);
  const uint64_t end = in.end_bytes();
  const bool to_the_end = end == UINT64_MAX;
  if (begin % kSegmentUnit != 0 || (!to_the_end && (end % kSegmentUnit != 0 || end < begin)))
    check.Wrong(
        "relocate.end_bytes",
        fmt::format("and the begin, {} and {}, do not form a range of whole pages", end, begin));
  return {.file = FileId{in.file_id()},
          .begin = begin,
          .end = end,
          .full = ReadIds<NodeId>("relocate.full_node_ids", in.full_node_ids(), kNodesMax, check),
          .cleaned = ReadIds<NodeId>("relocate.cleaned_node_ids", in.cleaned_node_ids(), kNodesMax,
                                     check)};
}

void Put(const CommitRequest& value, wire::Request* out) {
  wire::CommitRequest* const item = out->mutable_commit();
  item->set_file_id(value.file.value);
  item->set_size_bytes(value.size_bytes);
  item->set_size_is_exact(value.size_is_exact);
  if (value.modify_time) item->set_modify_time_ns(value.modify_time->ns);
  if (value.access_time) item->set_access_time_ns(value.access_time->ns);
  if (value.inline_data) item->set_inline_data(*value.inline_data);
  for (const CommitRequest::NodeBytes& node : value.nodes) {
    wire::CommitRequest::NodeBytes* const bytes = item->add_nodes();
    bytes->set_node_id(node.node.value);
    bytes->set_allocated_bytes(node.allocated_bytes);
    bytes->set_consumed_bytes(node.consumed_bytes);
    bytes->set_stored_nothing(node.stored_nothing);
    bytes->set_at_least(node.at_least);
  }
  item->set_data_changed(value.data_changed);
  item->set_change_failed(value.change_failed);
  item->set_inline_moved(value.inline_moved);
  item->set_last_close(value.last_close);
  if (value.based_on_version) item->set_based_on_version(*value.based_on_version);
  item->set_generation(value.generation);
  item->set_modify_time_stays(value.modify_time_stays);
}
CommitRequest::NodeBytes Read(const wire::CommitRequest::NodeBytes& in, FieldChecker& check) {
  return {.node = NodeId{in.node_id()},
          .allocated_bytes = check.Number("commit.nodes.allocated_bytes", in.allocated_bytes()),
          .consumed_bytes = check.Number("commit.nodes.consumed_bytes", in.consumed_bytes()),
          .stored_nothing = in.stored_nothing(),
          .at_least = in.at_least()};
}
CommitRequest Read(const wire::CommitRequest& in, FieldChecker& check) {
  CommitRequest value;
  value.file = FileId{in.file_id()};
  value.size_bytes = check.Number("commit.size_bytes", in.size_bytes());
  value.size_is_exact = in.size_is_exact();
  value.modify_time = OptionalTime(in.has_modify_time_ns(), in.modify_time_ns());
  value.access_time = OptionalTime(in.has_access_time_ns(), in.access_time_ns());
  if (in.has_inline_data()) {
    value.inline_data = check.Bytes("commit.inline_data", in.inline_data(), kInlineBytesMax);
  }
  if (check.Count("commit.nodes", in.nodes_size(), kNodesMax)) {
    value.nodes.reserve(static_cast<size_t>(in.nodes_size()));
    for (const auto& node : in.nodes()) value.nodes.push_back(Read(node, check));
  }
  value.data_changed = in.data_changed();
  value.change_failed = in.change_failed();
  value.inline_moved = in.inline_moved();
  value.last_close = in.last_close();
  if (in.has_based_on_version()) value.based_on_version = in.based_on_version();
  value.generation = check.Number("commit.generation", in.generation());
  value.modify_time_stays = in.modify_time_stays();
  return value;
}

void Put(const ReleaseRequest& value, wire::Request* out) {
  out->mutable_release()->set_file_id(value.file.value);
  if (value.reader) out->mutable_release()->set_reader(*value.reader);
  out->mutable_release()->set_uncommitted(value.uncommitted);
  out->mutable_release()->set_holds_open(value.holds_open);
}
ReleaseRequest Read(const wire::ReleaseRequest& in, FieldChecker& check) {
  ReleaseRequest value{
      .file = FileId{in.file_id()}, .uncommitted = in.uncommitted(), .holds_open = in.holds_open()};
  if (in.has_reader()) value.reader = check.Bytes("release.reader", in.reader(), kPathBytesMax);
  return value;
}

void Put(const GrantRequest& value, wire::Request* out) {
  wire::GrantRequest* const item = out->mutable_grant();
  item->set_node_id(value.node.value);
  item->set_wanted_bytes(value.wanted_bytes);
  item->set_consumed_bytes(value.consumed_bytes);
  item->set_returned_bytes(value.returned_bytes);
}
GrantRequest Read(const wire::GrantRequest& in, FieldChecker& check) {
  return {.node = NodeId{in.node_id()},
          .wanted_bytes = check.Number("grant.wanted_bytes", in.wanted_bytes()),
          .consumed_bytes = check.Number("grant.consumed_bytes", in.consumed_bytes()),
          .returned_bytes = check.Number("grant.returned_bytes", in.returned_bytes())};
}

// ---- attributes, locks, the rest

void Put(const GetXattrRequest& value, wire::Request* out) {
  wire::GetXattrRequest* const item = out->mutable_get_xattr();
  item->set_file_id(value.file.value);
  item->set_name(value.name);
}
GetXattrRequest Read(const wire::GetXattrRequest& in, FieldChecker& check) {
  return {.file = FileId{in.file_id()}, .name = check.Name("get_xattr.name", in.name())};
}

void Put(const ListXattrsRequest& value, wire::Request* out) {
  out->mutable_list_xattrs()->set_file_id(value.file.value);
}
ListXattrsRequest Read(const wire::ListXattrsRequest& in, FieldChecker&) {
  return {.file = FileId{in.file_id()}};
}

void Put(const SetXattrRequest& value, wire::Request* out) {
  wire::SetXattrRequest* const item = out->mutable_set_xattr();
  item->set_file_id(value.file.value);
  item->set_name(value.name);
  item->set_value(value.value);
  item->set_must_create(value.must_create);
  item->set_must_replace(value.must_replace);
  item->set_pinned(value.pinned);
}
SetXattrRequest Read(const wire::SetXattrRequest& in, FieldChecker& check) {
  return {.file = FileId{in.file_id()},
          .name = check.Name("set_xattr.name", in.name()),
          .value = check.Bytes("set_xattr.value", in.value(), kXattrValueBytesMax,
                               ErrorReason::kArgumentTooBig),
          .must_create = in.must_create(),
          .must_replace = in.must_replace(),
          .pinned = in.pinned()};
}

void Put(const RemoveXattrRequest& value, wire::Request* out) {
  wire::RemoveXattrRequest* const item = out->mutable_remove_xattr();
  item->set_file_id(value.file.value);
  item->set_name(value.name);
  item->set_pinned(value.pinned);
}
RemoveXattrRequest Read(const wire::RemoveXattrRequest& in, FieldChecker& check) {
  return {.file = FileId{in.file_id()},
          .name = check.Name("remove_xattr.name", in.name()),
          .pinned = in.pinned()};
}

void Put(const GetLockRequest& value, wire::Request* out) {
  wire::GetLockRequest* const item = out->mutable_get_lock();
  item->set_file_id(value.file.value);
  Write(value.lock, item->mutable_lock());
}
GetLockRequest Read(const wire::GetLockRequest& in, FieldChecker& check) {
  check.Present("get_lock.lock", in.has_lock());
  return {.file = FileId{in.file_id()}, .lock = Read(in.lock(), check)};
}

void Put(const SetLockRequest& value, wire::Request* out) {
  wire::SetLockRequest* const item = out->mutable_set_lock();
  item->set_file_id(value.file.value);
  Write(value.lock, item->mutable_lock());
  item->set_wait(value.wait);
}
SetLockRequest Read(const wire::SetLockRequest& in, FieldChecker& check) {
  check.Present("set_lock.lock", in.has_lock());
  return {.file = FileId{in.file_id()}, .lock = Read(in.lock(), check), .wait = in.wait()};
}

void Put(const CancelLockRequest& value, wire::Request* out) {
  out->mutable_cancel_lock()->set_request_id(value.request.value);
}
CancelLockRequest Read(const wire::CancelLockRequest& in, FieldChecker&) {
  return {.request = RequestId{in.request_id()}};
}

void Put(const StatFilesystemRequest&, wire::Request* out) { out->mutable_stat_filesystem(); }
void Put(const FileIdRangeRequest&, wire::Request* out) { out->mutable_file_id_range(); }

void Put(const ForgetRequest& value, wire::Request* out) {
  WriteIds(value.files, out->mutable_forget()->mutable_file_ids());
}
ForgetRequest Read(const wire::ForgetRequest& in, FieldChecker& check) {
  return {.files = ReadIds<FileId>("forget.file_ids", in.file_ids(), kListMax, check)};
}

void Put(const RecallDoneRequest& value, wire::Request* out) {
  wire::RecallDoneRequest* const item = out->mutable_recall_done();
  item->set_recall_id(value.recall.value);
  item->set_holds_open(value.holds_open);
  item->set_pinned(value.pinned);
  item->set_writes(value.writes);
}
RecallDoneRequest Read(const wire::RecallDoneRequest& in, FieldChecker&) {
  return {.recall = RecallId{in.recall_id()},
          .holds_open = in.holds_open(),
          .pinned = in.pinned(),
          .writes = in.writes()};
}

void Put(const AwaitCopiesRequest& value, wire::Request* out) {
  wire::AwaitCopiesRequest* const item = out->mutable_await_copies();
  item->set_file_id(value.file.value);
  item->set_data_version(value.data_version);
  item->set_copies(value.copies);
}
AwaitCopiesRequest Read(const wire::AwaitCopiesRequest& in, FieldChecker&) {
  return {.file = FileId{in.file_id()}, .data_version = in.data_version(), .copies = in.copies()};
}

Request ReadRequest(const wire::Request& in, FieldChecker& check) {
  switch (in.request_case()) {
    case wire::Request::kLookup:
      return Read(in.lookup(), check);
    case wire::Request::kGetAttributes:
      return Read(in.get_attributes(), check);
    case wire::Request::kListDirectory:
      return Read(in.list_directory(), check);
    case wire::Request::kMake:
      return Read(in.make(), check);
    case wire::Request::kLink:
      return Read(in.link(), check);
    case wire::Request::kRemove:
      return Read(in.remove(), check);
    case wire::Request::kRename:
      return Read(in.rename(), check);
    case wire::Request::kReadSymlink:
      return Read(in.read_symlink(), check);
    case wire::Request::kSetAttributes:
      return Read(in.set_attributes(), check);
    case wire::Request::kOpen:
      return Read(in.open(), check);
    case wire::Request::kBind:
      return Read(in.bind(), check);
    case wire::Request::kFreeze:
      return Read(in.freeze(), check);
    case wire::Request::kRelocate:
      return Read(in.relocate(), check);
    case wire::Request::kCommit:
      return Read(in.commit(), check);
    case wire::Request::kRelease:
      return Read(in.release(), check);
    case wire::Request::kGrant:
      return Read(in.grant(), check);
    case wire::Request::kGetXattr:
      return Read(in.get_xattr(), check);
    case wire::Request::kListXattrs:
      return Read(in.list_xattrs(), check);
    case wire::Request::kSetXattr:
      return Read(in.set_xattr(), check);
    case wire::Request::kRemoveXattr:
      return Read(in.remove_xattr(), check);
    case wire::Request::kGetLock:
      return Read(in.get_lock(), check);
    case wire::Request::kSetLock:
      return Read(in.set_lock(), check);
    case wire::Request::kCancelLock:
      return Read(in.cancel_lock(), check);
    case wire::Request::kStatFilesystem:
      return StatFilesystemRequest{};
    case wire::Request::kFileIdRange:
      return FileIdRangeRequest{};
    case wire::Request::kForget:
      return Read(in.forget(), check);
    case wire::Request::kRecallDone:
      return Read(in.recall_done(), check);
    case wire::Request::kAwaitCopies:
      return Read(in.await_copies(), check);
    case wire::Request::REQUEST_NOT_SET:
      break;
  }
  check.Wrong("request", "is of a kind that this version does not know");
  return {};
}

}  // namespace

void ToProto(const Request& request, v1::Request* out) {
  std::visit([out](const auto& value) { Put(value, out); }, request);
}

Result<Request> FromProto(const v1::Request& request) {
  FieldChecker check;
  Request value = ReadRequest(request, check);
  if (!check.ok()) return check.status();
  return value;
}

}  // namespace mosa
