// Names: lookup, create, link, remove, rename, and the cache of names under interest.
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

Outcome<Done> CheckName(std::string_view name) {
  if (name.size() > kNameBytesMax)
    return Fail(
        StatusCode::kInvalidArgument, ErrorReason::kNameTooLong,
        fmt::format("a name of {} bytes exceeds the limit of {}", name.size(), kNameBytesMax));
  if (name.empty())
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kNoEntry, "the name is empty");
  return Done{};
}

// How often a name may pass to another file while it is removed or replaced.
constexpr int kNameAttemptsMax = 8;

bool IsAnotherFile(const Failure& failure) {
  return failure.code == StatusCode::kAborted && failure.reason == ErrorReason::kStale;
}

}  // namespace

// Frees the memory, which clear() would keep.
void Filesystem::Impl::ClearEntries(Names& names) {
  names_count_ -= names.entries.size();
  std::exchange(names.entries, {});
}

void Filesystem::Impl::ClearNames(Inode& directory) {
  ClearEntries(directory.names);
  directory.names.complete = false;
  directory.names.delegated = false;
  directory.names.era = 0;
}

std::optional<FileId> Filesystem::Impl::KnownName(Inode& directory, const std::string& name) {
  const MutexLock lock(directory.mutex);
  if (const auto it = directory.names.unsent.find(name); it != directory.names.unsent.end())
    return it->second;
  const uint64_t era = lease_.ValidEra();
  if (era == 0 || directory.names.era != era) return std::nullopt;
  if (const auto it = directory.names.entries.find(name); it != directory.names.entries.end())
    return it->second;
  if (directory.names.complete) return FileId{};
  return std::nullopt;
}

bool Filesystem::Impl::StoreName(Inode& directory, const std::string& name, FileId file, Mark mark,
                                 bool own) {
  const MutexLock lock(directory.mutex);
  Names& names = directory.names;
  const bool uncertain = own ? recalls_.HappenedForeign(mark.log, directory.file)
                             : recalls_.Happened(mark.log, directory.file);
  if (uncertain) {
    // The answer to a lookup is simply not cached. After an own change, cached names may be wrong.
    if (own && names.entries.erase(name) > 0) --names_count_;
    if (own) names.complete = false;
    return false;
  }
  if (names.era != mark.era) {
    ClearNames(directory);
    names.era = mark.era;
  }
  if (names_count_ >= options_.names_max && !names.entries.contains(name)) {
    ClearEntries(names);
    names.complete = false;
    return false;
  }
  if (names.entries.insert_or_assign(name, file).second) ++names_count_;
  return true;
}

void Filesystem::Impl::ChangeNames(Inode& directory, Mark mark,
                                   const std::vector<std::pair<std::string, FileId>>& changes,
                                   const Attributes* attributes) {
  // The change is noted first, so that an answer from before it cannot overwrite what is stored
  // now.
  if (attributes != nullptr) {
    StoreAttributes(directory, *attributes, mark, true);
  } else {
    const MutexLock lock(directory.mutex);
    recalls_.NoteOwn(directory.file);
    directory.attributes_era = 0;
  }
  for (const auto& [name, file] : changes) StoreName(directory, name, file, mark, true);
}

