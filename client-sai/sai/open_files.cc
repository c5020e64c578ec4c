// Opening and closing: the open handles, and the rights that they use.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "client-sai/core/rules.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// False if the node has dropped the object, as it does when it returns empty.
bool IsThere(const LocalObject& object) {
  struct stat status {};
  return fstat(object.fd.get(), &status) == 0 && status.st_nlink > 0;
}

bool Writes(uint32_t flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0; }

}  // namespace

AccessPtr Filesystem::Impl::StoreAccess(Inode& inode, DataAccess access, Mark mark,
                                        uint64_t version) {
  const MutexLock lock(inode.mutex);
  KeepAccess(inode, std::make_shared<const DataAccess>(std::move(access)), mark, version);
  ++inode.own_changes;
  return inode.access;
}

void Filesystem::Impl::KeepAccess(Inode& inode, AccessPtr access, Mark mark, uint64_t version) {
  if (inode.access && inode.access->layout.bound() && inode.passthrough_handles == 0 &&
      inode.access->layout != access->layout)
    inode.objects.clear();
  if (inode.access) inline_cached_bytes_ -= inode.access->inline_data.size();
  inline_cached_bytes_ += access->inline_data.size();
  inode.access = std::move(access);
  inode.access_era = recalls_.HappenedForeign(mark.log, inode.file) ? 0 : mark.era;
  inode.access_version = version;
}

// Absent: ask the manager.
std::optional<Outcome<Filesystem::Impl::Fresh>> Filesystem::Impl::FreshFromCache(
    Inode& inode, bool write, bool with_attributes) {
  const Time now = lease_.ManagerNow();
  MutexLock lock(inode.mutex);
  while (inode.make_state == MakeState::kSending) inode.changed.wait(lock);
  if (inode.make_state == MakeState::kRefused) return inode.make_failure;
  const uint64_t era = lease_.ValidEra();
  const bool valid =
      inode.access && era != 0 && inode.access_era == era &&
      inode.AccessServes(*inode.access, write) &&
      (!inode.access->layout.bound() || now + kCapabilityMargin < inode.access->expires) &&
      (!with_attributes || inode.attributes_era == era);
  if (!valid && inode.make_state != MakeState::kUnsent) return std::nullopt;
  return Fresh{inode.access, inode.attributes, inode.access_version, inode.own_changes};
}

Outcome<AccessPtr> Filesystem::Impl::EnsureAccess(Inode& inode, bool write,
                                                  const std::string& task) {
  auto fresh = FreshFromCache(inode, write, /*with_attributes=*/false);
  if (!fresh) fresh = AskFresh(inode, write, task);
  if (!fresh->ok()) return fresh->failure();
  return (*fresh)->access;
}

Outcome<Filesystem::Impl::Fresh> Filesystem::Impl::EnsureFresh(Inode& inode, bool write,
                                                               const std::string& task) {
  auto fresh = FreshFromCache(inode, write, /*with_attributes=*/true);
  return fresh ? *std::move(fresh) : AskFresh(inode, write, task);
}

Outcome<Filesystem::Impl::Fresh> Filesystem::Impl::AskFresh(Inode& inode, bool write,
                                                            const std::string& task) {
  uint64_t own_changes = 0;
  bool reads_first = false;  // To read, the mount asks as the writer that it is.
  {
    const MutexLock lock(inode.mutex);
    own_changes = inode.own_changes;
    reads_first = !write && inode.MustReadFirstCopy();
    write = write || reads_first;
  }
  const bool taken_back = write && TakeBackRelease(inode);
  const Mark mark = MarkNow();
  Outcome<OpenReply> reply = calls_.Ask<OpenReply>(OpenRequest{inode.file, write, task});
  // Inline bytes may have become an object between the manager's decision and its answer.
  for (int again = 0; !reply.ok() && reply.failure().code == StatusCode::kAborted && again < 3;
       ++again)
    reply = calls_.Ask<OpenReply>(OpenRequest{inode.file, write, task});
  const bool may_count =
      !reply.ok() && (taken_back || reply.failure().reason == ErrorReason::kTimedOut);
  if (reads_first && (reply.ok() || may_count)) EndReadAsWriter(inode);
  if (write && !reads_first && may_count) NoteUnheardOpen(inode);
  if (!reply.ok()) return reply.failure();
  StoreAttributes(inode, reply->attributes, mark, false);
  const uint64_t version = reply->attributes.data_version;
  Fresh fresh{std::make_shared<const DataAccess>(std::move(reply->access)), reply->attributes,
              version, own_changes};
  const MutexLock lock(inode.mutex);
  inode.counts_readers = reply->counts_readers;
  if (write && !reads_first) inode.manager_counts_open = true;
  // The content is already in the objects, and the manager is being told.
  if (inode.moves_inline && inode.access && !inode.access->is_inline) fresh.access = inode.access;
  // The answer may be older than a change that this mount has made or heard of. Then the cached
  // access stays for its current users, and the next use asks again.
  const bool outdated =
      inode.own_changes != own_changes || recalls_.HappenedForeign(mark.log, inode.file);
  // A right to read may have been asked for before the mount became a writer.
  const bool serves = inode.AccessServes(*fresh.access, write);
  if ((!outdated && serves) || !inode.access) KeepAccess(inode, fresh.access, mark, version);
  if (outdated) inode.access_era = 0;
  return fresh;
}

