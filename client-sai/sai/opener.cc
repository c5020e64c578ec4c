#include "client-sai/sai/opener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "client-sai/core/stream.h"
#include "client-sai/sai/failures.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

bool Writes(uint32_t flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0; }

}  // namespace

Outcome<CreateResult> Opener::Create(const NewEntry& entry, uint32_t flags) {
  stats_.Add(Counter::kCreates);
  if (entry.name.size() > kNameBytesMax)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kNameTooLong,
                fmt::format("a name of {} bytes is too long", entry.name.size()));
  const std::string name(entry.name);
  const InodePtr parent = inodes_.Get(entry.parent);
  const bool may_keep = kernel_names_.MayKeep(*parent);
  const std::optional<FileId> known = name_cache_.Find(*parent, name);
  if (known && known->value != 0)
    return Fail(StatusCode::kAlreadyExists, ErrorReason::kExists,
                fmt::format("{} already exists", name));
  MakeRequest request;
  request.parent = entry.parent;
  request.name = name;
  request.permissions = entry.mode & 07777 & ~entry.caller.umask;
  request.uid = entry.caller.uid;
  request.gid = entry.caller.gid;
  request.task = tasks_.Of(entry.caller.pid);
  request.now = lease_.ManagerNow();
  request.open = request.bind = true;
  InodePtr inode = DeferCreate(*parent, request);
  if (!inode) {
    auto made = CreateNow(entry, request);
    if (!made.ok()) return made.failure();
    inode = *made;
  }
  ReserveHandle(*inode, flags);
  StreamState stream = StreamState::kNone;
  {
    const MutexLock lock(inode->mutex);
    stream = inode->known.attributes.stream;
  }
  const auto opened = AddHandle(inode, flags, request.task, /*begins_empty=*/true, stream);
  if (!opened.ok()) {
    ReturnHandle(*inode, flags);
    return opened.failure();
  }
  bool is_kept = may_keep && name_cache_.Find(*parent, name) == inode->file;
  {
    const MutexLock lock(parent->mutex);
    is_kept = is_kept && !parent->names.shared.taken().contains(name);
  }
  return CreateResult{attributes_.EntryOf(*inode, is_kept), opened->handle, opened->mode,
                      opened->size_bytes, opened->data_version};
}

// Creates a file in a delegated directory, or of a reserved name, that nobody else knows until it
// is closed. Null if the create cannot be deferred.
InodePtr Opener::DeferCreate(Inode& parent, const MakeRequest& request) {
  {
    const MutexLock lock(parent.mutex);
    if (!parent.names.delegated && !parent.names.shared.IsFree(request.name)) return nullptr;
  }
  if (!name_cache_.MayMakeUnasked(parent)) return nullptr;
  auto id = file_ids_.Take();
  if (!id.ok()) return nullptr;
  const InodePtr inode = inodes_.Get(*id);
  const MutexLock lock(parent.mutex);
  Names& names = parent.names;
  const auto entry = names.entries.find(request.name);
  const bool absent = entry == names.entries.end() ? names.complete : entry->second.value == 0;
  const uint64_t era = lease_.ValidEra();
  if (era == 0 || names.era != era || names.unsent.contains(request.name)) return nullptr;
  const bool taken = !names.delegated && names.shared.Take(request.name, request.uid);
  if (!taken && !(names.delegated && absent)) return nullptr;
  {
    // The only place that holds a parent's mutex with its child's: nobody else knows the child.
    const MutexLock child_lock(inode->mutex);
    inode->making.request = request;
    inode->making.request.file = *id;
    inode->making.request.bind = false;
    inode->making.state = MakeState::kUnsent;
    inode->unsaved.needs_commit = true;
    inode->room.version = inode->known.attributes.data_version;
    Attributes& attributes = inode->known.attributes;
    attributes.type = FileType::kRegular;
    attributes.permissions = request.permissions;
    attributes.uid = request.uid;
    attributes.gid = (parent.known.attributes.permissions & S_ISGID) != 0
                         ? parent.known.attributes.gid
                         : request.gid;
    attributes.link_count = 1;
    attributes.access_time = attributes.modify_time = attributes.change_time =
        attributes.birth_time = request.now;
    inode->known.received = true;
    inode->known.era = names.era;
    DataAccess access;
    access.may_write = true;
    access.inline_bytes_max = *names.inline_bytes_max;
    inode->right.access = std::make_shared<DataAccess>(std::move(access));
  }
  // The name of a shared directory is not kept longer than it is unsent.
  if (taken)
    name_cache_.Forget(parent, request.name);
  else
    name_cache_.Add(parent, request.name, *id);
  names.unsent[request.name] = *id;
  recalls_.NoteOwn(parent.file);
  parent.known.attributes.size_bytes += 1;
  parent.known.attributes.modify_time = parent.known.attributes.change_time = request.now;
  stats_.Add(Counter::kCreatesDeferred);
  return inode;
}

