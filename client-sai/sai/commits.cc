#include "client-sai/sai/commits.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/node_objects.h"

namespace mosa::sai {
namespace {

// The stored bytes no longer count where they are, so reporting them again is useless.
bool IsRefusedForGood(const Failure& failure) {
  return (failure.code == StatusCode::kFailedPrecondition &&
          failure.reason == ErrorReason::kStale) ||
         failure.reason == ErrorReason::kNodeLost;
}

// Requests that ran remain in effect, even if a later one failed. Null if none told attributes.
const Attributes* LastAttributes(const std::vector<Reply>& replies) {
  const Attributes* attributes = nullptr;
  for (const Reply& each : replies)
    if (const auto* reply = std::get_if<AttributesReply>(&each)) attributes = &reply->attributes;
  return attributes;
}

}  // namespace

Outcome<Done> Commits::SendOnce(Inode& inode, CommitKind kind, bool* outdated) {
  bool unsent = false, tells = true;
  std::vector<Request> requests;
  std::optional<SetAttributesRequest> times;
  FileId made_in;
  {
    MutexLock lock(inode.mutex);
    while (inode.making.state == MakeState::kSending) inode.changed.wait(lock);
    if (inode.making.state == MakeState::kRefused) return inode.making.failure;
    unsent = inode.making.state == MakeState::kUnsent;
    if (kind.make_only && !unsent) return Done{};
    const bool has_news =
        inode.unsaved.data_dirty || inode.unsaved.change_failed || inode.making.unsent_times;
    if (!unsent && !inode.unsaved.needs_commit && !has_news && !kind.tells_close) return Done{};
    tells = !kind.make_only || (has_news && (!kind.bare || inode.content.appended));
    if (unsent) {
      inode.making.state = MakeState::kSending;
      requests.push_back(inode.making.request);
      made_in = inode.making.request.parent;
    }
    times = inode.making.unsent_times;
  }
  bool is_inline = false;
  if (tells) {
    CommitRequest commit = Build(inode, kind.last_close);
    is_inline = commit.inline_data.has_value();
    requests.emplace_back(std::move(commit));
    if (times && (times->modify_time || times->access_time)) requests.push_back(*times);
  }
  // Inline bytes that the manager gets now would first have to be moved.
  const bool binds = unsent && !tells && kind.bind_bytes;
  if (binds) requests.emplace_back(BindRequest{inode.file, *kind.bind_bytes});
  const Mark mark = recalls_.Now();
  const std::vector<Reply> replies = calls_.AskEach(std::move(requests));
  MakeState made = MakeState::kSent;
  if (unsent) {
    made = FinishMake(inode, replies.empty() ? ManagerCalls::UnexpectedReply() : replies[0], mark);
    recalls_.NoteOwn(made_in);
  }
  const auto* bound = binds && replies.size() == 2 ? std::get_if<BindReply>(&replies[1]) : nullptr;
  if (bound != nullptr) rights_.Store(inode, bound->access, mark, 0);
  const Attributes* const attributes = LastAttributes(replies);
  const Failure* failure = replies.empty() ? nullptr : std::get_if<Failure>(&replies.back());
  const bool committed = attributes != nullptr;
  if (committed) Finish(inode, is_inline, *attributes, mark);
  if (tells && !committed && kind.last_close) rights_.NoteUnheardOpen(inode);
  const bool lost =
      tells && !committed && failure != nullptr && !is_inline && IsRefusedForGood(*failure);
  if (lost && DropUncommitted(inode, *failure) == Reported::kBefore) failure = nullptr;
  EndClosing(inode, committed);
  const MutexLock lock(inode.mutex);
  if (tells && !committed && !lost) TakeBack(inode);
  if (committed && kind.last_close && unsent) inode.uses.manager_counts_open = false;
  if (committed) inode.content.appended = false;
  if (unsent) EndMake(inode, made);
  *outdated =
      !committed && is_inline && failure != nullptr &&
      (failure->code == StatusCode::kAborted || failure->code == StatusCode::kFailedPrecondition);
  if (*outdated) {  // Another mount was faster.
    inode.right.era = 0;
    inode.known.Invalidate();
  }
  if (inode.making.state == MakeState::kRefused) return inode.making.failure;
  if (failure != nullptr) return *failure;
  if (!tells) return Done{};
  if (!committed && !lost) return ManagerCalls::UnexpectedReply();
  inode.making.unsent_times.reset();
  return Done{};
}

CommitRequest Commits::Build(Inode& inode, bool last_close) {
  CommitRequest request;
  bool changed = false;
  request.file = inode.file;
  request.last_close = last_close;
  {
    const MutexLock lock(inode.mutex);
    inode.committing = std::exchange(inode.unsaved, {});
    inode.uses.closes = last_close;
    // Cleared before the commit is sent: an open that comes meanwhile counts.
    if (last_close && inode.making.state == MakeState::kSent)
      inode.uses.manager_counts_open = false;
    changed = inode.committing.needs_commit || inode.committing.data_dirty;
    // What is told of the nodes must not be older.
    if (inode.making.state == MakeState::kSent)
      request.based_on_version = inode.known.attributes.data_version;
  }
  if (changed) request.nodes = NodeBytesOf(inode);
  const MutexLock lock(inode.mutex);
  request.data_changed = inode.committing.data_dirty || inode.committing.change_failed;
  request.change_failed = inode.committing.change_failed && !inode.committing.data_dirty;
  request.generation = inode.committing.stored_by;
  if (request.generation == 0 && inode.right.access)
    request.generation = inode.right.access->generation;
  request.inline_moved = inode.content.moves;
  request.modify_time = inode.committing.modify_time;
  request.modify_time_stays = request.data_changed && !request.modify_time;
  if (inode.content.buffer) {
    request.inline_data = *inode.content.buffer;
    if (inode.making.state == MakeState::kSent) request.based_on_version = inode.content.version;
    request.size_bytes = inode.content.buffer->size();
  } else {
    request.size_bytes = inode.committing.dirty_end;
    request.size_is_exact = false;
  }
  return request;
}

// The space that the file's objects occupy, and the part of the grants that went into them.
std::vector<CommitRequest::NodeBytes> Commits::NodeBytesOf(Inode& inode) {
  AccessPtr access;
  bool known = false;
  std::map<NodeId, uint64_t> allocated;
  std::map<NodeId, std::shared_ptr<LocalObject>> objects;
  std::set<NodeId> stored_on;
  {
    const MutexLock lock(inode.mutex);
    access = inode.right.access;
    known = inode.allocated_known();
    allocated = inode.room.allocated;
    objects = inode.local.objects;
    stored_on = inode.gate.stored_on;
  }
  std::vector<CommitRequest::NodeBytes> result;
  if (!access || !access->layout.bound()) return result;
  for (const NodeId node : access->layout.Nodes()) {
    CommitRequest::NodeBytes bytes{node, allocated[node], 0};
    struct stat status {};
    const auto object = objects.find(node);
    bytes.stored_nothing = object == objects.end() && !stored_on.contains(node);
    if (object != objects.end() && fstat(object->second->fd.get(), &status) == 0) {
      bytes.allocated_bytes = static_cast<uint64_t>(status.st_blocks) * 512;
    } else if (!known) {
      auto asked = nodes_.Stat({node, inode.file, access->capability});
      if (asked.status().code() == StatusCode::kPermissionDenied) {  // The capability has expired.
        const auto fresh = rights_.Ensure(inode, access->may_write);
        if (fresh.ok()) asked = nodes_.Stat({node, inode.file, (*fresh)->capability});
      }
      const bool absent = asked.status().code() == StatusCode::kNotFound;
      if (asked.ok()) {
        bytes.allocated_bytes = asked->allocated_bytes;
      } else if (absent && NodeObjects::IsKnownEmpty(*access, node)) {
        bytes.allocated_bytes = 0;  // The room taken there was moved to another node.
      } else if (absent || !stored_on.contains(node)) {
        continue;  // Room was taken but nothing stored: the manager's number stays valid.
      } else {
        // Room was also taken for what could not be stored.
        bytes.allocated_bytes = kPageBytes;
        bytes.at_least = true;
      }
    }
    bytes.consumed_bytes = grants_.TakeUnreported(node);
    result.push_back(bytes);
  }
  return result;
}

// A commit has failed, so its changes are unsaved again.
void Commits::TakeBack(Inode& inode) {
  const Unsaved old = std::exchange(inode.committing, {});
  inode.unsaved.needs_commit = inode.unsaved.needs_commit || old.needs_commit;
  inode.unsaved.data_dirty = inode.unsaved.data_dirty || old.data_dirty;
  inode.unsaved.change_failed = inode.unsaved.change_failed || old.change_failed;
  inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, old.dirty_end);
  if (!inode.unsaved.modify_time) inode.unsaved.modify_time = old.modify_time;
  inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, old.stored_by);
}