// The last writer here may have closed the file while the question was under way, and the manager
// may have heard of that first.
void Filesystem::Impl::EndReadAsWriter(Inode& inode) {
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    release = inode.EndUnlessWriter();
  }
  if (release) releases_.Queue(*std::move(release));
}

// The mount becomes a writer again. Returns true if it has withdrawn a release that the manager had
// not received yet.
bool Filesystem::Impl::TakeBackRelease(Inode& inode) {
  const Releases::TakenBack taken = releases_.TakeBack(inode.file);
  if (taken.uncommitted) NoteChangeFailed(inode);
  return taken.any;
}

// A timed-out request to open the file for writing may still run, or the manager was not told of
// the end of an earlier one: so it must be told.
void Filesystem::Impl::NoteUnheardOpen(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    inode.manager_counts_open = inode.handles > 0 || inode.resizing;
    if (inode.manager_counts_open) return;
  }
  releases_.Queue({.file = inode.file});
}

Outcome<std::shared_ptr<LocalObject>> Filesystem::Impl::LocalObjectOf(Inode& inode,
                                                                      const DataAccess& access,
                                                                      NodeId node, bool write) {
  {
    const MutexLock lock(inode.mutex);
    const auto it = inode.objects.find(node);
    if (it != inode.objects.end() && (!write || it->second->writable) && IsThere(*it->second))
      return it->second;
  }
  auto opened = nodes_.OpenLocal({node, inode.file, access.capability}, write);
  if (!opened.ok()) return FromStatus(opened.status());
  auto object = std::make_shared<LocalObject>(LocalObject{node, *std::move(opened), write});
  const MutexLock lock(inode.mutex);
  std::shared_ptr<LocalObject>& known = inode.objects[node];
  // Another open may have been faster. The kernel's writes are looked for in writable objects.
  if (known == nullptr || write || !known->writable || !IsThere(*known)) known = object;
  return object;
}

// Creates a file in a delegated directory that nobody else knows until it is closed. Null if the
// create cannot be deferred.
InodePtr Filesystem::Impl::DeferCreate(Inode& parent, const MakeRequest& request) {
  {
    const MutexLock lock(parent.mutex);
    const uint64_t era = lease_.ValidEra();
    if (era == 0 || parent.names.era != era || !parent.names.delegated ||
        parent.names.inline_bytes_max.value_or(0) == 0 ||
        parent.names.hints_generation != hints_generation_ || !parent.attributes_known)
      return nullptr;
  }
  auto id = file_ids_.Take();
  if (!id.ok()) return nullptr;
  const InodePtr inode = inodes_.Get(*id);
  const MutexLock lock(parent.mutex);
  Names& names = parent.names;
  const auto entry = names.entries.find(request.name);
  const bool absent = entry == names.entries.end() ? names.complete : entry->second.value == 0;
  if (names.era != lease_.ValidEra() || !names.delegated || !absent ||
      names.unsent.contains(request.name))
    return nullptr;
  {
    // The only place that holds a parent's mutex with its child's: nobody else knows the child.
    const MutexLock child_lock(inode->mutex);
    inode->make = request;
    inode->make.file = *id;
    inode->make.bind = false;
    inode->make_state = MakeState::kUnsent;
    inode->unsaved.needs_commit = true;
    inode->allocated_version = inode->attributes.data_version;
    Attributes& attributes = inode->attributes;
    attributes.type = FileType::kRegular;
    attributes.permissions = request.permissions;
    attributes.uid = request.uid;
    attributes.gid =
        (parent.attributes.permissions & S_ISGID) != 0 ? parent.attributes.gid : request.gid;
    attributes.link_count = 1;
    attributes.access_time = attributes.modify_time = attributes.change_time =
        attributes.birth_time = request.now;
    inode->attributes_known = true;
    inode->attributes_era = names.era;
    DataAccess access;
    access.may_write = true;
    access.inline_bytes_max = *names.inline_bytes_max;
    inode->access = std::make_shared<DataAccess>(std::move(access));
  }
  if (names.entries.insert_or_assign(request.name, *id).second) ++names_count_;
  names.unsent[request.name] = *id;
  recalls_.NoteOwn(parent.file);
  parent.attributes.size_bytes += 1;
  parent.attributes.modify_time = parent.attributes.change_time = request.now;
  stats_.Add(Counter::kCreatesDeferred);
  return inode;
}