Outcome<InodePtr> Opener::CreateNow(const NewEntry& entry, MakeRequest request) {
  auto id = file_ids_.Take();
  if (!id.ok()) return id.failure();
  request.file = *id;
  const uint64_t hints_before = name_cache_.hints_generation();
  const InodePtr parent = inodes_.Get(entry.parent);
  name_cache_.EndSeen(*parent, request.name);
  const Mark mark = recalls_.Now();
  auto reply = calls_.Ask<MakeReply>(request);
  if (!reply.ok()) {
    if (reply.failure().reason == ErrorReason::kTimedOut) releases_.Queue({.file = *id});
    return reply.failure();
  }
  const InodePtr inode = inodes_.Get(reply->entry.file);
  attributes_.Store(*inode, reply->entry.attributes, mark, false);
  const uint64_t inline_max = reply->access ? reply->access->inline_bytes_max : 0;
  const bool unbound = reply->access && !reply->access->layout.bound();
  if (reply->access)
    rights_.Store(*inode, std::move(*reply->access), mark, reply->entry.attributes.data_version);
  {
    const MutexLock lock(inode->mutex);
    inode->uses.counts_readers = reply->counts_readers;
    inode->unsaved.needs_commit = true;
    inode->uses.manager_counts_open = true;
    inode->room.version = reply->entry.attributes.data_version;
  }
  name_cache_.Change(*parent, mark, {{request.name, inode->file}}, &reply->parent_attributes,
                     reply->parent_attributes.shared);
  const MutexLock lock(parent->mutex);
  if (!recalls_.HappenedForeign(mark.log, parent->file) && parent->names.era == mark.era)
    parent->names.delegated = reply->delegated;
  parent->names.inline_bytes_max = unbound ? inline_max : 0;
  parent->names.hints_generation = hints_before;
  return inode;
}

Outcome<OpenResult> Opener::Open(FileId file, uint32_t flags, const Caller& caller) {
  stats_.Add(Counter::kOpens);
  const InodePtr inode = inodes_.Get(file);
  const bool write = Writes(flags);
  bool grows = false;
  {
    const MutexLock lock(inode->mutex);
    grows = MayGrow(inode->known.attributes.stream);
  }
  const std::string task = write || grows ? tasks_.Of(caller.pid) : std::string();
  // Counted from here on, so that whoever removes the file's last name reports it as open.
  ReserveHandle(*inode, flags);
  {
    const MutexLock lock(inode->mutex);
    if (write) inode->AskIfUncounted();
    // The manager may still count an open from before the file became a stream.
    if (write && inode->known.attributes.stream != StreamState::kNone) inode->right.era = 0;
  }
  Outcome<OpenResult> opened = OpenReserved(inode, flags, task);
  if (!opened.ok()) {
    ReturnHandle(*inode, flags);
  } else if (!write) {
    NoteReader(*inode, opened->handle, caller.pid);
  }
  return opened;
}

Outcome<OpenResult> Opener::OpenReserved(const InodePtr& inode, uint32_t flags,
                                         const std::string& task) {
  const uint64_t calls_before = stats_.Get(Counter::kManagerCalls);
  auto fresh = rights_.EnsureFresh(*inode, Writes(flags), task);
  if (!fresh.ok()) return fresh.failure();
  if (stats_.Get(Counter::kManagerCalls) == calls_before) stats_.Add(Counter::kOpensCached);
  if ((flags & O_TRUNC) != 0) {
    AttributeChanges changes;
    changes.size_bytes = 0;
    changes.modify_time_now = true;
    auto cut = file_attributes_.Set(inode->file, changes);
    if (!cut.ok()) return cut.failure();
  }
  return AddHandle(inode, flags, task, (flags & O_TRUNC) != 0, fresh->attributes.stream);
}

void Opener::ReserveHandle(Inode& inode, uint32_t flags) {
  MutexLock lock(inode.mutex);
  while (inode.uses.removals > 0) inode.changed.wait(lock);
  ++inode.uses.handles;
  if ((flags & O_ACCMODE) == O_RDONLY) return;
  ++inode.uses.write_handles;
  ++inode.uses.unclosed_writers;
}

void Opener::ReturnHandle(Inode& inode, uint32_t flags) {
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    if ((flags & O_ACCMODE) != O_RDONLY) {
      --inode.uses.write_handles;
      --inode.uses.unclosed_writers;
    }
    --inode.uses.handles;
    release = inode.EndUse();
    rights_.DropUnusedInline(inode);
  }
  if (release) releases_.Queue(*std::move(release));
}

Outcome<OpenResult> Opener::AddHandle(const InodePtr& inode, uint32_t flags, std::string task,
                                      bool begins_empty, StreamState stream) {
  auto handle = std::make_shared<OpenFile>();
  handle->id = handles_.NewId();
  handle->inode = inode;
  handle->flags = flags;
  handle->write = (flags & O_ACCMODE) != O_RDONLY;
  handle->begins_empty = begins_empty;
  handle->append = handle->write && (flags & O_APPEND) != 0;
  handle->task = std::move(task);
  {
    const MutexLock lock(inode->mutex);
    handle->stream = OpensAsStream(stream, handle->write);
    // A task that waited for the end of what it writes itself would never end.
    if (TaskNames::IsGiven(handle->task)) {
      if (handle->write) inode->uses.streaming_task = handle->task;
      handle->stream =
          handle->stream && (handle->write || handle->task != inode->uses.streaming_task);
    }
  }
  MOSA_RETURN_IF_FAILED(open_modes_.Choose(*handle));
  {
    const MutexLock lock(inode->mutex);
    handle->errors_seen = inode->behind.error_count;
    handle->mode.stream = handle->stream && !handle->write;
  }
  uint64_t size_bytes = 0;
  uint64_t data_version = 0;
  {
    const MutexLock lock(inode->mutex);
    size_bytes = AttributeCache::View(*inode).size_bytes;
    data_version = inode->known.attributes.data_version;
  }
  mapped_stores_.WatchIfMappable(handle);
  handles_.AddFile(handle);
  return OpenResult{handle->id, handle->mode, size_bytes, data_version};
}

void Opener::NoteReader(Inode& inode, HandleId handle, uint32_t pid) {
  {
    const MutexLock lock(inode.mutex);
    if (!inode.uses.counts_readers) return;
  }
  handles_.SetReader(handle, tasks_.Of(pid));
}

}  // namespace mosa::sai
