#include "client-sai/sai/names.h"

#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <utility>

#include "client-sai/sai/failures.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// The requests may have run.
bool IsUnheard(const std::vector<Reply>& replies) {
  const auto* failure = replies.empty() ? nullptr : std::get_if<Failure>(&replies.back());
  return failure != nullptr && failure->reason == ErrorReason::kTimedOut;
}

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

Outcome<EntryResult> Namespace::Lookup(FileId parent, std::string_view name_view,
                                       std::optional<uint32_t> uid) {
  stats_.Add(Counter::kLookups);
  MOSA_RETURN_IF_FAILED(CheckName(name_view));
  const Time asked = clock_.Monotonic();
  const std::string name(name_view);
  const InodePtr directory = inodes_.Get(parent);
  const bool may_keep = kernel_names_.MayKeep(*directory);
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::optional<FileId> known = name_cache_.Find(*directory, name);
    const bool is_seen = !known;
    if (is_seen) known = name_cache_.FindSeen(*directory, name);
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
          child->making.state == MakeState::kUnsent || child->making.state == MakeState::kSending;
      if (child->making.state != MakeState::kRefused &&
          ((is_unsent && lease_.ValidEra() != 0) ||
           (is_seen ? attributes_.AreWatched(*child) : attributes_.AreValid(*child)))) {
        stats_.Add(Counter::kLookupsCached);
      } else if (!is_unsent) {
        break;
      }
    }
    // The kernel would not forget a name that was seen when the file is recalled.
    if (!is_unsent || lease_.ValidEra() != 0)
      return attributes_.EntryOf(*child, may_keep && !is_seen, asked);
    MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*child));  // Then look it up like any other file.
  }
  LookupRequest request{parent, name};
  if (uid && name_cache_.MayMakeUnasked(*directory)) request.reserve_for = uid;
  const Mark mark = recalls_.Now();
  auto reply = calls_.Ask<EntryReply>(request);
  if (!reply.ok()) {
    if (reply.failure().reason != ErrorReason::kNoEntry) return reply.failure();
    const bool cached = name_cache_.Store(*directory, name, FileId{}, mark, false);
    return EntryResult{{}, cached && may_keep ? lease_.Remaining() : Duration{0}, {}};
  }
  if (reply->shared_parent) attributes_.Store(*directory, *reply->shared_parent, mark, false);
  if (reply->entry.file == FileId{}) {
    if (reply->reserved) name_cache_.Reserve(*directory, name, *uid, mark);
    return EntryResult{};
  }
  const InodePtr child = inodes_.Get(reply->entry.file);
  NoteForeignChange(*child, reply->entry.attributes);
  attributes_.Store(*child, reply->entry.attributes, mark, false);
  bool cached = false;
  if (reply->shared_parent) {
    NameCache::Saw(*directory, name, reply->entry, mark);
  } else if (name != "." && name != "..") {
    cached = name_cache_.Store(*directory, name, child->file, mark, false);
  }
  return attributes_.EntryOf(*child, cached && may_keep, asked);
}

// A directory that this mount has made or changed it knows before it looks it up.
void Namespace::NoteForeignChange(Inode& directory, const Attributes& found) {
  if (found.type != FileType::kDirectory) return;
  {
    const MutexLock lock(directory.mutex);
    if (directory.known.attributes.change_time != Time{}) return;
  }
  kernel_names_.NoteForeignChange(lease_.ManagerNow() - found.change_time);
}

Outcome<EntryResult> Namespace::Make(const NewEntry& entry, MakeRequest request) {
  MOSA_RETURN_IF_FAILED(CheckName(entry.name));
  const InodePtr parent = inodes_.Get(entry.parent);
  MOSA_RETURN_IF_FAILED(commits_.EnsureNameMade(*parent, std::string(entry.name)));
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
  const uint64_t hints_before = name_cache_.hints_generation();
  name_cache_.EndSeen(*parent, request.name);
  const Mark mark = recalls_.Now();
  auto reply = calls_.Ask<MakeReply>(request);
  if (!reply.ok()) return reply.failure();
  const InodePtr child = inodes_.Get(reply->entry.file);
  attributes_.Store(*child, reply->entry.attributes, mark, false);
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
  const bool shared = reply->parent_attributes.shared;
  name_cache_.Change(*parent, mark, {{request.name, child->file}}, &reply->parent_attributes,
                     shared);
  return attributes_.EntryOf(*child,
                             may_keep && name_cache_.Find(*parent, request.name) == child->file);
}

