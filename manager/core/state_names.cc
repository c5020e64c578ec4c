// The namespace: POSIX semantics of names, links and directories. The kernel checks permissions.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"
#include "manager/core/state_recovery.h"

namespace mosa::manager {
namespace {

constexpr uint32_t kListEntriesMax = 4096;
constexpr uint32_t kListEntriesDefault = 1024;
constexpr size_t kSymlinkBytesMax = 4095;
constexpr uint32_t kSetGid = 02000;
constexpr Duration kOrphanLinger = Milliseconds(250);

Failure Gone(FileId file) {
  return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                fmt::format("file {} is gone", file.value));
}

Failure NoEntry(FileId parent, std::string_view name) {
  return Refuse(StatusCode::kNotFound, ErrorReason::kNoEntry,
                fmt::format("directory {} has no '{}'", parent.value, name));
}

Failure Exists(FileId parent, std::string_view name) {
  return Refuse(StatusCode::kAlreadyExists, ErrorReason::kExists,
                fmt::format("directory {} already has '{}'", parent.value, name));
}

}  // namespace

std::optional<Failure> ManagerCore::State::CheckDirectory(FileId directory) const {
  const Inode* inode = Find(directory);
  if (!inode) return Gone(directory);
  if (inode->type != FileType::kDirectory)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotDirectory,
                  fmt::format("file {} is not a directory", directory.value));
  return std::nullopt;
}

std::optional<Failure> ManagerCore::State::CheckName(std::string_view name) const {
  if (name.size() > kNameBytesMax)
    return Refuse(
        StatusCode::kInvalidArgument, ErrorReason::kNameTooLong,
        fmt::format("a name of {} bytes exceeds the maximum of {}", name.size(), kNameBytesMax));
  if (name.empty() || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  "a name must not be empty and must not contain '/' or NUL");
  return std::nullopt;
}

Attributes ManagerCore::State::AttributesOf(FileId file, const Inode& inode) const {
  Attributes a{.type = inode.type,
               .permissions = inode.permissions,
               .uid = inode.uid,
               .gid = inode.gid,
               .link_count = inode.link_count,
               .device = inode.device,
               .size_bytes = inode.size_bytes,
               .allocated_bytes = 0,
               .access_time = inode.access_time,
               .modify_time = inode.modify_time,
               .change_time = inode.change_time,
               .birth_time = inode.birth_time,
               .data_version = inode.data_version};
  if (inode.type == FileType::kDirectory) {
    const Directory& directory = *FindDirectory(file);
    a.link_count = orphans_.contains(file) ? 0 : 2 + directory.subdirectories;
    a.size_bytes = directory.entries.size();
  }
  if (inode.bytes) {
    if (inode.bytes->is_inline)
      a.allocated_bytes = (inode.bytes->inline_valid_bytes + 511) / 512 * 512;
    // Programs look for holes by this value, so further copies do not count.
    const bool all_count = inode.bytes->copies.empty();
    const std::vector<NodeId> first = all_count ? std::vector<NodeId>() : LayoutOf(inode).Nodes();
    for (const NodeObject& object : inode.bytes->objects) {
      const bool counts = all_count || std::binary_search(first.begin(), first.end(), object.node);
      if (counts && !object.uncut && HasCommitted(object) && !object.lost)
        a.allocated_bytes += object.allocated_bytes;
    }
  }
  return a;
}

Entry ManagerCore::State::EntryWithInterest(FileId file) {
  Inode& inode = *Find(file);
  interests_.Add(actor(), file, inode);
  return {file, AttributesOf(file, inode)};
}

void ManagerCore::State::Touch(FileId file) {
  changed_ = true;
  recharges_.push_back(file);
  dirty_.insert(file);
  touched_.insert(file);
}

void ManagerCore::State::TouchDirectory(FileId directory, Time at) {
  Inode& inode = *Find(directory);
  // A deferred make may carry an earlier time. The directory's times never go back.
  inode.change_time = std::max(inode.change_time, at);
  inode.modify_time = inode.change_time;
  Touch(directory);
}