Outcome<EntryResult> Filesystem::Impl::Lookup(FileId parent, std::string_view name_view) {
  stats_.Add(Counter::kLookups);
  MOSA_RETURN_IF_FAILED(CheckName(name_view));
  const Time asked = clock_.Monotonic();
  const std::string name(name_view);
  const InodePtr directory = inodes_.Get(parent);
  const bool may_keep = kernel_names_.MayKeep(*directory);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::optional<FileId> known = KnownName(*directory, name);
    if (known && known->value == 0) {
      stats_.Add(Counter::kLookupsCached);
      return EntryResult{{}, may_keep ? lease_.Remaining() : Duration{0}, {}};
    }
    const InodePtr child = known ? inodes_.Find(*known) : nullptr;
    if (!child) break;
    bool is_unsent = false;
    {
      const MutexLock lock(child->mutex);
      is_unsent =
          child->make_state == MakeState::kUnsent || child->make_state == MakeState::kSending;
      if (child->make_state != MakeState::kRefused &&
          ((is_unsent && lease_.ValidEra() != 0) || AttributesValid(*child))) {
        stats_.Add(Counter::kLookupsCached);
      } else if (!is_unsent) {
        break;
      }
    }
    if (!is_unsent || lease_.ValidEra() != 0) return EntryOf(*child, may_keep, asked);
    MOSA_RETURN_IF_FAILED(EnsureMade(*child));  // Then look it up like any other file.
  }
  const Mark mark = MarkNow();
  auto reply = calls_.Ask<EntryReply>(LookupRequest{parent, name});
  if (!reply.ok()) {
    if (reply.failure().reason != ErrorReason::kNoEntry) return reply.failure();
    const bool cached = StoreName(*directory, name, FileId{}, mark, false);
    return EntryResult{{}, cached && may_keep ? lease_.Remaining() : Duration{0}, {}};
  }
  const InodePtr child = inodes_.Get(reply->entry.file);
  StoreAttributes(*child, reply->entry.attributes, mark, false);
  const bool cached =
      name != "." && name != ".." && StoreName(*directory, name, reply->entry.file, mark, false);
  return EntryOf(*child, cached && may_keep, asked);
}

Outcome<EntryResult> Filesystem::Impl::Make(const NewEntry& entry, MakeRequest request) {
  MOSA_RETURN_IF_FAILED(CheckName(entry.name));
  const InodePtr parent = inodes_.Get(entry.parent);
  MOSA_RETURN_IF_FAILED(EnsureNameMade(*parent, std::string(entry.name)));
  const bool may_keep = kernel_names_.MayKeep(*parent);
  auto id = file_ids_.Take();
  if (!id.ok()) return id.failure();
  request.parent = entry.parent;
  request.name = std::string(entry.name);
  request.file = *id;
  request.uid = entry.caller.uid;
  request.gid = entry.caller.gid;
  request.device = entry.device;
  request.now = lease_.ManagerNow();
  const uint64_t hints_before = hints_generation_;
  const Mark mark = MarkNow();
  auto reply = calls_.Ask<MakeReply>(request);
  if (!reply.ok()) return reply.failure();
  const InodePtr child = inodes_.Get(reply->entry.file);
  StoreAttributes(*child, reply->entry.attributes, mark, false);
  const bool is_directory = request.type == FileType::kDirectory;
  if (is_directory) {
    const MutexLock lock(child->mutex);
    if (!recalls_.HappenedForeign(mark.log, child->file)) {
      child->names.era = mark.era;
      child->names.complete = true;
      child->names.delegated = reply->delegated;
    }
    if (reply->access) child->names.inline_bytes_max = reply->access->inline_bytes_max;
    child->names.hints_generation = hints_before;
  }
  ChangeNames(*parent, mark, {{request.name, child->file}}, &reply->parent_attributes);
  return EntryOf(*child, may_keep && KnownName(*parent, request.name) == child->file);
}

Outcome<EntryResult> Filesystem::Impl::Link(FileId file, FileId new_parent,
                                            std::string_view new_name) {
  MOSA_RETURN_IF_FAILED(CheckName(new_name));
  const InodePtr inode = inodes_.Get(file);
  const InodePtr parent = inodes_.Get(new_parent);
  MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  const std::string name(new_name);
  MOSA_RETURN_IF_FAILED(EnsureNameMade(*parent, name));
  const bool may_keep = kernel_names_.MayKeep(*parent);
  const Mark mark = MarkNow();
  auto reply = calls_.Ask<EntryReply>(LinkRequest{file, new_parent, name});
  if (!reply.ok()) return reply.failure();
  StoreAttributes(*inode, reply->entry.attributes, mark, true);
  ChangeNames(*parent, mark, {{name, file}}, nullptr);
  return EntryOf(*inode, may_keep && KnownName(*parent, name) == file);
}

// True if `file` is open here. Otherwise opens wait until EndRemoval, because they would find it
// gone.
bool Filesystem::Impl::BeginRemoval(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  const MutexLock lock(inode->mutex);
  if (inode->handles > 0) return true;
  ++inode->removals;
  return false;
}

void Filesystem::Impl::EndRemoval(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  const MutexLock lock(inode->mutex);
  --inode->removals;
  inode->changed.notify_all();
}