Outcome<InodePtr> Filesystem::Impl::CreateNow(const NewEntry& entry, MakeRequest request) {
  auto id = file_ids_.Take();
  if (!id.ok()) return id.failure();
  request.file = *id;
  const uint64_t hints_before = hints_generation_;
  const Mark mark = MarkNow();
  auto reply = calls_.Ask<MakeReply>(request);
  if (!reply.ok()) {
    if (reply.failure().reason == ErrorReason::kTimedOut) releases_.Queue({.file = *id});
    return reply.failure();
  }
  const InodePtr parent = inodes_.Get(entry.parent);
  const InodePtr inode = inodes_.Get(reply->entry.file);
  StoreAttributes(*inode, reply->entry.attributes, mark, false);
  const uint64_t inline_max = reply->access ? reply->access->inline_bytes_max : 0;
  const bool unbound = reply->access && !reply->access->layout.bound();
  if (reply->access)
    StoreAccess(*inode, std::move(*reply->access), mark, reply->entry.attributes.data_version);
  {
    const MutexLock lock(inode->mutex);
    inode->counts_readers = reply->counts_readers;
    inode->unsaved.needs_commit = true;
    inode->manager_counts_open = true;
    inode->allocated_version = reply->entry.attributes.data_version;
  }
  ChangeNames(*parent, mark, {{request.name, inode->file}}, &reply->parent_attributes);
  const MutexLock lock(parent->mutex);
  if (!recalls_.HappenedForeign(mark.log, parent->file) && parent->names.era == mark.era)
    parent->names.delegated = reply->delegated;
  parent->names.inline_bytes_max = unbound ? inline_max : 0;
  parent->names.hints_generation = hints_before;
  return inode;
}

Outcome<CreateResult> Filesystem::Impl::Create(const NewEntry& entry, uint32_t flags) {
  stats_.Add(Counter::kCreates);
  if (entry.name.size() > kNameBytesMax)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kNameTooLong,
                fmt::format("a name of {} bytes is too long", entry.name.size()));
  const std::string name(entry.name);
  const InodePtr parent = inodes_.Get(entry.parent);
  const bool may_keep = kernel_names_.MayKeep(*parent);
  const std::optional<FileId> known = KnownName(*parent, name);
  if (known && known->value != 0) {
    if ((flags & O_EXCL) != 0)
      return Fail(StatusCode::kAlreadyExists, ErrorReason::kExists,
                  fmt::format("{} already exists", name));
    return OpenExisting(entry, flags);
  }
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
    if (!made.ok()) {
      if (made.failure().reason == ErrorReason::kExists && (flags & O_EXCL) == 0)
        return OpenExisting(entry, flags);
      return made.failure();
    }
    inode = *made;
  }
  ReserveHandle(*inode, flags);
  const auto opened = AddHandle(inode, flags, request.task);
  if (!opened.ok()) {
    ReturnHandle(*inode, flags);
    return opened.failure();
  }
  return CreateResult{EntryOf(*inode, may_keep && KnownName(*parent, name) == inode->file),
                      opened->handle, opened->mode, opened->size_bytes, opened->data_version};
}

