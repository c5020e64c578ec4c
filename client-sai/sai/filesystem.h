// The file system of one mount in Mosa's own terms. client-sai/fuse translates kernel requests into
// calls of it.
//
// Inode numbers are FileIds (the root is 1). Names and paths are bytes. `flags` are those of
// open(2). Times are in the manager's time base.
#ifndef MOSA_CLIENT_SAI_SAI_FILESYSTEM_H_
#define MOSA_CLIENT_SAI_SAI_FILESYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/core/rules.h"
#include "client-sai/core/write_buffer.h"
#include "client-sai/trace/traced_mount.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/strong_id.h"
#include "common/base/time.h"
#include "common/model/attributes.h"
#include "common/model/ids.h"
#include "common/model/messages.h"
#include "common/observe/duration_table.h"

namespace mosa::sai {

// An open file or directory. Never 0, never reused in the life of a mount.
using HandleId = StrongId<struct HandleIdTag, uint64_t>;
// A pending request for a lock.
using LockWaitId = StrongId<struct LockWaitIdTag, uint64_t>;

// The Filesystem's access to the kernel's caches. Implemented by client-sai/fuse. Called from the
// Filesystem's own threads, never from inside one of its public methods. Calls may block until the
// kernel has dropped what it cached. A file or name unknown to the kernel is not an error.
class KernelNotifier {
 public:
  struct Capabilities {
    bool passthrough = false;  // A descriptor in OpenMode may be registered as a backing file.
    bool epoch = false;        // InvalidateEntries() works; otherwise names get no kernel timeout.
    // A write that bypasses the page cache drops the pages that it touches before it is sent.
    bool drops_pages = false;
    // A file opened for reading with FOPEN_DIRECT_IO can be mapped shared.
    bool maps_direct = false;
  };
  virtual ~KernelNotifier() = default;
  // Constant from the first request on.
  virtual Capabilities capabilities() const = 0;
  // Makes the kernel look up every cached name of the mount again, present or absent
  // (FUSE_NOTIFY_INC_EPOCH). Requires the capability `epoch`.
  virtual void InvalidateEntries() = 0;
  // Invalidates the attributes and pages of `file` (which may be a directory). May block on pages
  // that a request has locked. False if the kernel does not know the file.
  virtual bool InvalidateFile(FileId file) = 0;
  // Invalidates only the attributes. Never blocks, so it may be called while a request for the file
  // is served.
  virtual void InvalidateAttributes(FileId file) = 0;
};

struct FilesystemOptions {
  uint64_t write_behind_bytes_max = uint64_t{64} << 20;       // Per mount.
  uint64_t write_behind_file_bytes_max = uint64_t{16} << 20;  // Per file.
  uint64_t read_cache_bytes_max = kReadCacheBytesMax;         // Blocks fetched from other nodes.
  uint64_t read_ahead_bytes_max = uint64_t{24} << 20;         // Per open file.
  uint32_t io_threads = 8;       // Kept ready; also the limit on concurrent stores to one node.
  uint32_t io_threads_max = 96;  // A node that hangs holds io_threads of them, never all.
  uint32_t fetch_threads = 16;
  uint32_t recall_threads = 3;        // Kept ready.
  uint32_t recall_threads_max = 256;  // A recall may have to wait until another mount has finished.
  uint32_t drop_threads_max = 256;    // Each waits for the kernel's pages of one file at a time.
  size_t idle_inodes_max = 65'536;    // Cached although the kernel has forgotten them.
  size_t names_max = 1'000'000;       // Cached names over all directories.
  bool passthrough = true;            // False: every operation comes through the mount (tracing).
  std::string node_name;              // As in SessionStart.
  std::string host_identity;
  std::string mount_point;
  ClientId client;  // 0: a random one, as every run of a mount needs.
  // Its only class counts waits for prefetched data. May be null; must outlive the filesystem.
  DurationTable* waits = nullptr;
};

// The calling process, as the kernel reports it.
struct Caller {
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t pid = 0;
  uint32_t umask = 0;  // The Filesystem applies it to the mode of new files.
};

// The answer to a lookup, and how long the kernel may cache name and attributes: never longer than
// the session's remaining lease, and 0 if it must not cache them.
struct EntryResult {
  Entry entry;  // file.value == 0: the name is known to be absent (cacheable for entry_valid).
  Duration entry_valid;
  Duration attributes_valid;
};
struct AttributesResult {
  Attributes attributes;
  Duration attributes_valid;
};

// How the kernel must open the file. All concurrent opens of an inode are compatible: passthrough
// and cached never mix; direct goes with either. While an open is passthrough, others that are
// direct must name its backing file, which their mappings then show.
struct OpenMode {
  enum class Kind : uint8_t {
    kCached,       // Pages are cached; keep_cache tells whether cached pages stay.
    kDirect,       // FOPEN_DIRECT_IO.
    kPassthrough,  // The kernel reads and writes `descriptor`, the object itself.
  };
  Kind kind = Kind::kCached;
  bool keep_cache = false;
  // Borrowed; open until the handle is released. Several opens of one inode may get different
  // descriptors of the same object. The kernel wants one backing file per inode, so register the
  // first.
  int descriptor = -1;
  // kDirect: the open must name the backing file of other opens, and its mappings are of that file.
  // If there is none, `descriptor` becomes it, if given.
  bool joins = false;
  bool stream = false;  // It reads a stream, beyond the size that the kernel knows.
};
struct OpenResult {
  HandleId handle;
  OpenMode mode;
  uint64_t size_bytes = 0;  // The file's size.
  uint64_t data_version = 0;
};
struct CreateResult {
  EntryResult entry;
  HandleId handle;
  OpenMode mode;
  uint64_t size_bytes = 0;
  uint64_t data_version = 0;
};

// The result of read(2): either `bytes` (kept alive by `keep`), or the range [offset, offset +
// size_bytes) of `descriptor`. The range lies inside that object, and the descriptor stays open
// while `keep` lives.
struct ReadResult {
  std::shared_ptr<const void> keep;
  int descriptor = -1;
  uint64_t offset = 0;
  size_t size_bytes = 0;
  std::span<const std::byte> bytes;  // Empty when `descriptor` is set.
  // The same range mapped into memory, or empty. Only the kernel may copy from it: if the object is
  // truncated meanwhile, the copy faults and the bytes must be requested again.
  std::span<const std::byte> mapped;
  // Set if there are no bytes yet, but there will be. It calls its argument, on another thread,
  // when the read should be repeated (true), or when the handle is released or the mount ends
  // (false). No thread waits.
  std::function<void(std::function<void(bool may_read)>)> await{};
};

// The changes of a setattr. `size_bytes` truncates or extends.
struct AttributeChanges {
  std::optional<uint32_t> permissions;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint64_t> size_bytes;
  std::optional<Time> access_time;
  std::optional<Time> modify_time;
  bool access_time_now = false;
  bool modify_time_now = false;
  std::optional<HandleId> handle;  // With a new size: the descriptor of an ftruncate(2).
};

// A name to be created by mknod, mkdir, symlink or create.
struct NewEntry {
  FileId parent;
  std::string_view name;
  uint32_t mode = 0;  // st_mode; Create and MakeDirectory ignore the type bits.
  uint32_t device = 0;
  Caller caller;
};

struct DirectoryItem {
  std::string name;
  Entry entry;               // For "." and "..", only file and type are meaningful.
  uint64_t next_offset = 0;  // Where a later ReadDirectory continues after this item.
};
struct DirectoryPage {
  std::vector<DirectoryItem> items;  // Empty: the end.
};

enum class XattrMode : uint8_t { kAny = 1, kCreate, kReplace };
// The offset of one request of a write call, and the bytes of the whole call; 0 if unknown.
struct CallPiece {
  uint64_t offset = 0;
  uint64_t call_bytes = 0;
};

enum class SeekKind : uint8_t { kData = 1, kHole };

// Serves one mount, from Start to Stop. Owned by the program; borrows its constructor's arguments.
//
// Threads: every method may be called from any thread and may block for manager or nodes, at most
// about kWaitMax. None calls the KernelNotifier on the caller's thread, except
// InvalidateAttributes. Failures: a Failure whose reason names the errno; kNone only where EIO is
// the best errno. A failed call leaves the state unchanged, except that a failed write may have
// written a part. Invariants: (1) no answer comes from a cache after the session's lease has
// expired; (2) a byte that Write accepted is either stored or reported as an error at a later
// write, fsync or flush of every handle open for writing at that time.
class Filesystem {
 public:
  Filesystem(FilesystemOptions options, ManagerApi& manager, NodeApi& nodes,
             KernelNotifier& notifier, const Clock& clock);
  ~Filesystem();  // Calls Stop.
  Filesystem(const Filesystem&) = delete;
  Filesystem& operator=(const Filesystem&) = delete;