Outcome<EntryResult> Namespace::Link(FileId file, FileId new_parent, std::string_view new_name) {
  MOSA_RETURN_IF_FAILED(CheckName(new_name));
  const InodePtr inode = inodes_.Get(file);
  const InodePtr parent = inodes_.Get(new_parent);
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inode));
  const std::string name(new_name);
  MOSA_RETURN_IF_FAILED(commits_.EnsureNameMade(*parent, name));
  const bool may_keep = kernel_names_.MayKeep(*parent);
  name_cache_.EndSeen(*parent, name);
  const Mark mark = recalls_.Now();
  auto reply = calls_.Ask<EntryReply>(LinkRequest{file, new_parent, name});
  if (!reply.ok()) return reply.failure();
  attributes_.Store(*inode, reply->entry.attributes, mark, true);
  const Attributes* const shared = reply->shared_parent ? &*reply->shared_parent : nullptr;
  name_cache_.Change(*parent, mark, {{name, file}}, shared, shared != nullptr);
  return attributes_.EntryOf(*inode, may_keep && name_cache_.Find(*parent, name) == file);
}

Outcome<Done> Namespace::Remove(FileId parent, std::string_view name_view, bool directory) {
  MOSA_RETURN_IF_FAILED(CheckName(name_view));
  const std::string name(name_view);
  for (int attempt = 1;; ++attempt) {
    Outcome<Done> removed = RemoveOnce(parent, name, directory);
    if (removed.ok() || !IsAnotherFile(removed.failure()) || attempt == kNameAttemptsMax)
      return removed;
    MOSA_RETURN_IF_FAILED(SeeAgain(parent, name));
  }
}

Outcome<Done> Namespace::RemoveOnce(FileId parent, const std::string& name, bool directory) {
  const InodePtr inode = inodes_.Get(parent);
  std::vector<Request> requests;
  const InodePtr unsent = directory ? nullptr : BeginMake(*inode, name, &requests);
  if (!unsent) MOSA_RETURN_IF_FAILED(commits_.EnsureNameMade(*inode, name));
  // What may be out of date serves, too: the manager refuses to remove another file than that.
  const std::optional<FileId> known = unsent ? unsent->file : name_cache_.Guess(*inode, name);
  if (directory && known && known->value != 0)
    if (const InodePtr victim = inodes_.Find(*known))
      MOSA_RETURN_IF_FAILED(commits_.EnsureAllMade(*victim));
  // An unknown file may be open here; keeping its bytes a moment longer is safe.
  const bool is_known = !directory && known && known->value != 0;
  const bool held = !directory && (!is_known || BeginRemoval(*known));
  name_cache_.EndSeen(*inode, name);
  const Mark mark = recalls_.Now();
  requests.emplace_back(RemoveRequest{parent, name, directory, held, known.value_or(FileId{})});
  const size_t asked = requests.size();
  const std::vector<Reply> replies = calls_.AskEach(std::move(requests));
  if (unsent) {
    const MakeState made = commits_.FinishMake(
        *unsent, replies.empty() ? ManagerCalls::UnexpectedReply() : replies[0], mark);
    const MutexLock lock(unsent->mutex);
    Commits::EndMake(*unsent, made);
  }
  const auto* reply = replies.size() == asked ? std::get_if<RemoveReply>(&replies.back()) : nullptr;
  if (reply != nullptr) {
    name_cache_.Change(*inode, mark, {{name, FileId{}}}, &reply->parent_attributes,
                       reply->parent_attributes.shared);
    LostName(reply->file, directory ? 0 : reply->links_left, held);
  }
  if (unsent) recalls_.NoteOwn(parent);
  if (is_known && !held) EndRemoval(*known);
  if (is_known && held && IsUnheard(replies)) NoteSaidHeld(*known);
  if (reply != nullptr) return Done{};
  const auto* failure = replies.empty() ? nullptr : std::get_if<Failure>(&replies.back());
  return failure != nullptr ? *failure : ManagerCalls::UnexpectedReply();
}

