#include "client-sai/sai/filesystem.h"

#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <random>
#include <utility>

#include "client-sai/sai/failures.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

std::optional<FileType> TypeOfMode(uint32_t mode) {
  switch (mode & S_IFMT) {
    case 0:
    case S_IFREG:
      return FileType::kRegular;
    case S_IFIFO:
      return FileType::kFifo;
    case S_IFSOCK:
      return FileType::kSocket;
    case S_IFCHR:
      return FileType::kCharacterDevice;
    case S_IFBLK:
      return FileType::kBlockDevice;
    default:
      return std::nullopt;
  }
}

ClientId NewClientId() {
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32 | random();
  return ClientId{number == 0 ? 1 : number};
}

// Whether programs have it open and are not done with it: then its readers must not see its end.
bool IsStreaming(Inode& inode) {
  const MutexLock lock(inode.mutex);
  return inode.uses.write_handles > 0 && inode.known.attributes.stream != StreamState::kNone;
}

}  // namespace

Filesystem::Impl::Impl(FilesystemOptions options, ManagerApi& manager, NodeApi& nodes,
                       KernelNotifier& notifier, const Clock& clock)
    : options_(std::move(options)),
      client_(options_.client.value != 0 ? options_.client : NewClientId()),
      manager_(manager),
      calls_(manager, stats_, [this](FileId file) { session_.ForgetUncertain(file); }),
      lease_(clock),
      recalls_(lease_),
      inodes_(options_.idle_inodes_max, [this](Inode& inode) { session_.NoteDropped(inode); }),
      file_ids_(manager, calls_),
      releases_(inodes_, calls_),
      grants_(manager, clock),
      attributes_(lease_, recalls_, grants_, stats_, clock),
      name_cache_(options_.names_max, lease_, recalls_, attributes_),
      rights_(calls_, lease_, recalls_, releases_, attributes_),
      held_locks_(calls_, lease_),
      gate_(calls_, lease_, inodes_, rights_, held_locks_, stats_, clock),
      blocks_(options_.read_cache_bytes_max),
      kernel_names_(notifier, clock),
      reads_(options_.fetch_threads),
      service_(options_.recall_threads, options_.recall_threads_max),
      pages_(inodes_, notifier, clock, stats_, options_.recall_threads, options_.drop_threads_max),
      objects_(nodes, client_, lease_, node_states_, reads_, stats_, clock),
      spiller_(calls_, nodes, recalls_, rights_, gate_, objects_, grants_, blocks_, stats_),
      write_behind_(options_, inodes_, node_states_, gate_, objects_, spiller_, blocks_, pages_,
                    stats_, clock),
      commits_(calls_, nodes, inodes_, lease_, recalls_, attributes_, rights_, name_cache_,
               write_behind_, releases_, grants_, pages_, losses_, stats_),
      writer_(calls_, nodes, lease_, recalls_, rights_, gate_, objects_, write_behind_, commits_,
              grants_, blocks_, stats_, clock),
      appends_(inodes_, lease_, rights_, held_locks_, write_behind_, commits_, writer_, stats_,
               clock),
      reader_(options_, nodes, handles_, lease_, node_states_, attributes_, rights_, objects_,
              write_behind_, writer_, blocks_, reads_, stats_),
      size_changes_(nodes, handles_, lease_, node_states_, attributes_, rights_, gate_, objects_,
                    write_behind_, writer_, releases_, blocks_, reads_, stats_),
      locks_(manager, calls_, inodes_, handles_, attributes_, held_locks_, write_behind_, commits_,
             writer_, blocks_, pages_, service_, stats_, clock),
      copies_(manager, nodes, inodes_, rights_, stats_, clock),
      open_modes_(options_, nodes, notifier, handles_, lease_, attributes_, rights_, gate_,
                  objects_, write_behind_, grants_, stats_, clock),
      mapped_stores_(nodes, lease_, attributes_, rights_, objects_, write_behind_, writer_,
                     open_modes_, releases_, blocks_, losses_, stats_, clock),
      file_attributes_(calls_, lease_, recalls_, inodes_, handles_, releases_, attributes_, gate_,
                       write_behind_, commits_, writer_, size_changes_, copies_, mapped_stores_,
                       clock),
      xattrs_(calls_, recalls_, inodes_, attributes_, name_cache_, gate_, write_behind_, commits_,
              writer_, reader_, mapped_stores_, stats_),
      namespace_(calls_, lease_, recalls_, inodes_, file_ids_, releases_, attributes_, name_cache_,
                 rights_, blocks_, kernel_names_, commits_, stats_, clock),
      directories_(calls_, lease_, recalls_, inodes_, handles_, attributes_, name_cache_, commits_),
      opener_(calls_, lease_, recalls_, inodes_, handles_, file_ids_, releases_, attributes_,
              name_cache_, rights_, tasks_, kernel_names_, open_modes_, mapped_stores_,
              file_attributes_, stats_),
      closer_(handles_, releases_, grants_, attributes_, write_behind_, commits_, writer_, appends_,
              locks_, copies_, open_modes_, mapped_stores_, reader_.stream_waits(), stats_),
      handle_writer_(notifier, handles_, pages_, write_behind_, writer_, appends_, mapped_stores_,
                     reader_.stream_waits(), stats_, clock),
      session_(options_, client_, nodes, calls_, lease_, recalls_, inodes_, node_states_, file_ids_,
               releases_, grants_, name_cache_, rights_, gate_, blocks_, kernel_names_, service_,
               pages_, commits_, copies_, reader_.stream_waits(), stats_) {}