// Accounts for a name of `file` that this mount's own change has removed.
void Filesystem::Impl::LostName(FileId file, uint32_t links_left, bool said_held) {
  const InodePtr inode = inodes_.Find(file);
  std::optional<ReleaseRequest> release;
  if (!inode && said_held) release = ReleaseRequest{.file = file};
  if (inode) {
    const MutexLock lock(inode->mutex);
    recalls_.NoteOwn(file);
    inode->attributes_era = 0;
    if (links_left == 0 && inode->handles == 0) inode->access_era = 0;
    DropUnusedInline(*inode);
    inode->attributes.link_count = links_left;
    inode->told_held = inode->told_held || said_held;
    release = inode->EndUse();
  }
  if (release) releases_.Queue(*std::move(release));
  if (links_left == 0) blocks_.DropFile(file);
}

FileId Filesystem::Impl::LastSeen(Inode& directory, const std::string& name) {
  const MutexLock lock(directory.mutex);
  const auto it = directory.names.entries.find(name);
  return it == directory.names.entries.end() ? FileId{} : it->second;
}

Outcome<Done> Filesystem::Impl::SeeAgain(FileId parent, const std::string& name) {
  const InodePtr directory = inodes_.Get(parent);
  {
    const MutexLock lock(directory->mutex);
    if (directory->names.entries.erase(name) > 0) --names_count_;
    directory->names.complete = false;
  }
  const Mark mark = MarkNow();
  const auto reply = calls_.Ask<EntryReply>(LookupRequest{parent, name});
  if (!reply.ok() && reply.failure().reason != ErrorReason::kNoEntry) return reply.failure();
  StoreName(*directory, name, reply.ok() ? reply->entry.file : FileId{}, mark, false);
  return Done{};
}

Outcome<Done> Filesystem::Impl::Remove(FileId parent, std::string_view name_view, bool directory) {
  MOSA_RETURN_IF_FAILED(CheckName(name_view));
  const std::string name(name_view);
  for (int attempt = 1;; ++attempt) {
    Outcome<Done> removed = RemoveOnce(parent, name, directory);
    if (removed.ok() || !IsAnotherFile(removed.failure()) || attempt == kNameAttemptsMax)
      return removed;
    MOSA_RETURN_IF_FAILED(SeeAgain(parent, name));
  }
}

Outcome<Done> Filesystem::Impl::RemoveOnce(FileId parent, const std::string& name, bool directory) {
  const InodePtr inode = inodes_.Get(parent);
  std::vector<Request> requests;
  const InodePtr unsent = directory ? nullptr : BeginMake(*inode, name, &requests);
  if (!unsent) MOSA_RETURN_IF_FAILED(EnsureNameMade(*inode, name));
  const std::optional<FileId> known = unsent ? unsent->file : KnownName(*inode, name);
  if (directory && known && known->value != 0)
    if (const InodePtr victim = inodes_.Find(*known)) MOSA_RETURN_IF_FAILED(EnsureAllMade(*victim));
  // An unknown file may be open here; keeping its bytes a moment longer is safe.
  const bool is_known = !directory && known && known->value != 0;
  const bool held = !directory && (!is_known || BeginRemoval(*known));
  const Mark mark = MarkNow();
  requests.emplace_back(
      RemoveRequest{parent, name, directory, held, unsent ? *known : LastSeen(*inode, name)});
  const size_t asked = requests.size();
  stats_.Add(Counter::kManagerCalls);
  const std::vector<Reply> replies = manager_.Call(std::move(requests), WaitBudget::ForQuestion());
  if (unsent) {
    const MakeState made =
        FinishMake(*unsent, replies.empty() ? ManagerCalls::UnexpectedReply() : replies[0], mark);
    const MutexLock lock(unsent->mutex);
    EndMake(*unsent, made);
  }
  const auto* reply = replies.size() == asked ? std::get_if<RemoveReply>(&replies.back()) : nullptr;
  if (reply != nullptr) {
    ChangeNames(*inode, mark, {{name, FileId{}}}, &reply->parent_attributes);
    LostName(reply->file, directory ? 0 : reply->links_left, held);
  }
  if (unsent) recalls_.NoteOwn(parent);
  if (is_known && !held) EndRemoval(*known);
  if (reply != nullptr) return Done{};
  const auto* failure = replies.empty() ? nullptr : std::get_if<Failure>(&replies.back());
  return failure != nullptr ? *failure : ManagerCalls::UnexpectedReply();
}

