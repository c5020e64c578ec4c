#include "manager/core/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mosa::manager {
namespace {

constexpr uint32_t kListEntriesMax = 4096;

constexpr uint32_t kListEntriesDefault = 1024;

constexpr size_t kSymlinkBytesMax = 4095;

constexpr uint32_t kSetGid = 02000;

Failure NoEntry(FileId parent, std::string_view name) {
  return Refuse(StatusCode::kNotFound, ErrorReason::kNoEntry,
                fmt::format("directory {} has no '{}'", parent.value, name));
}

Failure Exists(FileId parent, std::string_view name) {
  return Refuse(StatusCode::kAlreadyExists, ErrorReason::kExists,
                fmt::format("directory {} already has '{}'", parent.value, name));
}

Failure Invalid(std::string message) {
  return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid, std::move(message));
}

}  // namespace

void Namespace::AddEntry(FileId parent, const std::string& name, FileId child) {
  Directory& directory = *files_.FindDirectory(parent);
  directory.entries.emplace(name, child);
  files_.Find(child)->named_in = parent;
  if (Directory* made = files_.FindDirectory(child)) {
    made->parent = parent;
    made->name = name;
    ++directory.subdirectories;
  }
  delegations_.EndName(parent, name);
  lifetimes_.NoteName(child, name);
  step_.effects.writes.Put(EntryKey(parent, name), Encode(EntryRecord{child}));
}

void Namespace::EraseEntry(FileId parent, std::string_view name) {
  Directory& directory = *files_.FindDirectory(parent);
  const auto found = directory.entries.find(name);
  if (files_.FindDirectory(found->second)) --directory.subdirectories;
  step_.effects.writes.Delete(EntryKey(parent, name));
  directory.entries.erase(found);
}

EntryReply Namespace::EntryIn(FileId parent) {
  EntryReply reply;
  const Entry entry = file_view_.EntryWithInterest(parent);
  if (entry.attributes.shared) reply.shared_parent = entry.attributes;
  return reply;
}

Reply Namespace::Apply(const LookupRequest& request) {
  if (const auto failure = files_.CheckDirectory(request.parent)) return *failure;
  EntryReply reply = EntryIn(request.parent);
  if (request.name == ".") return EntryReply{file_view_.EntryWithInterest(request.parent)};
  if (request.name == "..") {
    const FileId parent = files_.FindDirectory(request.parent)->parent;
    if (!files_.Find(parent)) return Gone(parent);
    return EntryReply{file_view_.EntryWithInterest(parent)};
  }
  if (const auto failure = files_.CheckName(request.name)) return *failure;
  const auto child = files_.ChildOf(request.parent, request.name);
  if (child) {
    reply.entry = file_view_.EntryWithInterest(*child);
  } else if (!reply.shared_parent) {
    return NoEntry(request.parent, request.name);
  } else if (request.reserve_for && !quotas_.IsNearLimit(*request.reserve_for) &&
             hints_.HintsOf(*files_.Find(request.parent)).may_be_inline) {
    reply.reserved = delegations_.Reserve(*step_.actor, request.parent, request.name);
  }
  return reply;
}

Reply Namespace::Apply(const GetAttributesRequest& request) {
  if (!files_.Find(request.file)) return Gone(request.file);
  return AttributesReply{file_view_.EntryWithInterest(request.file).attributes};
}

Reply Namespace::Apply(const ListDirectoryRequest& request) {
  if (const auto failure = files_.CheckDirectory(request.directory)) return *failure;
  const bool watched = file_view_.Watch(request.directory);
  const uint32_t entries_max = request.entries_max == 0
                                   ? kListEntriesDefault
                                   : std::min(request.entries_max, kListEntriesMax);
  const Directory& directory = *files_.FindDirectory(request.directory);
  ListDirectoryReply reply;
  reply.shared = !watched;
  reply.parent = directory.parent;
  auto entry = request.after_name.empty() ? directory.entries.begin()
                                          : directory.entries.upper_bound(request.after_name);
  for (; entry != directory.entries.end() && reply.items.size() < entries_max; ++entry)
    reply.items.push_back({entry->first, file_view_.EntryWithInterest(entry->second)});
  reply.more = entry != directory.entries.end();
  return reply;
}