  // Opens the session. Errors as ManagerApi::Start.
  Status Start();
  // Sends buffered and deferred changes, returns grants, and ends the session. Handles become
  // invalid. Idempotent. An error names what could not be stored. Precondition: no other call is in
  // progress.
  Status Stop();

  // ---- names. Every entry in an answer (also of RememberEntry) counts one kernel lookup, which
  // Forget takes back.
  // `uid`: the user who asks, and who may be about to make a file of that name.
  Outcome<EntryResult> Lookup(FileId parent, std::string_view name,
                              std::optional<uint32_t> uid = std::nullopt);
  void Forget(FileId file, uint64_t lookups);
  Outcome<EntryResult> MakeNode(const NewEntry& entry);
  Outcome<EntryResult> MakeDirectory(const NewEntry& entry);
  Outcome<EntryResult> MakeSymlink(const NewEntry& entry, std::string_view target);
  Outcome<EntryResult> Link(FileId file, FileId new_parent, std::string_view new_name);
  Outcome<Done> Unlink(FileId parent, std::string_view name);
  Outcome<Done> RemoveDirectory(FileId parent, std::string_view name);
  // `flags` are those of renameat2(2): RENAME_NOREPLACE or RENAME_EXCHANGE; others are kInvalid.
  Outcome<Done> Rename(FileId old_parent, std::string_view old_name, FileId new_parent,
                       std::string_view new_name, uint32_t flags);
  Outcome<std::string> ReadSymlink(FileId file);