Commits::Reported Commits::DropUncommitted(Inode& inode, const Failure& failure) {
  Reported reported = Reported::kNow;
  {
    const MutexLock lock(inode.mutex);
    if (inode.committing.change_failed && !inode.committing.data_dirty && !inode.unsaved.data_dirty)
      reported = Reported::kBefore;
  }
  if (reported == Reported::kNow) {
    losses_.Warning("{}", failure.message);
    write_behind_.NoteError(inode, failure);
  }
  DropUnsaved(inode);
  return reported;
}

void Commits::DropUnsaved(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    inode.committing = inode.unsaved = {};
    inode.room.pages.Clear();
    inode.room.allocated.clear();
    inode.room.version.reset();
    inode.right.era = 0;
    inode.known.Invalidate();
    if (inode.kernel.passthrough_handles == 0) inode.local.objects.clear();
  }
  write_behind_.DropFailedPages(inode);
}

void Commits::GiveUpUnsaved(Inode& inode, const Failure& failure) {
  if (!MayBeTriedAgain(failure)) return;
  bool concerns_others = false;
  bool change_failed = false;
  {
    const MutexLock lock(inode.mutex);
    const bool in_objects =
        inode.right.access && inode.right.access->layout.bound() && !inode.right.access->is_inline;
    change_failed = inode.HasUntold() &&
                    (in_objects || inode.unsaved.change_failed || inode.committing.change_failed);
    inode.content.buffer.reset();
    inode.content.ranges.Clear();
    inode.content.appended = false;
    concerns_others = inode.uses.write_handles > 1;
  }
  DropUnsaved(inode);
  {
    // Another mount must still hear that copies may differ.
    const MutexLock lock(inode.mutex);
    inode.unsaved.needs_commit = inode.unsaved.change_failed = change_failed;
  }
  if (concerns_others) write_behind_.NoteError(inode, failure);
}