Reply Namespace::Apply(const ReadSymlinkRequest& request) {
  const auto found = files_.symlinks.find(request.file);
  if (found != files_.symlinks.end()) return ReadSymlinkReply{found->second};
  if (!files_.Find(request.file)) return Gone(request.file);
  return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                fmt::format("file {} is not a symbolic link", request.file.value));
}

std::optional<Failure> Namespace::CheckMake(const MakeRequest& request) const {
  if (auto failure = files_.CheckDirectory(request.parent)) return failure;
  if (auto failure = files_.CheckName(request.name)) return failure;
  if (request.name == "." || request.name == ".." || files_.ChildOf(request.parent, request.name))
    return Exists(request.parent, request.name);
  if (files_.orphans.contains(request.parent))
    return Refuse(StatusCode::kNotFound, ErrorReason::kNoEntry,
                  fmt::format("directory {} was removed", request.parent.value));
  const auto invalid = [](std::string message) {
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid, std::move(message));
  };
  if (request.type < FileType::kRegular || request.type > FileType::kBlockDevice)
    return invalid(fmt::format("unknown file type {}", static_cast<int>(request.type)));
  if (request.file.value <= kRootFile.value || request.file.value >= cluster_.record.next_file_id)
    return invalid(fmt::format("file id {} was never allocated to a client", request.file.value));
  if (files_.Find(request.file))
    return invalid(fmt::format("file id {} is in use", request.file.value));
  if (request.hints.size() > kHintsAtMakeMax)
    return invalid(fmt::format("{} hints for one file exceed the maximum of {}",
                               request.hints.size(), kHintsAtMakeMax));
  for (const HintValue& hint : request.hints) {
    const auto canonical = ParseHint(hint.name, false, hint.value);
    if (!canonical.ok()) return invalid(MessageOf(canonical.status()));
    if (*canonical != hint.value)
      return invalid(fmt::format("hint {} must be written as '{}'", hint.name, *canonical));
  }
  if (request.type == FileType::kSymlink) {
    const std::string& target = request.symlink_target;
    if (target.size() > kSymlinkBytesMax)
      return Refuse(StatusCode::kInvalidArgument, ErrorReason::kNameTooLong,
                    fmt::format("a link target of {} bytes exceeds the maximum of {}",
                                target.size(), kSymlinkBytesMax));
    if (target.empty() || target.find('\0') != std::string::npos)
      return invalid("a link target must not be empty and must not contain NUL");
  }
  if (!request.hints.empty())
    if (auto failure = limits_.CheckTextGrowth(request.uid)) return failure;
  return quotas_.Check(request.uid, {.names = 1, .attribute_bytes = request.symlink_target.size()});
}

Hints Namespace::HintsOfMake(const MakeRequest& request) {
  Hints left;
  if (request.type == FileType::kRegular && !limits_.CheckTextGrowth(request.uid))
    left = left_hints_.Take(request.parent, request.name, request.uid, step_.now);
  return hints_.HintsOfMake(request, left);
}

void Namespace::LeaveHints(const RemoveRequest& request, const Inode& inode) {
  if (inode.type != FileType::kRegular || inode.link_count > 1 || inode.data_version > 0 ||
      inode.size_bytes > 0)
    return;
  Hints own = hints_.DecodedHints(inode);
  std::erase_if(own, [](const auto& hint) { return hint.second.source != HintSource::kOwn; });
  if (!own.empty())
    left_hints_.Leave(request.parent, request.name, inode.uid, std::move(own), step_.now);
}

