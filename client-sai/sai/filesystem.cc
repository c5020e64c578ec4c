#include "client-sai/sai/filesystem.h"

#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <random>
#include <utility>

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

}  // namespace

Filesystem::Impl::Impl(FilesystemOptions options, ManagerApi& manager, NodeApi& nodes,
                       KernelNotifier& notifier, const Clock& clock)
    : options_(std::move(options)),
      client_(options_.client.value != 0 ? options_.client : NewClientId()),
      manager_(manager),
      nodes_(nodes),
      notifier_(notifier),
      clock_(clock),
      calls_(manager, stats_),
      lease_(clock),
      inodes_(options_.idle_inodes_max, [this](Inode& inode) { NoteDropped(inode); }),
      file_ids_(manager, calls_),
      releases_(inodes_, calls_),
      grants_(manager, clock),
      blocks_(options_.read_cache_bytes_max),
      copy_waits_(manager, clock),
      watched_(clock),
      buffered_(options_.write_behind_bytes_max),
      kernel_names_(notifier, clock),
      io_(options_.io_threads, options_.io_threads_max),
      reads_(options_.fetch_threads),
      stores_(io_),
      fetches_(reads_),
      service_(options_.recall_threads, options_.recall_threads_max),
      pages_(inodes_, notifier, clock, stats_, options_.recall_threads, options_.drop_threads_max) {
}

Filesystem::Impl::~Impl() {
  if (!Stop().ok()) stats_.Add(Counter::kErrors);
}

Status Filesystem::Impl::Start() {
  // The kernel knows the root without a lookup, permanently.
  CountLookup(*inodes_.Get(kRootFile), 1);
  MOSA_RETURN_IF_ERROR(manager_.Start(*this));
  timer_.Start([this](uint64_t round) { RunTimers(round); });
  // A thread of its own, because it may wait for the manager, and queued requests must not wait
  // with it.
  follower_.Start([this](uint64_t) {
    FollowKernelWrites();
    EndOverdueAppends();
  });
  finisher_ = Thread([this] { LookAtWatched(); });
  started_ = true;
  return OkStatus();
}