// If `name` is a file that the manager does not know, makes its make the first of `requests`. The
// caller ends it with FinishMake.
InodePtr Filesystem::Impl::BeginMake(Inode& directory, const std::string& name,
                                     std::vector<Request>* requests) {
  FileId file;
  {
    const MutexLock lock(directory.mutex);
    const auto it = directory.names.unsent.find(name);
    if (it == directory.names.unsent.end()) return nullptr;
    file = it->second;
  }
  InodePtr inode = inodes_.Find(file);
  if (!inode) return nullptr;
  const MutexLock lock(inode->mutex);
  if (inode->make_state != MakeState::kUnsent) return nullptr;
  inode->make_state = MakeState::kSending;
  requests->emplace_back(inode->make);
  return inode;
}

Outcome<Done> Filesystem::Impl::Rename(const RenameRequest& wanted) {
  MOSA_RETURN_IF_FAILED(CheckName(wanted.old_name));
  MOSA_RETURN_IF_FAILED(CheckName(wanted.new_name));
  for (int attempt = 1;; ++attempt) {
    Outcome<Done> renamed = RenameOnce(wanted);
    if (renamed.ok() || !IsAnotherFile(renamed.failure()) || attempt == kNameAttemptsMax)
      return renamed;
    MOSA_RETURN_IF_FAILED(SeeAgain(wanted.old_parent, wanted.old_name));
    MOSA_RETURN_IF_FAILED(SeeAgain(wanted.new_parent, wanted.new_name));
  }
}

Outcome<Done> Filesystem::Impl::RenameOnce(const RenameRequest& wanted) {
  const InodePtr source = inodes_.Get(wanted.old_parent);
  const InodePtr target = inodes_.Get(wanted.new_parent);
  MOSA_RETURN_IF_FAILED(EnsureNameMade(*source, wanted.old_name));
  MOSA_RETURN_IF_FAILED(EnsureNameMade(*target, wanted.new_name));
  const std::optional<FileId> replaced = KnownName(*target, wanted.new_name);
  if (replaced && replaced->value != 0)
    if (const InodePtr victim = inodes_.Find(*replaced))
      MOSA_RETURN_IF_FAILED(EnsureAllMade(*victim));
  RenameRequest request = wanted;
  const bool is_known = replaced && replaced->value != 0;
  request.holds_open = !is_known || BeginRemoval(*replaced);
  request.moved = LastSeen(*source, wanted.old_name);
  request.replaced = replaced;
  if (const FileId seen = LastSeen(*target, wanted.new_name); !replaced && seen != FileId{})
    request.replaced = seen;
  if (source != target) kernel_names_.NoteKept(*target);
  if (source != target && request.exchange) kernel_names_.NoteKept(*source);
  const Mark mark = MarkNow();
  const auto reply = calls_.Ask<RenameReply>(request);
  if (reply.ok()) NoteRenamed(request, *reply, *source, *target, mark);
  if (is_known && !request.holds_open) EndRemoval(*replaced);
  return reply.ok() ? Outcome<Done>(Done{}) : reply.failure();
}

void Filesystem::Impl::NoteRenamed(const RenameRequest& request, const RenameReply& reply,
                                   Inode& source, Inode& target, Mark mark) {
  // For two names of one file rename does nothing, and the old name stays.
  const bool nothing_done = reply.replaced == reply.moved;
  if (!nothing_done) {
    const FileId left = request.exchange && reply.replaced ? *reply.replaced : FileId{};
    ChangeNames(source, mark, {{request.old_name, left}}, nullptr);
    ChangeNames(target, mark, {{request.new_name, reply.moved}}, nullptr);
    if (reply.replaced && !request.exchange)
      LostName(*reply.replaced, reply.replaced_links_left, request.holds_open);
  }
  for (const FileId file : {reply.moved, reply.replaced.value_or(FileId{})}) {
    if (const InodePtr inode = inodes_.Find(file)) {
      const MutexLock lock(inode->mutex);
      recalls_.NoteOwn(file);
      inode->attributes_era = 0;
    }
  }
}