Outcome<Done> Commits::TakePrivileges(Inode& inode) {
  SetAttributesRequest request;
  {
    const MutexLock lock(inode.mutex);
    if (!std::exchange(inode.kernel.must_lose_privileges, false)) return Done{};
    request.file = inode.file;
    request.permissions = WithoutPrivileges(inode.known.attributes.permissions);
    if (*request.permissions == inode.known.attributes.permissions) return Done{};
  }
  const Mark mark = recalls_.Now();
  auto reply = calls_.Ask<AttributesReply>(request);
  if (!reply.ok()) {
    const MutexLock lock(inode.mutex);
    inode.kernel.must_lose_privileges = true;
    return reply.failure();
  }
  attributes_.Store(inode, reply->attributes, mark, true);
  pages_.DropAttributes(inode.file);
  return Done{};
}

void Commits::Finish(Inode& inode, bool is_inline, const Attributes& attributes, Mark mark) {
  {
    const MutexLock lock(inode.mutex);
    const uint64_t version_before = inode.known.attributes.data_version;
    const bool raises = inode.committing.data_dirty || inode.committing.change_failed;
    if (attributes.data_version == version_before + (raises ? 1 : 0)) {  // Only by this commit.
      if (inode.kernel.pages_version == version_before)
        inode.kernel.pages_version = attributes.data_version;
      if (inode.room.version == version_before) inode.room.version = attributes.data_version;
    }
    if (inode.committing.data_dirty) inode.uses.awaits_copies = true;
    // The appenders' lock ensures that nobody else has appended.
    if (inode.append_right && inode.append_right->era == lease_.ValidEra())
      inode.append_right->data_version = attributes.data_version;
    if (inode.committing.stored_by != 0 && !inode.right.access->empty_nodes.empty()) {
      // The manager knows which nodes have bytes now.
      auto access = std::make_shared<DataAccess>(*inode.right.access);
      access->empty_nodes.clear();
      inode.right.access = std::move(access);
    }
    if (is_inline && inode.content.buffer && inode.right.access) rights_.KeepInline(inode);
    if (is_inline) inode.right.version = attributes.data_version;
    ++inode.known.own_changes;
    // A reader may have asked before the manager knew that the content is in the objects, or that
    // other copies are older now.
    const bool outdated = !is_inline && inode.right.access &&
                          (inode.right.access->is_inline || !inode.right.access->may_write);
    if (outdated || recalls_.HappenedForeign(mark.log, inode.file)) inode.right.era = 0;
  }
  attributes_.Store(inode, attributes, mark, true);
  const MutexLock lock(inode.mutex);
  inode.committing = {};
}