  // ---- attributes
  // Blocks until the kernel has dropped the pages that a change in progress makes stale.
  Outcome<AttributesResult> GetAttributes(FileId file);
  // Like GetAttributes without that wait, for use while a write with locked pages is served. Not
  // for replies to the kernel.
  Outcome<Attributes> GetUnsettledAttributes(FileId file);
  Outcome<AttributesResult> SetAttributes(FileId file, const AttributeChanges& changes);
  // As above. A new size of a file that nobody has open on this mount then waits for the copies
  // that a close waits for: `done` runs once, perhaps on another thread, and must not block.
  void SetAttributes(FileId file, const AttributeChanges& changes,
                     std::function<void(Outcome<AttributesResult>)> done);
  Outcome<StatFilesystemReply> StatFilesystem();

  // ---- open files
  // kExists if the name exists, whatever `flags` say: only the kernel knows who may open that file,
  // so it must look the name up again.
  Outcome<CreateResult> Create(const NewEntry& entry, uint32_t flags);
  // Honours O_TRUNC if present; otherwise the kernel sends a truncate of its own.
  Outcome<OpenResult> Open(FileId file, uint32_t flags, const Caller& caller);
  // Returns how to open instead if the kernel refused the descriptor of a kPassthrough answer. Call
  // before replying to the open.
  OpenMode PassthroughRefused(HandleId handle);
  // The open `joins`, but names no backing file. Call before replying to the open.
  void OpenedUnbacked(HandleId handle);
  // Returns size_bytes bytes, or fewer at the file's end.
  Outcome<ReadResult> Read(HandleId handle, uint64_t offset, size_t size_bytes);
  // The kernel could not copy `mapped` of a ReadResult and will ask again. Reads of this handle no
  // longer use mappings.
  void OnUnreadableMapping(HandleId handle);
  // Writes all of `data`. With O_APPEND the data go to the file's end, whatever the offset. One
  // appending system call is atomic over all mounts if all of it arrives within 5 s; the offsets of
  // its pieces show that they belong together. `memory` owns the data if they may be kept instead
  // of copied.
  Outcome<size_t> Write(HandleId handle, const CallPiece& piece, std::span<const std::byte> data,
                        const Memory& memory = {});
  // Writes back pages that programs changed through a mapping. They go to their own offset,
  // whichever handle the kernel uses, and stay locked in its cache until this returns.
  Outcome<size_t> WritePages(HandleId handle, uint64_t offset, std::span<const std::byte> data,
                             const Memory& memory = {});
  // close(2) of one descriptor: makes the file visible to others, reports errors of earlier writes,
  // and drops the POSIX locks of `lock_owner` on the file. Calls `done` once: on this thread, or
  // later on another one if the close waits for copies; `done` must not block it. That wait fails
  // when copying has made no progress for nearly kWaitMax. Every further byte or copy restarts the
  // period, so the total is unlimited.
  void Flush(HandleId handle, uint64_t lock_owner, std::function<void(Outcome<Done>)> done);
  // The last reference is gone. `flock_owner` also drops its flock lock. Never fails.
  void Release(HandleId handle, std::optional<uint64_t> flock_owner);
  Outcome<Done> Fsync(HandleId handle);
  // Supports fallocate(2) modes 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE, ZERO_RANGE[|KEEP_SIZE]; others
  // are kUnsupported.
  Outcome<Done> Allocate(HandleId handle, int mode, uint64_t offset, uint64_t length);
  // Fails with kNoEntry, which stands for ENXIO, if `offset` is at or beyond the end.
  Outcome<uint64_t> Seek(HandleId handle, uint64_t offset, SeekKind kind);