Filesystem::Impl::~Impl() {
  if (!Stop().ok()) stats_.Add(Counter::kErrors);
  // Also if Start has failed: their tasks use parts that end before they do.
  write_behind_.Stop();
  reads_.Stop();
  service_.Stop();
  pages_.Stop();
}

Status Filesystem::Impl::Start() {
  // The kernel knows the root without a lookup, permanently.
  {
    const InodePtr root = inodes_.Get(kRootFile);
    const MutexLock lock(root->mutex);
    ++root->kernel.lookups;
  }
  MOSA_RETURN_IF_ERROR(manager_.Start(session_));
  timer_.Start([this](uint64_t round) { session_.RunTimers(round); });
  // A thread of its own, because it may wait for the manager, and queued requests must not wait
  // with it.
  follower_.Start([this](uint64_t round) {
    open_modes_.FollowKernelWrites();
    appends_.EndOverdue();
    handle_writer_.PublishDue();
    if (round % 10 == 0) reader_.stream_waits().LookAgain();
  });
  mapped_stores_.Start();
  started_ = true;
  return OkStatus();
}

Status Filesystem::Impl::Stop() {
  if (!started_.exchange(false)) return stop_status_;
  mapped_stores_.Stop();
  for (const InodePtr& inode : inodes_.All()) {
    // Without a budget: no program waits any more.
    const MutexLock io(inode->io);
    attributes_.NoteKernelWrites(*inode);
    if (inode->append_hold && !appends_.End(*inode, true).ok()) stats_.Add(Counter::kErrors);
    mapped_stores_.Catch(*inode);
    write_behind_.Drain(*inode);
    const Outcome<Done> committed = writer_.Commit(*inode, !IsStreaming(*inode));
    if (!committed.ok() && stop_status_.ok())
      stop_status_ = AbortedError(fmt::format("file {} could not be stored: {}", inode->file.value,
                                              committed.failure().message));
  }
  mapped_stores_.NameKept();
  timer_.Stop();
  follower_.Stop();
  write_behind_.Stop();
  reader_.stream_waits().Stop();
  reads_.Stop();
  releases_.Send();
  copies_.EndAll();
  grants_.GiveBackAll();
  manager_.Stop();
  service_.Stop();
  pages_.Stop();
  return stop_status_;
}

Filesystem::Filesystem(FilesystemOptions options, ManagerApi& manager, NodeApi& nodes,
                       KernelNotifier& notifier, const Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), manager, nodes, notifier, clock)) {}
Filesystem::~Filesystem() = default;

Status Filesystem::Start() { return impl_->Start(); }
Status Filesystem::Stop() { return impl_->Stop(); }