Outcome<Done> Namespace::Rename(const RenameRequest& wanted) {
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

Outcome<Done> Namespace::RenameOnce(const RenameRequest& wanted) {
  const InodePtr source = inodes_.Get(wanted.old_parent);
  const InodePtr target = inodes_.Get(wanted.new_parent);
  MOSA_RETURN_IF_FAILED(commits_.EnsureNameMade(*source, wanted.old_name));
  MOSA_RETURN_IF_FAILED(commits_.EnsureNameMade(*target, wanted.new_name));
  const std::optional<FileId> replaced = name_cache_.Guess(*target, wanted.new_name);
  if (replaced && replaced->value != 0)
    if (const InodePtr victim = inodes_.Find(*replaced))
      MOSA_RETURN_IF_FAILED(commits_.EnsureAllMade(*victim));
  RenameRequest request = wanted;
  const bool is_known = replaced && replaced->value != 0;
  request.holds_open = !is_known || BeginRemoval(*replaced);
  request.moved = NameCache::LastSeen(*source, wanted.old_name);
  request.replaced = replaced;
  const auto note_move = [&] {
    if (source != target) kernel_names_.NoteMove(*source, *target);
    if (source != target && request.exchange) kernel_names_.NoteMove(*target, *source);
  };
  note_move();
  name_cache_.EndSeen(*source, wanted.old_name);
  name_cache_.EndSeen(*target, wanted.new_name);
  const Mark mark = recalls_.Now();
  const auto reply = calls_.Ask<RenameReply>(request);
  if (reply.ok()) NoteRenamed(request, *reply, *source, *target, mark);
  // The kernel may have been told the old name meanwhile. A recall before this did not know.
  note_move();
  for (const InodePtr& directory : {source, target})
    if (source != target && recalls_.HappenedForeign(mark.log, directory->file))
      kernel_names_.Forget(*directory);
  if (is_known && !request.holds_open) EndRemoval(*replaced);
  if (is_known && request.holds_open && !reply.ok() &&
      reply.failure().reason == ErrorReason::kTimedOut)
    NoteSaidHeld(*replaced);
  return reply.ok() ? Outcome<Done>(Done{}) : reply.failure();
}

Outcome<Done> Namespace::SeeAgain(FileId parent, const std::string& name) {
  const InodePtr directory = inodes_.Get(parent);
  {
    const MutexLock lock(directory->mutex);
    name_cache_.Forget(*directory, name);
  }
  const Mark mark = recalls_.Now();
  const auto reply = calls_.Ask<EntryReply>(LookupRequest{parent, name});
  if (!reply.ok() && reply.failure().reason != ErrorReason::kNoEntry) return reply.failure();
  if (reply.ok() && reply->shared_parent) {
    NameCache::Saw(*directory, name, reply->entry, mark);
    return Done{};
  }
  name_cache_.Store(*directory, name, reply.ok() ? reply->entry.file : FileId{}, mark, false);
  return Done{};
}

Outcome<std::string> Namespace::ReadSymlink(FileId file) {
  auto reply = calls_.Ask<ReadSymlinkReply>(ReadSymlinkRequest{file});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->target);
}

// If `name` is a file that the manager does not know, makes its make the first of `requests`. The
// caller ends it with FinishMake.
InodePtr Namespace::BeginMake(Inode& directory, const std::string& name,
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
  if (inode->making.state != MakeState::kUnsent) return nullptr;
  inode->making.state = MakeState::kSending;
  requests->emplace_back(inode->making.request);
  return inode;
}

// True if `file` is open here. Otherwise opens wait until EndRemoval, because they would find it
// gone.
bool Namespace::BeginRemoval(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  const MutexLock lock(inode->mutex);
  if (inode->uses.handles > 0) return true;
  ++inode->uses.removals;
  return false;
}

void Namespace::EndRemoval(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  const MutexLock lock(inode->mutex);
  --inode->uses.removals;
  inode->changed.notify_all();
}

// The manager may keep the file's bytes, because this mount has said that it has the file open.
void Namespace::NoteSaidHeld(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode->mutex);
    inode->uses.told_held = true;
    release = inode->EndUse();
  }
  if (release) releases_.Queue(*std::move(release));
}

void Namespace::NoteRenamed(const RenameRequest& request, const RenameReply& reply, Inode& source,
                            Inode& target, Mark mark) {
  // For two names of one file rename does nothing, and the old name stays.
  const bool nothing_done = reply.replaced == reply.moved;
  if (!nothing_done) {
    const FileId left = request.exchange && reply.replaced ? *reply.replaced : FileId{};
    name_cache_.Change(source, mark, {{request.old_name, left}}, nullptr, reply.shared);
    name_cache_.Change(target, mark, {{request.new_name, reply.moved}}, nullptr, reply.shared);
    if (reply.replaced && !request.exchange)
      LostName(*reply.replaced, reply.replaced_links_left, request.holds_open);
  }
  for (const FileId file : {reply.moved, reply.replaced.value_or(FileId{})}) {
    if (const InodePtr inode = inodes_.Find(file)) {
      const MutexLock lock(inode->mutex);
      recalls_.NoteOwn(file);
      inode->known.Invalidate();
    }
  }
}

// Accounts for a name of `file` that this mount's own change has removed.
void Namespace::LostName(FileId file, uint32_t links_left, bool said_held) {
  const InodePtr inode = inodes_.Find(file);
  std::optional<ReleaseRequest> release;
  if (!inode && said_held) release = ReleaseRequest{.file = file};
  if (inode) {
    const MutexLock lock(inode->mutex);
    recalls_.NoteOwn(file);
    inode->known.Invalidate();
    if (links_left == 0 && inode->uses.handles == 0) inode->right.era = 0;
    rights_.DropUnusedInline(*inode);
    inode->known.attributes.link_count = links_left;
    inode->uses.told_held = inode->uses.told_held || said_held;
    release = inode->EndUse();
  }
  if (release) releases_.Queue(*std::move(release));
  if (links_left == 0) blocks_.DropFile(file);
}

}  // namespace mosa::sai