Reply Namespace::Apply(const MakeRequest& request) {
  if (auto failure = CheckMake(request)) return *std::move(failure);
  Session& session = *step_.actor;
  const Inode& parent = *files_.Find(request.parent);
  const Time at{std::clamp<int64_t>(request.now.ns, 0, step_.now.ns)};
  auto made = std::make_unique<Inode>();
  Inode& inode = *made;
  inode.type = request.type;
  inode.permissions = static_cast<uint16_t>(request.permissions & 07777);
  inode.uid = request.uid;
  inode.gid = request.gid;
  if (parent.permissions & kSetGid) {
    inode.gid = parent.gid;
    if (request.type == FileType::kDirectory) inode.permissions |= static_cast<uint16_t>(kSetGid);
  }
  inode.link_count = 1;
  inode.access_time = inode.modify_time = inode.change_time = inode.birth_time = at;
  const bool device =
      request.type == FileType::kCharacterDevice || request.type == FileType::kBlockDevice;
  inode.device = device ? request.device : 0;
  inode.task =
      texts_.HoldIfRoom(std::string_view(request.task).substr(0, kTaskBytesMax), request.uid);
  if (request.type == FileType::kRegular || request.type == FileType::kDirectory)
    inode.hints = texts_.Hold(EncodeHints(HintsOfMake(request)), request.uid);
  if (request.type == FileType::kRegular)
    inode.placement_seed =
        FileSeed(cluster_.record.cluster_seed, request.parent, request.name, request.file.value);
  if (request.type == FileType::kSymlink) {
    inode.size_bytes = request.symlink_target.size();
    files_.symlinks.emplace(request.file, request.symlink_target);
  }
  if (request.type == FileType::kDirectory)
    files_.directories.emplace(request.file, std::make_unique<Directory>());
  files_.inodes.emplace(request.file, std::move(made));
  AddEntry(request.parent, request.name, request.file);
  delegations_.NoteMaker(session, request.parent, cluster_.options.turns_to_share);
  lifetimes_.Follow(request.file, inode, request.name);
  files_.TouchDirectory(request.parent, at);
  step_.Touch(request.file);
  if (request.open && request.type == FileType::kRegular) {
    generations_.NoteStreamOpened(request.file);
    session.write_opens.insert(request.file);
    sessions_.write_opens[request.file].insert(session.start.client);
    files_.uncommitted[request.file] = {session.start.client, request.parent, request.name};
  }

  MakeReply reply;
  reply.counts_readers = lifetimes_.CountsReaders(request.file);
  if (request.type == FileType::kRegular) {
    // If there is no room, the file stays unbound and the first write reports it.
    if (request.bind && hints_.HintsOf(inode).settles_placement)
      placing_.Bind(request.file, inode, 0).IgnoreError();
    reply.access = file_view_.AccessTo(request.file, inode, true);
  } else if (request.type == FileType::kDirectory) {
    reply.access = file_view_.AccessTo(request.file, inode, false);
  }
  reply.entry = file_view_.EntryWithInterest(request.file);
  reply.parent_attributes = file_view_.EntryWithInterest(request.parent).attributes;
  reply.delegated = DelegateTo(session, request);
  return reply;
}

bool Namespace::DelegateTo(Session& session, const MakeRequest& request) {
  const FileId directory = request.type == FileType::kDirectory ? request.file : request.parent;
  // Near a limit only the manager makes names, so that a client learns of the limit when it makes a
  // file, and not at its close.
  if (quotas_.IsNearLimit(request.uid)) {
    if (delegations_.Holds(session.start.client, request.parent))
      delegations_.Recall(request.parent);
    return false;
  }
  if (!delegations_.MayDelegate(session, directory)) return false;
  delegations_.Delegate(session, directory);
  step_.promised.emplace_back(step_.request_index, directory);
  return true;
}