void ManagerCore::State::AddEntry(FileId parent, const std::string& name, FileId child) {
  Directory& directory = *FindDirectory(parent);
  directory.entries.emplace(name, child);
  Find(child)->named_in = parent;
  if (Directory* made = FindDirectory(child)) {
    made->parent = parent;
    made->name = name;
    ++directory.subdirectories;
  }
  if (const auto found = lifetimes_.find(child); found != lifetimes_.end())
    found->second.name = name;
  effects_.writes.Put(EntryKey(parent, name), Encode(EntryRecord{child}));
}

void ManagerCore::State::EraseEntry(FileId parent, std::string_view name) {
  Directory& directory = *FindDirectory(parent);
  const auto found = directory.entries.find(name);
  if (FindDirectory(found->second)) --directory.subdirectories;
  effects_.writes.Delete(EntryKey(parent, name));
  directory.entries.erase(found);
}

// ---- reading

Reply ManagerCore::State::Apply(const LookupRequest& request) {
  if (const auto failure = CheckDirectory(request.parent)) return *failure;
  interests_.Add(actor(), request.parent, *Find(request.parent));
  if (request.name == ".") return EntryReply{EntryWithInterest(request.parent)};
  if (request.name == "..") {
    const FileId parent = FindDirectory(request.parent)->parent;
    if (!Find(parent)) return Gone(parent);
    return EntryReply{EntryWithInterest(parent)};
  }
  if (const auto failure = CheckName(request.name)) return *failure;
  const auto child = ChildOf(request.parent, request.name);
  if (!child) return NoEntry(request.parent, request.name);
  return EntryReply{EntryWithInterest(*child)};
}

Reply ManagerCore::State::Apply(const GetAttributesRequest& request) {
  if (!Find(request.file)) return Gone(request.file);
  return AttributesReply{EntryWithInterest(request.file).attributes};
}

Reply ManagerCore::State::Apply(const ListDirectoryRequest& request) {
  if (const auto failure = CheckDirectory(request.directory)) return *failure;
  interests_.Add(actor(), request.directory, *Find(request.directory));
  const uint32_t entries_max = request.entries_max == 0
                                   ? kListEntriesDefault
                                   : std::min(request.entries_max, kListEntriesMax);
  const Directory& directory = *FindDirectory(request.directory);
  ListDirectoryReply reply;
  reply.parent = directory.parent;
  auto entry = request.after_name.empty() ? directory.entries.begin()
                                          : directory.entries.upper_bound(request.after_name);
  for (; entry != directory.entries.end() && reply.items.size() < entries_max; ++entry)
    reply.items.push_back({entry->first, EntryWithInterest(entry->second)});
  reply.more = entry != directory.entries.end();
  return reply;
}

Reply ManagerCore::State::Apply(const ReadSymlinkRequest& request) {
  const auto found = symlinks_.find(request.file);
  if (found != symlinks_.end()) return ReadSymlinkReply{found->second};
  if (!Find(request.file)) return Gone(request.file);
  return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                fmt::format("file {} is not a symbolic link", request.file.value));
}

// ---- making

std::optional<Failure> ManagerCore::State::CheckMake(const MakeRequest& request) const {
  if (auto failure = CheckDirectory(request.parent)) return failure;
  if (auto failure = CheckName(request.name)) return failure;
  if (request.name == "." || request.name == ".." || ChildOf(request.parent, request.name))
    return Exists(request.parent, request.name);
  if (orphans_.contains(request.parent))
    return Refuse(StatusCode::kNotFound, ErrorReason::kNoEntry,
                  fmt::format("directory {} was removed", request.parent.value));
  const auto invalid = [](std::string message) {
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid, std::move(message));
  };
  if (request.type < FileType::kRegular || request.type > FileType::kBlockDevice)
    return invalid(fmt::format("unknown file type {}", static_cast<int>(request.type)));
  if (request.file.value <= kRootFile.value || request.file.value >= cluster_.next_file_id)
    return invalid(fmt::format("file id {} was never allocated to a client", request.file.value));
  if (Find(request.file)) return invalid(fmt::format("file id {} is in use", request.file.value));
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
    if (auto failure = CheckTextGrowth(request.uid)) return failure;
  return quotas_.Check(request.uid, {.names = 1, .attribute_bytes = request.symlink_target.size()});
}