Status Filesystem::Impl::Stop() {
  if (!started_.exchange(false)) return stop_status_;
  watched_.Stop();
  finisher_.join();
  for (const InodePtr& inode : inodes_.All()) {
    const MutexLock io(inode->io);
    RefreshFromKernelWrites(*inode);
    if (inode->append_hold && !EndAppend(*inode, true).ok()) stats_.Add(Counter::kErrors);
    CatchStores(*inode);
    Drain(*inode);
    const Outcome<Done> committed = Commit(*inode, true);
    if (!committed.ok() && stop_status_.ok())
      stop_status_ = AbortedError(fmt::format("file {} could not be stored: {}", inode->file.value,
                                              committed.failure().message));
  }
  NameKept();
  timer_.Stop();
  follower_.Stop();
  io_.Stop();
  reads_.Stop();
  releases_.Send();
  copy_waits_.EndAll();
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

Outcome<EntryResult> Filesystem::Lookup(FileId parent, std::string_view name) {
  return impl_->Lookup(parent, name);
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
  return impl_->Make(entry, std::move(request));
}
Outcome<EntryResult> Filesystem::MakeDirectory(const NewEntry& entry) {
  MakeRequest request;
  request.type = FileType::kDirectory;
  request.permissions = entry.mode & 07777 & ~entry.caller.umask;
  return impl_->Make(entry, std::move(request));
}
Outcome<EntryResult> Filesystem::MakeSymlink(const NewEntry& entry, std::string_view target) {
  MakeRequest request;
  request.type = FileType::kSymlink;
  request.permissions = 0777;
  request.symlink_target = std::string(target);
  return impl_->Make(entry, std::move(request));
}
Outcome<EntryResult> Filesystem::Link(FileId file, FileId new_parent, std::string_view new_name) {
  return impl_->Link(file, new_parent, new_name);
}
Outcome<Done> Filesystem::Unlink(FileId parent, std::string_view name) {
  return impl_->Remove(parent, name, false);
}
Outcome<Done> Filesystem::RemoveDirectory(FileId parent, std::string_view name) {
  return impl_->Remove(parent, name, true);
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
  return impl_->Rename(request);
}
Outcome<std::string> Filesystem::ReadSymlink(FileId file) { return impl_->ReadSymlink(file); }

Outcome<AttributesResult> Filesystem::GetAttributes(FileId file) {
  return impl_->GetAttributes(file);
}
Outcome<Attributes> Filesystem::GetUnsettledAttributes(FileId file) {
  return impl_->GetUnsettledAttributes(file);
}
Outcome<AttributesResult> Filesystem::SetAttributes(FileId file, const AttributeChanges& changes) {
  return impl_->SetAttributes(file, changes);
}
void Filesystem::SetAttributes(FileId file, const AttributeChanges& changes,
                               std::function<void(Outcome<AttributesResult>)> done) {
  impl_->SetAttributes(file, changes, std::move(done));
}
Outcome<StatFilesystemReply> Filesystem::StatFilesystem() {
  return impl_->calls_.Ask<StatFilesystemReply>(StatFilesystemRequest{});
}

Outcome<CreateResult> Filesystem::Create(const NewEntry& entry, uint32_t flags) {
  return impl_->Create(entry, flags);
}
Outcome<OpenResult> Filesystem::Open(FileId file, uint32_t flags, const Caller& caller) {
  return impl_->Open(file, flags, caller);
}
OpenMode Filesystem::PassthroughRefused(HandleId handle) {
  return impl_->PassthroughRefused(handle);
}
void Filesystem::OpenedUnbacked(HandleId handle) { impl_->OpenedUnbacked(handle); }
Outcome<ReadResult> Filesystem::Read(HandleId handle, uint64_t offset, size_t size_bytes) {
  return impl_->Read(handle, offset, size_bytes);
}
void Filesystem::OnUnreadableMapping(HandleId handle) { impl_->OnUnreadableMapping(handle); }
Outcome<size_t> Filesystem::Write(HandleId handle, const CallPiece& piece,
                                  std::span<const std::byte> data, const Memory& memory) {
  return impl_->Write(handle, piece, data, memory);
}
Outcome<size_t> Filesystem::WritePages(HandleId handle, uint64_t offset,
                                       std::span<const std::byte> data, const Memory& memory) {
  return impl_->WritePages(handle, offset, data, memory);
}
void Filesystem::Flush(HandleId handle, uint64_t lock_owner,
                       std::function<void(Outcome<Done>)> done) {
  impl_->Flush(handle, lock_owner, std::move(done));
}
void Filesystem::Release(HandleId handle, std::optional<uint64_t> flock_owner) {
  impl_->Release(handle, flock_owner);
}
Outcome<Done> Filesystem::Fsync(HandleId handle) { return impl_->Fsync(handle); }
Outcome<Done> Filesystem::Allocate(HandleId handle, int mode, uint64_t offset, uint64_t length) {
  return impl_->Allocate(handle, mode, offset, length);
}
Outcome<uint64_t> Filesystem::Seek(HandleId handle, uint64_t offset, SeekKind kind) {
  return impl_->Seek(handle, offset, kind);
}

Outcome<HandleId> Filesystem::OpenDirectory(FileId directory) {
  return impl_->OpenDirectoryHandle(directory);
}
Outcome<DirectoryPage> Filesystem::ReadDirectory(HandleId handle, uint64_t offset,
                                                 size_t items_max) {
  return impl_->ReadDirectory(handle, offset, items_max);
}
EntryResult Filesystem::RememberEntry(HandleId handle, const DirectoryItem& item) {
  return impl_->RememberEntry(handle, item);
}
void Filesystem::ReleaseDirectory(HandleId handle) { impl_->handles_.RemoveListing(handle); }
Outcome<Done> Filesystem::FsyncDirectory(FileId directory) {
  return impl_->EnsureAllMade(*impl_->inodes_.Get(directory));
}

Outcome<std::string> Filesystem::GetXattr(FileId file, std::string_view name) {
  return impl_->GetXattr(file, name);
}
Outcome<std::vector<std::string>> Filesystem::ListXattrs(FileId file) {
  return impl_->ListXattrs(file);
}
Outcome<Done> Filesystem::SetXattr(FileId file, std::string_view name, std::string_view value,
                                   XattrMode mode) {
  return impl_->SetXattr(file, name, value, mode);
}
Outcome<Done> Filesystem::RemoveXattr(FileId file, std::string_view name) {
  return impl_->RemoveXattr(file, name);
}

Outcome<std::optional<Lock>> Filesystem::GetLock(FileId file, const Lock& lock) {
  return impl_->GetLock(file, lock);
}
Outcome<Done> Filesystem::SetLock(FileId file, const Lock& lock) {
  return impl_->SetLock(file, lock);
}
void Filesystem::NoteLockOwner(HandleId handle, uint64_t owner) {
  impl_->NoteLockOwner(handle, owner);
}
LockWaitId Filesystem::WaitForLock(FileId file, const Lock& lock,
                                   std::function<void(Outcome<Done>)> done) {
  return impl_->WaitForLock(file, lock, std::move(done));
}
void Filesystem::CancelLockWait(LockWaitId wait) { impl_->CancelLockWait(wait); }

Time Filesystem::ManagerNow() { return impl_->ManagerNow(); }
void Filesystem::SetPassthrough(bool allowed) { impl_->SetPassthrough(allowed); }
std::vector<TracedMount::NamedFile> Filesystem::KnownNames() { return impl_->KnownNames(); }
uint64_t Filesystem::KnownSize(FileId file) { return impl_->KnownSize(file); }

std::string Filesystem::StatsJson() const { return impl_->StatsJson(); }

}  // namespace mosa::sai