Reply Namespace::Apply(const LinkRequest& request) {
  Inode* inode = files_.Find(request.file);
  if (!inode) return Gone(request.file);
  if (inode->type == FileType::kDirectory)
    return Refuse(
        StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
        fmt::format("file {} is a directory and can have only one name", request.file.value));
  if (files_.orphans.contains(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kNoEntry,
                  fmt::format("file {} has no name left", request.file.value));
  if (auto failure = files_.CheckDirectory(request.new_parent)) return *std::move(failure);
  if (auto failure = files_.CheckName(request.new_name)) return *std::move(failure);
  if (request.new_name == "." || request.new_name == ".." ||
      files_.ChildOf(request.new_parent, request.new_name))
    return Exists(request.new_parent, request.new_name);
  if (files_.orphans.contains(request.new_parent))
    return NoEntry(request.new_parent, request.new_name);
  if (auto failure = quotas_.Check(inode->uid, {.names = 1})) return *std::move(failure);
  lifetimes_.Forget(request.file);  // A client wants to keep it.
  staging_.Forget(request.file);    // There is no staged copy of that name.
  AddEntry(request.new_parent, request.new_name, request.file);
  ++inode->link_count;
  inode->change_time = step_.now;
  // With two names it is no longer known only to its maker.
  files_.uncommitted.erase(request.file);
  files_.TouchDirectory(request.new_parent, step_.now);
  step_.Touch(request.file);
  EntryReply reply = EntryIn(request.new_parent);
  reply.entry = file_view_.EntryWithInterest(request.file);
  return reply;
}

Reply Namespace::Apply(const RemoveRequest& request) {
  if (auto failure = files_.CheckDirectory(request.parent)) return *std::move(failure);
  if (auto failure = files_.CheckName(request.name)) return *std::move(failure);
  if (request.name == "." || request.name == "..")
    return Refuse(StatusCode::kInvalidArgument,
                  request.name == "." ? ErrorReason::kInvalid : ErrorReason::kNotEmpty,
                  fmt::format("'{}' cannot be removed", request.name));
  const auto child = files_.ChildOf(request.parent, request.name);
  if (!child) return NoEntry(request.parent, request.name);
  if (request.file.value != 0 && *child != request.file)
    return AnotherFile(request.name, *child, request.file);
  const Inode& inode = *files_.Find(*child);
  if (inode.type == FileType::kDirectory && !request.directory)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kIsDirectory,
                  fmt::format("'{}' is a directory", request.name));
  if (inode.type != FileType::kDirectory && request.directory)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotDirectory,
                  fmt::format("'{}' is not a directory", request.name));
  if (request.directory) {
    if (const size_t entries = files_.FindDirectory(*child)->entries.size(); entries > 0)
      return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotEmpty,
                    fmt::format("directory '{}' has {} entries", request.name, entries));
    if (delegations_.IsHeldElsewhere(*step_.actor, *child))
      return Refuse(
          StatusCode::kUnavailable, ErrorReason::kBusy,
          fmt::format("another mount is making files in directory '{}'; try again", request.name));
  }
  LeaveHints(request, inode);
  RemoveReply reply;
  reply.file = *child;
  EraseEntry(request.parent, request.name);
  files_.TouchDirectory(request.parent, step_.now);
  reply.links_left = Unlink(*child, request.holds_open, step_.actor->start.client);
  // The client also keeps that the name is absent.
  reply.parent_attributes = file_view_.EntryWithInterest(request.parent).attributes;
  return reply;
}

uint32_t Namespace::Unlink(FileId file, bool holder_has_it_open, ClientId holder) {
  Inode& inode = *files_.Find(file);
  const bool directory = inode.type == FileType::kDirectory;
  inode.link_count = directory ? 0 : inode.link_count - 1;
  inode.change_time = step_.now;
  step_.Touch(file);
  if (inode.link_count > 0) return inode.link_count;
  lifetimes_.Forget(file);
  files_.uncommitted.erase(file);
  std::set<ClientId>& holders = files_.orphans[file];
  if (holder_has_it_open) holders.insert(holder);
  if (directory) {
    delegations_.End(file);
    delegations_.EndNames(file, holder);
  }
  step_.orphan_checks.insert(file);
  return 0;
}

Reply Namespace::Apply(const SetAttributesRequest& request) {
  Inode* inode = files_.Find(request.file);
  if (!inode) return Gone(request.file);
  if (request.size_bytes) {
    if (inode->type == FileType::kDirectory)
      return Refuse(
          StatusCode::kFailedPrecondition, ErrorReason::kIsDirectory,
          fmt::format("file {} is a directory, whose size cannot be set", request.file.value));
    if (inode->type != FileType::kRegular)
      return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                    fmt::format("the size of file {} cannot be set", request.file.value));
    if (*request.size_bytes > kFileBytesMax)
      return Refuse(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                    fmt::format("a size of {} bytes exceeds the maximum of {}", *request.size_bytes,
                                kFileBytesMax));
    const Freeze* freeze = files_.FreezeOf(request.file);
    if (freeze && freeze->holder != step_.actor->start.client && inode->bytes &&
        inode->bytes->is_inline)
      return Refuse(
          StatusCode::kAborted, ErrorReason::kBusy,
          fmt::format("another client is moving file {} into objects: try again in a moment",
                      request.file.value));
    if (*request.size_bytes < inode->size_bytes && inode->bytes &&
        !inode->bytes->segments.empty() && !inode->bytes->is_inline &&
        request.generation != inode->bytes->generation)
      return Refuse(StatusCode::kAborted, ErrorReason::kStale,
                    fmt::format("the objects of file {} were truncated by layout generation {}, "
                                "but the current one is {}: truncate them again",
                                request.file.value, request.generation, inode->bytes->generation));
    // A new version would outdate the copies that can replace what is lost.
    if (recovery_rules_.WouldLack(request.file, *inode, *request.size_bytes))
      return Refuse(
          StatusCode::kDataLoss, ErrorReason::kNodeLost,
          fmt::format("file {} keeps its size of {} bytes, because a node has lost some of "
                      "them: truncate it to zero, or try again in a few seconds, when "
                      "another copy may have replaced them",
                      request.file.value, inode->size_bytes));
  }
  if (auto failure = placing_.MayLayOutAnew(request, *inode)) return *std::move(failure);
  if (request.permissions) inode->permissions = static_cast<uint16_t>(*request.permissions & 07777);
  if (request.uid) inode->uid = *request.uid;
  if (request.gid) inode->gid = *request.gid;
  if (request.size_bytes) SetSize(request.file, *inode, *request.size_bytes);
  if (request.lay_out_anew && inode->bytes && !inode->bytes->segments.empty())
    placing_.Unbind(request.file, *inode, Placing::FirstObjects::kNotCut);
  if (request.access_time_now) inode->access_time = step_.now;
  if (request.modify_time_now) inode->modify_time = step_.now;
  if (request.access_time) inode->access_time = *request.access_time;
  if (request.modify_time) inode->modify_time = *request.modify_time;
  inode->change_time = step_.now;
  step_.Touch(request.file);
  AttributesReply reply{file_view_.EntryWithInterest(request.file).attributes};
  if (request.size_bytes == 0U && step_.actor->write_opens.contains(request.file))
    reply.access = file_view_.AccessTo(request.file, *inode, /*may_write=*/true);
  return reply;
}