// The commit of a last close was answered, or given up.
void Commits::EndClosing(Inode& inode, bool committed) {
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    inode.uses.closes = false;
    const bool named = std::exchange(inode.uses.named_while_closing, false);
    if (named && committed && !inode.uses.manager_counts_open) release = inode.EndUnlessWriter();
  }
  if (release) releases_.Queue(*std::move(release));
}

Outcome<Done> Commits::EnsureMade(Inode& inode, bool bare, std::optional<uint64_t> bind_bytes) {
  bool outdated = false;
  const Outcome<Done> sent =
      SendOnce(inode, {.make_only = true, .bare = bare, .bind_bytes = bind_bytes}, &outdated);
  const MutexLock lock(inode.mutex);
  const bool unheard = !sent.ok() && sent.failure().reason == ErrorReason::kTimedOut;
  // The next commit reports, or fails with, what could not be sent with the make.
  return inode.making.state == MakeState::kSent && !unheard ? Outcome<Done>(Done{}) : sent;
}

MakeState Commits::FinishMake(Inode& inode, const Reply& reply, Mark mark) {
  const auto* made = std::get_if<MakeReply>(&reply);
  const auto* failure = std::get_if<Failure>(&reply);
  // A timed-out make may have run, and will not run later. Only the manager knows whether the file
  // exists.
  const bool unheard = failure != nullptr && failure->reason == ErrorReason::kTimedOut;
  FileId parent;
  std::string name;
  {
    const MutexLock lock(inode.mutex);
    parent = inode.making.request.parent;
    name = inode.making.request.name;
    if (made != nullptr) {
      const Time changed = inode.known.attributes.change_time;
      inode.known.attributes = made->entry.attributes;
      inode.known.attributes.change_time = std::max(changed, inode.known.attributes.change_time);
      inode.known.era = recalls_.HappenedForeign(mark.log, inode.file) ? 0 : mark.era;
      if (made->access) {
        inode.right.access = std::make_shared<DataAccess>(*made->access);
        inode.right.era = inode.known.era;
      }
      inode.right.version = inode.content.version = made->entry.attributes.data_version;
      inode.uses.counts_readers = made->counts_readers;
      inode.uses.manager_counts_open = true;
      ++inode.known.own_changes;
    } else if (unheard) {
      inode.uses.manager_counts_open = true;
      inode.known.era = inode.right.era = 0;
    } else {
      inode.making.failure = failure != nullptr ? *failure : ManagerCalls::UnexpectedReply();
      inode.behind.error = inode.making.failure;
      ++inode.behind.error_count;
    }
  }
  const InodePtr directory = inodes_.Get(parent);
  const Mark now = recalls_.Now();
  const MutexLock lock(directory->mutex);
  directory->names.unsent.erase(name);
  const bool is_shared = made != nullptr && made->parent_attributes.shared;
  if (is_shared) directory->names.shared.Note(true);
  directory->names.shared.End(name, now.log);
  if (is_shared) directory->names.shared.Saw(name, {inode.file, mark.log}, now.log);
  if (made == nullptr) {
    name_cache_.Forget(*directory, name);
    directory->known.Invalidate();
  } else if (directory->names.unsent.empty()) {
    // The last of several answers is valid, and their order is unknown.
    const bool certain = !recalls_.Happened(mark.log, parent);
    if (certain && (directory->known.era != 0 || is_shared))
      directory->known.attributes = made->parent_attributes;
    if (!certain) directory->known.Invalidate();
    if (certain && is_shared) directory->known.shown_until = mark.at + kSharedAttributesFor;
  }
  return made != nullptr || unheard ? MakeState::kSent : MakeState::kRefused;
}

void Commits::EndMake(Inode& inode, MakeState state) {
  inode.making.state = state;
  std::exchange(inode.making.request, {});  // Frees its memory, too.
  inode.changed.notify_all();
}

Outcome<Done> Commits::EnsureAllMade(Inode& directory) {
  std::vector<FileId> files;
  {
    const MutexLock lock(directory.mutex);
    for (const auto& [name, file] : directory.names.unsent) files.push_back(file);
  }
  for (const FileId file : files)
    if (const InodePtr inode = inodes_.Find(file)) MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  return Done{};
}

Outcome<Done> Commits::EnsureNameMade(Inode& directory, const std::string& name) {
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