Reply ManagerCore::State::Apply(const MakeRequest& request) {
  if (auto failure = CheckMake(request)) return *std::move(failure);
  Session& session = actor();
  const Inode& parent = *Find(request.parent);
  const Time at{std::clamp<int64_t>(request.now.ns, 0, now_.ns)};
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
        FileSeed(cluster_.cluster_seed, request.parent, request.name, request.file.value);
  if (request.type == FileType::kSymlink) {
    inode.size_bytes = request.symlink_target.size();
    symlinks_.emplace(request.file, request.symlink_target);
  }
  if (request.type == FileType::kDirectory)
    directories_.emplace(request.file, std::make_unique<Directory>());
  inodes_.emplace(request.file, std::move(made));
  AddEntry(request.parent, request.name, request.file);
  FollowLifetime(request.file, inode, request.name);
  TouchDirectory(request.parent, at);
  Touch(request.file);
  if (request.open && request.type == FileType::kRegular) {
    session.write_opens.insert(request.file);
    write_opens_[request.file].insert(session.start.client);
    uncommitted_[request.file] = {session.start.client, request.parent, request.name};
  }

  MakeReply reply;
  reply.counts_readers = CountsReaders(request.file);
  if (request.type == FileType::kRegular) {
    // If there is no room, the file stays unbound and the first write reports it.
    if (request.bind && HintsOf(inode).settles_placement)
      Bind(request.file, inode, 0).IgnoreError();
    reply.access = AccessTo(request.file, inode, true);
  } else if (request.type == FileType::kDirectory) {
    reply.access = AccessTo(request.file, inode, false);
  }
  reply.entry = EntryWithInterest(request.file);
  reply.parent_attributes = EntryWithInterest(request.parent).attributes;
  const FileId delegated = request.type == FileType::kDirectory ? request.file : request.parent;
  // Near a limit only the manager makes names, so that a client learns of the limit when it makes a
  // file, and not at its close.
  if (quotas_.IsNearLimit(request.uid)) {
    if (HoldsDelegation(session.start.client, request.parent)) RecallDelegation(request.parent);
  } else if (MayDelegate(session, delegated)) {
    Delegate(session, delegated);
    reply.delegated = true;
    promised_.emplace_back(request_index_, delegated);
  }
  return reply;
}