void Namespace::SetSize(FileId file, Inode& inode, uint64_t size_bytes) {
  inode.modify_time = step_.now;
  const bool shortened = size_bytes < std::exchange(inode.size_bytes, size_bytes);
  generations_.RaiseVersion(file, inode, /*committed=*/true);
  if (!inode.bytes) return;
  if (shortened) {
    recovery_rules_.NoteShortened(file, inode);
    uncut_objects_.NoteFurtherCopies(inode);
  }
  copy_queue_.ReviewLater(file, inode);
  FileBytes& bytes = *inode.bytes;
  if (bytes.is_inline && size_bytes < bytes.inline_valid_bytes) {
    // The bytes cut off must read as zeroes when the file grows again.
    bytes.inline_valid_bytes = size_bytes;
    if (size_bytes == 0) placing_.DropInline(file, inode);
  }
  if (shortened || size_bytes == 0) uncut_objects_.ForgetCommittedBeyondEnd(inode);
}

std::optional<Failure> Namespace::CheckRename(const RenameRequest& request, FileId moved,
                                              std::optional<FileId> target) const {
  const bool moves_directory = files_.Find(moved)->type == FileType::kDirectory;
  if (target && request.no_replace)
    return Refuse(StatusCode::kAlreadyExists, ErrorReason::kExists,
                  fmt::format("'{}' exists and must not be replaced", request.new_name));
  if (moves_directory && files_.IsWithin(request.new_parent, moved))
    return Invalid(fmt::format("directory '{}' cannot be moved below itself", request.old_name));
  if (!target) return std::nullopt;
  const bool onto_directory = files_.Find(*target)->type == FileType::kDirectory;
  if (onto_directory && !moves_directory)
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kIsDirectory,
        fmt::format("'{}' is a directory, but '{}' is not", request.new_name, request.old_name));
  if (!onto_directory && moves_directory)
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kNotDirectory,
        fmt::format("'{}' is not a directory, but '{}' is", request.new_name, request.old_name));
  if (onto_directory && !files_.FindDirectory(*target)->entries.empty())
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotEmpty,
                  fmt::format("directory '{}' has {} entries", request.new_name,
                              files_.FindDirectory(*target)->entries.size()));
  return std::nullopt;
}

std::optional<Failure> Namespace::CheckExchange(const RenameRequest& request, FileId moved,
                                                FileId target) const {
  const bool cycle = (files_.FindDirectory(moved) && files_.IsWithin(request.new_parent, moved)) ||
                     (files_.FindDirectory(target) && files_.IsWithin(request.old_parent, target));
  if (!cycle) return std::nullopt;
  return Invalid(fmt::format("'{}' and '{}' cannot be exchanged: one lies below the other",
                             request.old_name, request.new_name));
}