Outcome<CreateResult> Filesystem::Impl::OpenExisting(const NewEntry& entry, uint32_t flags) {
  auto found = Lookup(entry.parent, entry.name);
  if (!found.ok()) return found.failure();
  const FileId file = found->entry.file;
  if (file.value == 0)
    return Fail(StatusCode::kNotFound, ErrorReason::kNoEntry,
                fmt::format("{} was removed while it was being opened", entry.name));
  if (found->entry.attributes.type == FileType::kDirectory) {
    inodes_.Forget(file, 1);
    return Fail(StatusCode::kFailedPrecondition, ErrorReason::kIsDirectory,
                fmt::format("{} is a directory", entry.name));
  }
  auto opened = Open(file, flags, entry.caller);
  if (!opened.ok()) {
    inodes_.Forget(file, 1);
    return opened.failure();
  }
  return CreateResult{*found, opened->handle, opened->mode, opened->size_bytes,
                      opened->data_version};
}

Outcome<OpenResult> Filesystem::Impl::Open(FileId file, uint32_t flags, const Caller& caller) {
  stats_.Add(Counter::kOpens);
  const InodePtr inode = inodes_.Get(file);
  const bool write = Writes(flags);
  const std::string task = write ? tasks_.Of(caller.pid) : std::string();
  // Counted from here on, so that whoever removes the file's last name reports it as open.
  ReserveHandle(*inode, flags);
  {
    const MutexLock lock(inode->mutex);
    if (write) inode->AskIfUncounted();
  }
  Outcome<OpenResult> opened = OpenReserved(inode, flags, task);
  if (!opened.ok()) {
    ReturnHandle(*inode, flags);
  } else if (!write) {
    NoteReader(*inode, opened->handle, caller.pid);
  }
  return opened;
}

void Filesystem::Impl::NoteReader(Inode& inode, HandleId handle, uint32_t pid) {
  {
    const MutexLock lock(inode.mutex);
    if (!inode.counts_readers) return;
  }
  handles_.SetReader(handle, tasks_.Of(pid));
}

Outcome<OpenResult> Filesystem::Impl::OpenReserved(const InodePtr& inode, uint32_t flags,
                                                   const std::string& task) {
  const uint64_t calls_before = stats_.Get(Counter::kManagerCalls);
  auto fresh = EnsureFresh(*inode, Writes(flags), task);
  if (!fresh.ok()) return fresh.failure();
  if (stats_.Get(Counter::kManagerCalls) == calls_before) stats_.Add(Counter::kOpensCached);
  if ((flags & O_TRUNC) != 0) {
    AttributeChanges changes;
    changes.size_bytes = 0;
    changes.modify_time_now = true;
    auto cut = SetAttributes(inode->file, changes);
    if (!cut.ok()) return cut.failure();
  }
  return AddHandle(inode, flags, task);
}

void Filesystem::Impl::ReserveHandle(Inode& inode, uint32_t flags) {
  MutexLock lock(inode.mutex);
  while (inode.removals > 0) inode.changed.wait(lock);
  ++inode.handles;
  if ((flags & O_ACCMODE) == O_RDONLY) return;
  ++inode.write_handles;
  ++inode.unclosed_writers;
}

void Filesystem::Impl::ReturnHandle(Inode& inode, uint32_t flags) {
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    if ((flags & O_ACCMODE) != O_RDONLY) {
      --inode.write_handles;
      --inode.unclosed_writers;
    }
    --inode.handles;
    release = inode.EndUse();
    DropUnusedInline(inode);
  }
  if (release) releases_.Queue(*std::move(release));
}

Outcome<OpenResult> Filesystem::Impl::AddHandle(const InodePtr& inode, uint32_t flags,
                                                std::string task) {
  auto handle = std::make_shared<OpenFile>();
  handle->id = handles_.NewId();
  handle->inode = inode;
  handle->flags = flags;
  handle->write = (flags & O_ACCMODE) != O_RDONLY;
  handle->append = handle->write && (flags & O_APPEND) != 0;
  handle->task = std::move(task);
  MOSA_RETURN_IF_FAILED(ChooseMode(*handle));
  {
    const MutexLock lock(inode->mutex);
    handle->errors_seen = inode->error_count;
  }
  uint64_t size_bytes = 0;
  uint64_t data_version = 0;
  {
    const MutexLock lock(inode->mutex);
    size_bytes = View(*inode).size_bytes;
    data_version = inode->attributes.data_version;
  }
  WatchIfMappable(handle);
  handles_.AddFile(handle);
  return OpenResult{handle->id, handle->mode, size_bytes, data_version};
}