Outcome<EntryResult> Filesystem::Lookup(FileId parent, std::string_view name,
                                        std::optional<uint32_t> uid) {
  return impl_->namespace_.Lookup(parent, name, uid);
}
void Filesystem::Forget(FileId file, uint64_t lookups) { impl_->inodes_.Forget(file, lookups); }

Outcome<EntryResult> Filesystem::MakeNode(const NewEntry& entry) {
  const std::optional<FileType> type = TypeOfMode(entry.mode);
  if (!type)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                fmt::format("mknod cannot create a file of mode {:o}", entry.mode));
  MakeRequest request;
  request.type = *type;
  request.permissions = entry.mode & 07777 & ~entry.caller.umask;
  return impl_->namespace_.Make(entry, std::move(request));
}
Outcome<EntryResult> Filesystem::MakeDirectory(const NewEntry& entry) {
  MakeRequest request;
  request.type = FileType::kDirectory;
  request.permissions = entry.mode & 07777 & ~entry.caller.umask;
  return impl_->namespace_.Make(entry, std::move(request));
}
Outcome<EntryResult> Filesystem::MakeSymlink(const NewEntry& entry, std::string_view target) {
  MakeRequest request;
  request.type = FileType::kSymlink;
  request.permissions = 0777;
  request.symlink_target = std::string(target);
  return impl_->namespace_.Make(entry, std::move(request));
}
Outcome<EntryResult> Filesystem::Link(FileId file, FileId new_parent, std::string_view new_name) {
  return impl_->namespace_.Link(file, new_parent, new_name);
}
Outcome<Done> Filesystem::Unlink(FileId parent, std::string_view name) {
  return impl_->namespace_.Remove(parent, name, false);
}
Outcome<Done> Filesystem::RemoveDirectory(FileId parent, std::string_view name) {
  return impl_->namespace_.Remove(parent, name, true);
}
Outcome<Done> Filesystem::Rename(FileId old_parent, std::string_view old_name, FileId new_parent,
                                 std::string_view new_name, uint32_t flags) {
  if ((flags & ~static_cast<uint32_t>(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0 ||
      flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                fmt::format("rename flags {:#x} are not supported", flags));
  RenameRequest request{old_parent, std::string(old_name), new_parent, std::string(new_name)};
  request.no_replace = (flags & RENAME_NOREPLACE) != 0;
  request.exchange = (flags & RENAME_EXCHANGE) != 0;
  return impl_->namespace_.Rename(request);
}
Outcome<std::string> Filesystem::ReadSymlink(FileId file) {
  return impl_->namespace_.ReadSymlink(file);
}

Outcome<AttributesResult> Filesystem::GetAttributes(FileId file) {
  return impl_->file_attributes_.Get(file);
}
Outcome<Attributes> Filesystem::GetUnsettledAttributes(FileId file) {
  return impl_->file_attributes_.GetUnsettled(file);
}
Outcome<AttributesResult> Filesystem::SetAttributes(FileId file, const AttributeChanges& changes) {
  return impl_->file_attributes_.Set(file, changes);
}
void Filesystem::SetAttributes(FileId file, const AttributeChanges& changes,
                               std::function<void(Outcome<AttributesResult>)> done) {
  impl_->file_attributes_.Set(file, changes, std::move(done));
}
Outcome<StatFilesystemReply> Filesystem::StatFilesystem() {
  return impl_->calls_.Ask<StatFilesystemReply>(StatFilesystemRequest{});
}

Outcome<CreateResult> Filesystem::Create(const NewEntry& entry, uint32_t flags) {
  return impl_->opener_.Create(entry, flags);
}
Outcome<OpenResult> Filesystem::Open(FileId file, uint32_t flags, const Caller& caller) {
  return impl_->opener_.Open(file, flags, caller);
}
OpenMode Filesystem::PassthroughRefused(HandleId handle) {
  return impl_->open_modes_.PassthroughRefused(handle);
}
void Filesystem::OpenedUnbacked(HandleId handle) { impl_->open_modes_.OpenedUnbacked(handle); }
Outcome<ReadResult> Filesystem::Read(HandleId handle, uint64_t offset, size_t size_bytes) {
  return impl_->reader_.Read(handle, offset, size_bytes);
}
void Filesystem::OnUnreadableMapping(HandleId handle) {
  impl_->reader_.OnUnreadableMapping(handle);
}
Outcome<size_t> Filesystem::Write(HandleId handle, const CallPiece& piece,
                                  std::span<const std::byte> data, const Memory& memory) {
  return impl_->handle_writer_.Write(handle, piece, data, memory);
}
Outcome<size_t> Filesystem::WritePages(HandleId handle, uint64_t offset,
                                       std::span<const std::byte> data, const Memory& memory) {
  return impl_->handle_writer_.WritePages(handle, offset, data, memory);
}
void Filesystem::Flush(HandleId handle, uint64_t lock_owner,
                       std::function<void(Outcome<Done>)> done) {
  impl_->closer_.Flush(handle, lock_owner, std::move(done));
}
void Filesystem::Release(HandleId handle, std::optional<uint64_t> flock_owner) {
  impl_->closer_.Release(handle, flock_owner);
}
Outcome<Done> Filesystem::Fsync(HandleId handle) { return impl_->closer_.Fsync(handle); }
Outcome<Done> Filesystem::Allocate(HandleId handle, int mode, uint64_t offset, uint64_t length) {
  return impl_->size_changes_.Allocate(handle, mode, offset, length);
}
Outcome<uint64_t> Filesystem::Seek(HandleId handle, uint64_t offset, SeekKind kind) {
  return impl_->reader_.Seek(handle, offset, kind);
}

Outcome<HandleId> Filesystem::OpenDirectory(FileId directory) {
  return impl_->directories_.Open(directory);
}
Outcome<DirectoryPage> Filesystem::ReadDirectory(HandleId handle, uint64_t offset,
                                                 size_t items_max) {
  return impl_->directories_.Read(handle, offset, items_max);
}
EntryResult Filesystem::RememberEntry(HandleId handle, const DirectoryItem& item) {
  return impl_->directories_.Remember(handle, item);
}
void Filesystem::ReleaseDirectory(HandleId handle) { impl_->handles_.RemoveListing(handle); }
Outcome<Done> Filesystem::FsyncDirectory(FileId directory) {
  return impl_->commits_.EnsureAllMade(*impl_->inodes_.Get(directory));
}

Outcome<std::string> Filesystem::GetXattr(FileId file, std::string_view name) {
  return impl_->xattrs_.Get(file, name);
}
Outcome<std::vector<std::string>> Filesystem::ListXattrs(FileId file) {
  return impl_->xattrs_.List(file);
}
Outcome<Done> Filesystem::SetXattr(FileId file, std::string_view name, std::string_view value,
                                   XattrMode mode) {
  return impl_->xattrs_.Set(file, name, value, mode);
}
Outcome<Done> Filesystem::RemoveXattr(FileId file, std::string_view name) {
  return impl_->xattrs_.Remove(file, name);
}

Outcome<std::optional<Lock>> Filesystem::GetLock(FileId file, const Lock& lock) {
  return impl_->locks_.Get(file, lock);
}
Outcome<Done> Filesystem::SetLock(FileId file, const Lock& lock) {
  return impl_->locks_.Set(file, lock);
}
void Filesystem::NoteLockOwner(HandleId handle, uint64_t owner) {
  impl_->locks_.NoteOwner(handle, owner);
}
LockWaitId Filesystem::WaitForLock(FileId file, const Lock& lock,
                                   std::function<void(Outcome<Done>)> done) {
  return impl_->locks_.Wait(file, lock, std::move(done));
}
void Filesystem::CancelLockWait(LockWaitId wait) { impl_->locks_.CancelWait(wait); }

Time Filesystem::ManagerNow() { return impl_->ManagerNow(); }
void Filesystem::SetPassthrough(bool allowed) { impl_->SetPassthrough(allowed); }
std::vector<TracedMount::NamedFile> Filesystem::KnownNames() { return impl_->KnownNames(); }
uint64_t Filesystem::KnownSize(FileId file) { return impl_->KnownSize(file); }

std::string Filesystem::StatsJson() const { return impl_->StatsJson(); }

}  // namespace mosa::sai