Outcome<std::string> Filesystem::Impl::ReadSymlink(FileId file) {
  auto reply = calls_.Ask<ReadSymlinkReply>(ReadSymlinkRequest{file});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->target);
}

Outcome<Done> Filesystem::Impl::EnsureMade(Inode& inode, bool bare) {
  bool outdated = false;
  const Outcome<Done> sent = CommitOnce(inode, {.make_only = true, .bare = bare}, &outdated);
  const MutexLock lock(inode.mutex);
  const bool unheard = !sent.ok() && sent.failure().reason == ErrorReason::kTimedOut;
  // The next commit reports, or fails with, what could not be sent with the make.
  return inode.make_state == MakeState::kSent && !unheard ? Outcome<Done>(Done{}) : sent;
}

MakeState Filesystem::Impl::FinishMake(Inode& inode, const Reply& reply, Mark mark) {
  const auto* made = std::get_if<MakeReply>(&reply);
  const auto* failure = std::get_if<Failure>(&reply);
  // A timed-out make may have run, and will not run later. Only the manager knows whether the file
  // exists.
  const bool unheard = failure != nullptr && failure->reason == ErrorReason::kTimedOut;
  FileId parent;
  std::string name;
  {
    const MutexLock lock(inode.mutex);
    parent = inode.make.parent;
    name = inode.make.name;
    if (made != nullptr) {
      const Time changed = inode.attributes.change_time;
      inode.attributes = made->entry.attributes;
      inode.attributes.change_time = std::max(changed, inode.attributes.change_time);
      inode.attributes_era = recalls_.HappenedForeign(mark.log, inode.file) ? 0 : mark.era;
      if (made->access) {
        inode.access = std::make_shared<DataAccess>(*made->access);
        inode.access_era = inode.attributes_era;
      }
      inode.access_version = inode.inline_version = made->entry.attributes.data_version;
      inode.counts_readers = made->counts_readers;
      inode.manager_counts_open = true;
      ++inode.own_changes;
    } else if (unheard) {
      inode.manager_counts_open = true;
      inode.attributes_era = inode.access_era = 0;
    } else {
      inode.make_failure = failure != nullptr ? *failure : ManagerCalls::UnexpectedReply();
      inode.error = inode.make_failure;
      ++inode.error_count;
    }
  }
  const InodePtr directory = inodes_.Get(parent);
  const MutexLock lock(directory->mutex);
  directory->names.unsent.erase(name);
  if (made == nullptr) {
    if (directory->names.entries.erase(name) > 0) --names_count_;
    directory->names.complete = false;
    directory->attributes_era = 0;
  } else if (directory->names.unsent.empty()) {
    // The last of several answers is valid, and their order is unknown.
    const bool certain = !recalls_.Happened(mark.log, parent);
    if (certain && directory->attributes_era != 0) directory->attributes = made->parent_attributes;
    if (!certain) directory->attributes_era = 0;
  }
  return made != nullptr || unheard ? MakeState::kSent : MakeState::kRefused;
}

void Filesystem::Impl::EndMake(Inode& inode, MakeState state) {
  inode.make_state = state;
  std::exchange(inode.make, {});  // Frees its memory, too.
  inode.changed.notify_all();
}

Outcome<Done> Filesystem::Impl::EnsureAllMade(Inode& directory) {
  std::vector<FileId> files;
  {
    const MutexLock lock(directory.mutex);
    for (const auto& [name, file] : directory.names.unsent) files.push_back(file);
  }
  for (const FileId file : files)
    if (const InodePtr inode = inodes_.Find(file)) MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  return Done{};
}

Outcome<Done> Filesystem::Impl::EnsureNameMade(Inode& directory, const std::string& name) {
  FileId file;
  {
    const MutexLock lock(directory.mutex);
    const auto it = directory.names.unsent.find(name);
    if (it == directory.names.unsent.end()) return Done{};
    file = it->second;
  }
  const InodePtr inode = inodes_.Find(file);
  return inode ? EnsureMade(*inode) : Outcome<Done>(Done{});
}

}  // namespace mosa::sai