Outcome<Done> Filesystem::Impl::UntoldError(const OpenFile& handle) {
  const MutexLock lock(handle.inode->mutex);
  if (handle.errors_seen == handle.inode->error_count) return Done{};
  return handle.inode->error;
}

Outcome<Done> Filesystem::Impl::TellError(OpenFile& handle) {
  const MutexLock lock(handle.inode->mutex);
  if (std::exchange(handle.errors_seen, handle.inode->error_count) == handle.inode->error_count)
    return Done{};
  return handle.inode->error;
}

void Filesystem::Impl::Flush(HandleId id, uint64_t lock_owner,
                             std::function<void(Outcome<Done>)> done) {
  stats_.Add(Counter::kCloses);
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle) return done(Done{});
  std::optional<AwaitCopiesRequest> awaited;
  const Outcome<Done> flushed = FlushData(*handle, lock_owner, &awaited);
  if (!awaited) return done(flushed);
  AwaitCopies(*awaited, [inode = handle->inode, done = std::move(done)](Outcome<Done> copied) {
    {
      const MutexLock lock(inode->mutex);
      --inode->closes_waiting;
    }
    done(std::move(copied));
  });
}

Outcome<Done> Filesystem::Impl::FlushData(OpenFile& handle, uint64_t lock_owner,
                                          std::optional<AwaitCopiesRequest>* awaited) {
  Inode& inode = *handle.inode;
  Outcome<Done> result = Done{};
  bool concerned = handle.write;
  {
    const MutexLock lock(inode.mutex);
    concerned = concerned || (inode.unsaved.needs_commit && inode.write_handles == 0);
  }
  if (concerned) {
    const MutexLock io(inode.io);
    RefreshFromKernelWrites(inode);
    CatchStores(inode);
    Drain(inode);
    bool last = false;
    bool awaits_copies = false;
    bool tells_close = false;
    {
      const MutexLock lock(inode.mutex);
      // The kernel releases a handle later than its last descriptor is closed. Writes by
      // passthrough after one of several descriptors was closed are not seen here.
      const bool by_kernel = handle.mode.kind == OpenMode::Kind::kPassthrough;
      if (handle.write && !by_kernel && !std::exchange(handle.closed, true))
        --inode.unclosed_writers;
      handle.was_closed = true;
      last = inode.unclosed_writers <= (handle.write && by_kernel ? 1U : 0U) &&
             inode.attributes.link_count > 0 && !MayBeStoredInto(inode);
      awaits_copies = last && (inode.unsaved.data_dirty || (handle.write && inode.awaits_copies));
      tells_close = awaits_copies && inode.access && inode.access->close_copies > 1;
      if (awaits_copies) ++inode.closes_waiting;
    }
    if (awaits_copies) FinishBeforeCopies(inode);
    // Only files that nobody has open for writing are copied. So the manager must hear of this
    // close, even if an fsync, or the close of another descriptor, has already reported the bytes.
    result = Commit(inode, last, tells_close);
    if (!result.ok() && last && handle.write && !MayBeMapped(handle))
      GiveUpUnsaved(inode, result.failure());
    // Who only reads has lost nothing.
    const Outcome<Done> earlier = handle.write ? TellError(handle) : Outcome<Done>(Done{});
    if (!earlier.ok() || !handle.write) result = earlier;
    if (awaits_copies && result.ok()) {
      FinishBeforeCopies(inode);  // The commit may have moved inline bytes to this host's node.
      *awaited = AwaitedCopies(inode);
    }
    if (awaits_copies && !awaited->has_value()) {
      const MutexLock lock(inode.mutex);
      --inode.closes_waiting;
    }
  }
  DropLocksOf(inode, lock_owner, false);
  NoteLockOwnersClosing(handle, lock_owner);
  return result;
}

Outcome<Done> Filesystem::Impl::Fsync(HandleId id) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle) return Done{};
  const MutexLock io(handle->inode->io);
  RefreshFromKernelWrites(*handle->inode);
  CatchStores(*handle->inode);
  Drain(*handle->inode);
  const Outcome<Done> committed = Commit(*handle->inode, false);
  MOSA_RETURN_IF_FAILED(TellError(*handle));
  return committed;
}

}  // namespace mosa::sai