  // ---- directories: a listing does not change while it is read; offset 0 starts a new one, in
  // which names of the earlier one keep their offsets.
  Outcome<HandleId> OpenDirectory(FileId directory);
  Outcome<DirectoryPage> ReadDirectory(HandleId handle, uint64_t offset, size_t items_max);
  // Call for each readdirplus item in the reply, except "." and "..". Counts a lookup. file.value
  // == 0: the entry is gone; return the item without attributes.
  EntryResult RememberEntry(HandleId handle, const DirectoryItem& item);
  void ReleaseDirectory(HandleId handle);
  Outcome<Done> FsyncDirectory(FileId directory);

  // ---- extended attributes. "user.mosa.mount" of the root holds this mount's counters as JSON.
  Outcome<std::string> GetXattr(FileId file, std::string_view name);
  Outcome<std::vector<std::string>> ListXattrs(FileId file);
  Outcome<Done> SetXattr(FileId file, std::string_view name, std::string_view value,
                         XattrMode mode);
  Outcome<Done> RemoveXattr(FileId file, std::string_view name);

  // ---- locks: POSIX record locks and, with Lock::whole_file, flock(2)
  Outcome<std::optional<Lock>> GetLock(FileId file, const Lock& lock);
  // Fails with kWouldBlock if another owner holds a conflicting lock.
  Outcome<Done> SetLock(FileId file, const Lock& lock);
  // Records that a POSIX lock was requested through `handle`. Releasing the handle drops those of
  // its locks that Flush leaves (locks of the open file description, which no process owns).
  void NoteLockOwner(HandleId handle, uint64_t owner);
  // Waits for the lock without a limit. `done` runs once on a thread of the Filesystem, with
  // kInterrupted if cancelled. It may reply to the kernel but must not call the Filesystem.
  LockWaitId WaitForLock(FileId file, const Lock& lock, std::function<void(Outcome<Done>)> done);
  // May come too late; `done` runs exactly once in any case.
  void CancelLockWait(LockWaitId wait);

  // ---- for tracing
  Time ManagerNow();
  // False: the kernel may not read and write files opened from now on directly. True: as the
  // options say.
  void SetPassthrough(bool allowed);
  // The names that this mount knows.
  std::vector<TracedMount::NamedFile> KnownNames();
  // The size as far as this mount knows; asks nobody.
  uint64_t KnownSize(FileId file);

  // Counters as JSON with stable names.
  std::string StatsJson() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_FILESYSTEM_H_