Reply ManagerCore::State::Apply(const LinkRequest& request) {
  Inode* inode = Find(request.file);
  if (!inode) return Gone(request.file);
  if (inode->type == FileType::kDirectory)
    return Refuse(
        StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
        fmt::format("file {} is a directory and can have only one name", request.file.value));
  if (orphans_.contains(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kNoEntry,
                  fmt::format("file {} has no name left", request.file.value));
  if (auto failure = CheckDirectory(request.new_parent)) return *std::move(failure);
  if (auto failure = CheckName(request.new_name)) return *std::move(failure);
  if (request.new_name == "." || request.new_name == ".." ||
      ChildOf(request.new_parent, request.new_name))
    return Exists(request.new_parent, request.new_name);
  if (orphans_.contains(request.new_parent)) return NoEntry(request.new_parent, request.new_name);
  if (auto failure = quotas_.Check(inode->uid, {.names = 1})) return *std::move(failure);
  ForgetLifetime(request.file);  // A client wants to keep it.
  ForgetStaged(request.file);    // There is no staged copy of that name.
  AddEntry(request.new_parent, request.new_name, request.file);
  ++inode->link_count;
  inode->change_time = now_;
  // With two names it is no longer known only to its maker.
  uncommitted_.erase(request.file);
  TouchDirectory(request.new_parent, now_);
  Touch(request.file);
  interests_.Add(actor(), request.new_parent, *Find(request.new_parent));
  return EntryReply{EntryWithInterest(request.file)};
}

// ---- removing

Reply ManagerCore::State::Apply(const RemoveRequest& request) {
  if (auto failure = CheckDirectory(request.parent)) return *std::move(failure);
  if (auto failure = CheckName(request.name)) return *std::move(failure);
  if (request.name == "." || request.name == "..")
    return Refuse(StatusCode::kInvalidArgument,
                  request.name == "." ? ErrorReason::kInvalid : ErrorReason::kNotEmpty,
                  fmt::format("'{}' cannot be removed", request.name));
  const auto child = ChildOf(request.parent, request.name);
  if (!child) return NoEntry(request.parent, request.name);
  if (request.file.value != 0 && *child != request.file)
    return AnotherFile(request.name, *child, request.file);
  const Inode& inode = *Find(*child);
  if (inode.type == FileType::kDirectory && !request.directory)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kIsDirectory,
                  fmt::format("'{}' is a directory", request.name));
  if (inode.type != FileType::kDirectory && request.directory)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotDirectory,
                  fmt::format("'{}' is not a directory", request.name));
  if (request.directory) {
    if (const size_t entries = FindDirectory(*child)->entries.size(); entries > 0)
      return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotEmpty,
                    fmt::format("directory '{}' has {} entries", request.name, entries));
    if (IsDelegatedElsewhere(actor(), *child))
      return Refuse(StatusCode::kUnavailable, ErrorReason::kBusy,
                    fmt::format("directory '{}' is delegated; try again", request.name));
  }
  RemoveReply reply;
  reply.file = *child;
  EraseEntry(request.parent, request.name);
  TouchDirectory(request.parent, now_);
  reply.links_left = Unlink(*child, request.holds_open, actor().start.client);
  // The client also keeps that the name is absent.
  reply.parent_attributes = EntryWithInterest(request.parent).attributes;
  return reply;
}

uint32_t ManagerCore::State::Unlink(FileId file, bool holder_has_it_open, ClientId holder) {
  Inode& inode = *Find(file);
  const bool directory = inode.type == FileType::kDirectory;
  inode.link_count = directory ? 0 : inode.link_count - 1;
  inode.change_time = now_;
  Touch(file);
  if (inode.link_count > 0) return inode.link_count;
  ForgetLifetime(file);
  uncommitted_.erase(file);
  std::set<ClientId>& holders = orphans_[file];
  if (holder_has_it_open) holders.insert(holder);
  if (directory) EndDelegation(file);
  orphan_checks_.insert(file);
  return 0;
}

// Drops a nameless file once no client has it open or may have it open.
void ManagerCore::State::CheckOrphan(FileId file) {
  const auto found = orphans_.find(file);
  if (found == orphans_.end() || grace_end_) return;
  if (!found->second.empty() || recalls_by_file_.contains(file) || write_opens_.contains(file))
    return;
  if (const auto until = lingering_.find(file); until != lingering_.end() && until->second > now_)
    return;
  DropInode(file);
}

void ManagerCore::State::Linger(FileId orphan) {
  lingering_[orphan] = now_ + kOrphanLinger;
  Schedule(now_ + kOrphanLinger);
}

