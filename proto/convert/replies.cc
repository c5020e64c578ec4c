// The replies' half of messages.h.
#include <string>
#include <utility>
#include <variant>

#include "proto/convert/fields.h"
#include "proto/convert/messages.h"

namespace mosa {

namespace {

void Put(const EmptyReply&, wire::Reply* out) { out->mutable_empty(); }

void Put(const Failure& value, wire::Reply* out) { Write(value, out->mutable_failure()); }

void Put(const EntryReply& value, wire::Reply* out) {
  wire::EntryReply* const item = out->mutable_entry();
  Write(value.entry, item->mutable_entry());
  if (value.shared_parent) Write(*value.shared_parent, item->mutable_shared_parent());
  item->set_reserved(value.reserved);
}
EntryReply Read(const wire::EntryReply& in, FieldChecker& check) {
  check.Present("entry.entry", in.has_entry());
  EntryReply value{.entry = Read(in.entry(), check)};
  if (in.has_shared_parent()) value.shared_parent = Read(in.shared_parent(), check);
  value.reserved = in.reserved();
  return value;
}

void Put(const AttributesReply& value, wire::Reply* out) {
  Write(value.attributes, out->mutable_attributes()->mutable_attributes());
  if (value.access) Write(*value.access, out->mutable_attributes()->mutable_access());
}
AttributesReply Read(const wire::AttributesReply& in, FieldChecker& check) {
  check.Present("attributes.attributes", in.has_attributes());
  AttributesReply value{.attributes = Read(in.attributes(), check)};
  if (in.has_access()) value.access = Read(in.access(), check);
  return value;
}

void Write(const ListDirectoryReply::Item& value, wire::ListDirectoryReply::Item* out) {
  out->set_name(value.name);
  Write(value.entry, out->mutable_entry());
}
ListDirectoryReply::Item Read(const wire::ListDirectoryReply::Item& in, FieldChecker& check) {
  check.Present("list_directory.items.entry", in.has_entry());
  return {.name = check.Name("list_directory.items.name", in.name()),
          .entry = Read(in.entry(), check)};
}
void Put(const ListDirectoryReply& value, wire::Reply* out) {
  wire::ListDirectoryReply* const item = out->mutable_list_directory();
  item->mutable_items()->Reserve(static_cast<int>(value.items.size()));
  for (const ListDirectoryReply::Item& entry : value.items) Write(entry, item->add_items());
  item->set_more(value.more);
  item->set_parent_id(value.parent.value);
  item->set_shared(value.shared);
}
ListDirectoryReply Read(const wire::ListDirectoryReply& in, FieldChecker& check) {
  ListDirectoryReply value;
  if (check.Count("list_directory.items", in.items_size(), kListMax)) {
    value.items.reserve(static_cast<size_t>(in.items_size()));
    for (const auto& item : in.items()) value.items.push_back(Read(item, check));
  }
  value.more = in.more();
  value.parent = FileId{in.parent_id()};
  value.shared = in.shared();
  return value;
}

void Put(const MakeReply& value, wire::Reply* out) {
  wire::MakeReply* const item = out->mutable_make();
  Write(value.entry, item->mutable_entry());
  Write(value.parent_attributes, item->mutable_parent_attributes());
  if (value.access) Write(*value.access, item->mutable_access());
  item->set_delegated(value.delegated);
  item->set_counts_readers(value.counts_readers);
}
MakeReply Read(const wire::MakeReply& in, FieldChecker& check) {
  check.Present("make.entry", in.has_entry());
  check.Present("make.parent_attributes", in.has_parent_attributes());
  MakeReply value;
  value.entry = Read(in.entry(), check);
  value.parent_attributes = Read(in.parent_attributes(), check);
  if (in.has_access()) value.access = Read(in.access(), check);
  value.delegated = in.delegated();
  value.counts_readers = in.counts_readers();
  return value;
}

void Put(const RemoveReply& value, wire::Reply* out) {
  wire::RemoveReply* const item = out->mutable_remove();
  item->set_file_id(value.file.value);
  item->set_links_left(value.links_left);
  Write(value.parent_attributes, item->mutable_parent_attributes());
}
RemoveReply Read(const wire::RemoveReply& in, FieldChecker& check) {
  check.Present("remove.parent_attributes", in.has_parent_attributes());
  return {.file = FileId{in.file_id()},
          .links_left = in.links_left(),
          .parent_attributes = Read(in.parent_attributes(), check)};
}

void Put(const RenameReply& value, wire::Reply* out) {
  wire::RenameReply* const item = out->mutable_rename();
  item->set_moved_id(value.moved.value);
  if (value.replaced) item->set_replaced_id(value.replaced->value);
  item->set_replaced_links_left(value.replaced_links_left);
  item->set_shared(value.shared);
}
RenameReply Read(const wire::RenameReply& in, FieldChecker&) {
  RenameReply value;
  value.moved = FileId{in.moved_id()};
  if (in.has_replaced_id()) value.replaced = FileId{in.replaced_id()};
  value.replaced_links_left = in.replaced_links_left();
  value.shared = in.shared();
  return value;
}

void Put(const ReadSymlinkReply& value, wire::Reply* out) {
  out->mutable_read_symlink()->set_target(value.target);
}
ReadSymlinkReply Read(const wire::ReadSymlinkReply& in, FieldChecker& check) {
  return {.target = check.Bytes("read_symlink.target", in.target(), kPathBytesMax)};
}

void Put(const OpenReply& value, wire::Reply* out) {
  wire::OpenReply* const item = out->mutable_open();
  Write(value.attributes, item->mutable_attributes());
  Write(value.access, item->mutable_access());
  item->set_counts_readers(value.counts_readers);
}
OpenReply Read(const wire::OpenReply& in, FieldChecker& check) {
  check.Present("open.attributes", in.has_attributes());
  check.Present("open.access", in.has_access());
  return {.attributes = Read(in.attributes(), check),
          .access = Read(in.access(), check),
          .counts_readers = in.counts_readers()};
}

void Put(const BindReply& value, wire::Reply* out) {
  wire::BindReply* const item = out->mutable_bind();
  Write(value.access, item->mutable_access());
  WriteIds(value.older, item->mutable_older_node_ids());
}
BindReply Read(const wire::BindReply& in, FieldChecker& check) {
  check.Present("bind.access", in.has_access());
  return {.access = Read(in.access(), check),
          .older = ReadIds<NodeId>("bind.older_node_ids", in.older_node_ids(), kNodesMax, check)};
}

void Put(const GrantReply& value, wire::Reply* out) {
  wire::GrantReply* const item = out->mutable_grant();
  item->set_granted_bytes(value.granted_bytes);
  item->set_free_bytes(value.free_bytes);
  item->set_limit_bytes(value.limit_bytes);
}
GrantReply Read(const wire::GrantReply& in, FieldChecker& check) {
  return {.granted_bytes = check.Number("grant.granted_bytes", in.granted_bytes()),
          .free_bytes = check.Number("grant.free_bytes", in.free_bytes()),
          .limit_bytes = check.Number("grant.limit_bytes", in.limit_bytes())};
}

void Put(const GetXattrReply& value, wire::Reply* out) {
  out->mutable_get_xattr()->set_value(value.value);
}
GetXattrReply Read(const wire::GetXattrReply& in, FieldChecker& check) {
  return {.value = check.Bytes("get_xattr.value", in.value(), kXattrValueBytesMax)};
}

void Put(const ListXattrsReply& value, wire::Reply* out) {
  wire::ListXattrsReply* const item = out->mutable_list_xattrs();
  for (const std::string& name : value.names) item->add_names(name);
}
ListXattrsReply Read(const wire::ListXattrsReply& in, FieldChecker& check) {
  ListXattrsReply value;
  if (!check.Count("list_xattrs.names", in.names_size(), kListMax)) return value;
  value.names.reserve(static_cast<size_t>(in.names_size()));
  for (const std::string& name : in.names()) {
    value.names.push_back(check.Name("list_xattrs.names", name));
  }
  return value;
}

void Put(const GetLockReply& value, wire::Reply* out) {
  wire::GetLockReply* const item = out->mutable_get_lock();
  if (value.conflict) Write(*value.conflict, item->mutable_conflict());
}
GetLockReply Read(const wire::GetLockReply& in, FieldChecker& check) {
  GetLockReply value;
  if (in.has_conflict()) value.conflict = Read(in.conflict(), check);
  return value;
}

void Put(const StatFilesystemReply& value, wire::Reply* out) {
  wire::StatFilesystemReply* const item = out->mutable_stat_filesystem();
  item->set_limit_bytes(value.limit_bytes);
  item->set_free_bytes(value.free_bytes);
  item->set_files(value.files);
  item->set_files_free(value.files_free);
}
StatFilesystemReply Read(const wire::StatFilesystemReply& in, FieldChecker& check) {
  return {.limit_bytes = check.Number("stat_filesystem.limit_bytes", in.limit_bytes()),
          .free_bytes = check.Number("stat_filesystem.free_bytes", in.free_bytes()),
          .files = in.files(),
          .files_free = in.files_free()};
}

void Put(const FileIdRangeReply& value, wire::Reply* out) {
  wire::FileIdRangeReply* const item = out->mutable_file_id_range();
  item->set_first_id(value.first.value);
  item->set_count(value.count);
}
FileIdRangeReply Read(const wire::FileIdRangeReply& in, FieldChecker&) {
  return {.first = FileId{in.first_id()}, .count = in.count()};
}

void Put(const AwaitCopiesReply& value, wire::Reply* out) {
  wire::AwaitCopiesReply* const item = out->mutable_await_copies();
  item->set_copies_valid(value.copies_valid);
  item->set_copied_bytes(value.copied_bytes);
  item->set_more(value.more);
  item->set_copies_wanted(value.copies_wanted);
  item->set_no_room(value.no_room);
  item->set_reason(value.reason);
  item->set_open_for_writing(value.open_for_writing);
}
AwaitCopiesReply Read(const wire::AwaitCopiesReply& in, FieldChecker& check) {
  return {.copies_valid = in.copies_valid(),
          .copied_bytes = check.Number("await_copies.copied_bytes", in.copied_bytes()),
          .more = in.more(),
          .copies_wanted = in.copies_wanted(),
          .no_room = in.no_room(),
          .reason = check.Bytes("await_copies.reason", in.reason(), kTextBytesMax),
          .open_for_writing = in.open_for_writing()};
}

Reply ReadReply(const wire::Reply& in, FieldChecker& check) {
  switch (in.reply_case()) {
    case wire::Reply::kEmpty:
      return EmptyReply{};
    case wire::Reply::kFailure:
      return Read(in.failure(), check);
    case wire::Reply::kEntry:
      return Read(in.entry(), check);
    case wire::Reply::kAttributes:
      return Read(in.attributes(), check);
    case wire::Reply::kListDirectory:
      return Read(in.list_directory(), check);
    case wire::Reply::kMake:
      return Read(in.make(), check);
    case wire::Reply::kRemove:
      return Read(in.remove(), check);
    case wire::Reply::kRename:
      return Read(in.rename(), check);
    case wire::Reply::kReadSymlink:
      return Read(in.read_symlink(), check);
    case wire::Reply::kOpen:
      return Read(in.open(), check);
    case wire::Reply::kBind:
      return Read(in.bind(), check);
    case wire::Reply::kGrant:
      return Read(in.grant(), check);
    case wire::Reply::kGetXattr:
      return Read(in.get_xattr(), check);
    case wire::Reply::kListXattrs:
      return Read(in.list_xattrs(), check);
    case wire::Reply::kGetLock:
      return Read(in.get_lock(), check);
    case wire::Reply::kStatFilesystem:
      return Read(in.stat_filesystem(), check);
    case wire::Reply::kFileIdRange:
      return Read(in.file_id_range(), check);
    case wire::Reply::kAwaitCopies:
      return Read(in.await_copies(), check);
    case wire::Reply::REPLY_NOT_SET:
      break;
  }
  check.Wrong("reply", "is of a kind that this version does not know");
  return {};
}

}  // namespace

void ToProto(const Reply& reply, v1::Reply* out) {
  std::visit([out](const auto& value) { Put(value, out); }, reply);
}

Result<Reply> FromProto(const v1::Reply& reply) {
  FieldChecker check;
  Reply value = ReadReply(reply, check);
  if (!check.ok()) return check.status();
  return value;
}

}  // namespace mosa