Reply Namespace::Apply(const RenameRequest& request) {
  for (const FileId parent : {request.old_parent, request.new_parent}) {
    if (auto failure = files_.CheckDirectory(parent)) return *std::move(failure);
  }
  for (const std::string* name : {&request.old_name, &request.new_name}) {
    if (auto failure = files_.CheckName(*name)) return *std::move(failure);
    if (*name == "." || *name == "..")
      return Refuse(StatusCode::kInvalidArgument, ErrorReason::kBusy,
                    fmt::format("'{}' cannot be renamed", *name));
  }
  if (request.no_replace && request.exchange)
    return Invalid("a rename cannot both exchange and refuse to replace");
  const auto moved = files_.ChildOf(request.old_parent, request.old_name);
  const auto target = files_.ChildOf(request.new_parent, request.new_name);
  if (!moved || (request.exchange && !target) || files_.orphans.contains(request.new_parent))
    return Refuse(
        StatusCode::kNotFound, ErrorReason::kNoEntry,
        fmt::format("there is no '{}' to rename{}", moved ? request.new_name : request.old_name,
                    request.exchange ? ", and both must exist to be exchanged" : ""));
  if (request.moved.value != 0 && *moved != request.moved)
    return AnotherFile(request.old_name, *moved, request.moved);
  if (request.replaced && target.value_or(FileId{}) != *request.replaced)
    return AnotherFile(request.new_name, target.value_or(FileId{}), *request.replaced);
  if (request.exchange) {
    bool shared = false;
    if (*moved != *target) {
      if (auto failure = CheckExchange(request, *moved, *target)) return *std::move(failure);
      shared = Exchange(request, *moved, *target);
    }
    return RenameReply{*moved, *target, files_.Find(*target)->link_count, shared};
  }
  // Both are names of one file: nothing changes. The reply shows that by naming the file twice.
  if (moved == target && !request.no_replace)
    return RenameReply{*moved, *moved, files_.Find(*moved)->link_count};
  if (auto failure = CheckRename(request, *moved, target)) return *std::move(failure);
  if (target && delegations_.IsHeldElsewhere(*step_.actor, *target))
    return Refuse(StatusCode::kUnavailable, ErrorReason::kBusy,
                  fmt::format("another mount is making files in directory '{}'; try again",
                              request.new_name));

  RenameReply reply;
  reply.moved = *moved;
  if (target) {
    EraseEntry(request.new_parent, request.new_name);
    reply.replaced = *target;
    const bool directory = files_.Find(*target)->type == FileType::kDirectory;
    reply.replaced_links_left = Unlink(*target, request.holds_open, step_.actor->start.client);
    // A program of the same mount may have looked up the old file and be about to open it; its
    // kernel repeats the lookup only once.
    if (!directory && reply.replaced_links_left == 0) files_.Linger(*target);
  }
  EraseEntry(request.old_parent, request.old_name);
  AddEntry(request.new_parent, request.new_name, *moved);
  RenamedTo(*moved, request.new_parent, request.new_name);
  reply.shared = TouchBothParents(request);
  return reply;
}

bool Namespace::Exchange(const RenameRequest& request, FileId moved, FileId target) {
  EraseEntry(request.old_parent, request.old_name);
  EraseEntry(request.new_parent, request.new_name);
  AddEntry(request.old_parent, request.old_name, target);
  AddEntry(request.new_parent, request.new_name, moved);
  RenamedTo(target, request.old_parent, request.old_name);
  RenamedTo(moved, request.new_parent, request.new_name);
  return TouchBothParents(request);
}

// The kernel takes a name that it keeps along into another directory. So the client must be told of
// changes there, even if the directory is shared.
bool Namespace::TouchBothParents(const RenameRequest& request) {
  files_.TouchDirectory(request.old_parent, step_.now);
  if (request.old_parent == request.new_parent) return !file_view_.Watch(request.old_parent);
  files_.TouchDirectory(request.new_parent, step_.now);
  for (const FileId parent : {request.old_parent, request.new_parent})
    interests_.Add(*step_.actor, parent, *files_.Find(parent));
  return false;
}

void Namespace::RenamedTo(FileId file, FileId parent, const std::string& name) {
  files_.Find(file)->change_time = step_.now;
  step_.Touch(file);
  staging_.Forget(file);  // The staged copy has another name.
  // Rules may match files made below its new path.
  if (files_.FindDirectory(file)) delegations_.RecallRuled(file);
  if (const auto found = files_.uncommitted.find(file); found != files_.uncommitted.end()) {
    found->second.parent = parent;
    found->second.name = name;
  }
}

}  // namespace mosa::manager