void ManagerCore::State::DropInode(FileId file) {
  Inode& inode = *Find(file);
  ForgetCopies(file);
  copy_.leftovers.erase(file);
  if (inode.bytes) {
    if (!groups_.empty()) groups_.Leave(GroupOf(inode), effects_.writes);
    for (const NodeId id : UncutNodesOf(inode))
      if (Node* const node = FindNode(id)) node->uncut.erase(file);
    OrderDrop(*inode.bytes, file);
    DropInline(file, inode);
    SetReason(*inode.bytes, "");
  }
  freezes_.erase(file);
  if (const auto found = xattrs_.find(file); found != xattrs_.end()) {
    for (const auto& [name, value] : found->second.values())
      effects_.writes.Delete(XattrKey(file, name));
    xattrs_.erase(found);
  }
  std::vector<LockTable::Waiting> orphaned;
  locks_.Forget(file, orphaned);
  AnswerLocks(orphaned, Gone(file));
  for (const ClientId client : interests_.Of(file, inode, ClientId()))
    interests_.Drop(*FindSession(client), file, inode);
  texts_.Drop(inode.task);
  texts_.Drop(inode.hints);
  quotas_.Recharge(inode.charged, {});
  symlinks_.erase(file);
  directories_.erase(file);
  orphans_.erase(file);
  fences_.ForgetFile(file);
  lingering_.erase(file);
  uncommitted_.erase(file);
  abandoned_.erase(file);
  ForgetStaged(file);
  contended_.erase(file);
  inodes_.erase(file);
  dirty_.erase(file);
  touched_.erase(file);
  effects_.writes.Delete(InodeKey(file));
}

// ---- attributes

Reply ManagerCore::State::Apply(const SetAttributesRequest& request) {
  Inode* inode = Find(request.file);
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
    const Freeze* freeze = FreezeOf(request.file);
    if (freeze && freeze->holder != actor().start.client && inode->bytes && inode->bytes->is_inline)
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
    if (RecoveryRules{*this}.WouldLack(request.file, *inode, *request.size_bytes))
      return Refuse(
          StatusCode::kDataLoss, ErrorReason::kNodeLost,
          fmt::format("file {} keeps its size of {} bytes, because a node has lost some of "
                      "them: truncate it to zero, or try again in a few seconds, when "
                      "another copy may have replaced them",
                      request.file.value, inode->size_bytes));
  }
  if (auto failure = MayLayOutAnew(request, *inode)) return *std::move(failure);
  if (request.permissions) inode->permissions = static_cast<uint16_t>(*request.permissions & 07777);
  if (request.uid) inode->uid = *request.uid;
  if (request.gid) inode->gid = *request.gid;
  if (request.size_bytes) SetSize(request.file, *inode, *request.size_bytes);
  if (request.lay_out_anew && inode->bytes && !inode->bytes->segments.empty())
    Unbind(request.file, *inode, FirstObjects::kNotCut);
  if (request.access_time_now) inode->access_time = now_;
  if (request.modify_time_now) inode->modify_time = now_;
  if (request.access_time) inode->access_time = *request.access_time;
  if (request.modify_time) inode->modify_time = *request.modify_time;
  inode->change_time = now_;
  Touch(request.file);
  return AttributesReply{EntryWithInterest(request.file).attributes};
}

void ManagerCore::State::SetSize(FileId file, Inode& inode, uint64_t size_bytes) {
  inode.modify_time = now_;
  const bool shortened = size_bytes < std::exchange(inode.size_bytes, size_bytes);
  RaiseVersion(file, inode, /*committed=*/true);
  if (!inode.bytes) return;
  if (shortened) {
    RecoveryRules{*this}.NoteShortened(file, inode);
    NoteFurtherCopiesUncut(inode);
  }
  ReviewCopiesLater(file, inode);
  FileBytes& bytes = *inode.bytes;
  if (bytes.is_inline && size_bytes < bytes.inline_valid_bytes) {
    // The bytes cut off must read as zeroes when the file grows again.
    bytes.inline_valid_bytes = size_bytes;
    if (size_bytes == 0) DropInline(file, inode);
  }
  if (shortened || size_bytes == 0) ForgetCommittedBeyondEnd(inode);
}

}  // namespace mosa::manager
