// The file system of one mount in our own terms: what client-sai/fuse translates kernel requests
// into.
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

// An open file or directory; never used twice in the life of a mount, never 0.
using HandleId = StrongId<struct HandleIdTag, uint64_t>;
// A lock that somebody waits for.
using LockWaitId = StrongId<struct LockWaitIdTag, uint64_t>;

// How the Filesystem reaches the kernel's caches. Implemented by client-sai/fuse; called from
// threads of the Filesystem's own, never from inside one of its public methods. The calls may block
// until the kernel has dropped what was cached; a file or name that the kernel does not know is not
// an error.
class KernelNotifier {
 public:
  struct Capabilities {
    bool passthrough = false;  // A descriptor in OpenMode may be registered as a backing file.
    bool epoch = false;        // InvalidateEntries() works; otherwise names get no kernel timeout.
    // A write that goes past the page cache drops the pages that it touches, before it is sent.
    bool drops_pages = false;
    // A file that is opened for reading past the page cache can be mapped for sharing.
    bool maps_direct = false;
  };
  virtual ~KernelNotifier() = default;
  // Constant from the first request on.
  virtual Capabilities capabilities() const = 0;
  // Every cached name of the whole mount, present or absent, is to be looked up again
  // (FUSE_NOTIFY_INC_EPOCH). Only called with the capability `epoch`.
  virtual void InvalidateEntries() = 0;
  // The attributes and pages of `file` (which may be a directory) are out of date. May wait for
  // pages that a request has locked. False if the kernel does not know the file.
  virtual bool InvalidateFile(FileId file) = 0;
  // Only its attributes are. Never blocks, so it may be called while a request for the file is
  // served.
  virtual void InvalidateAttributes(FileId file) = 0;
};

struct FilesystemOptions {
  uint64_t write_behind_bytes_max = uint64_t{64} << 20;       // Per mount.
  uint64_t write_behind_file_bytes_max = uint64_t{16} << 20;  // Per file.
  uint64_t read_cache_bytes_max = uint64_t{48} << 20;         // Blocks fetched from other nodes.
  uint64_t read_ahead_bytes_max = uint64_t{24} << 20;         // Per open file.
  uint32_t io_threads = 8;       // Kept ready; and so many stores go to one node at once.
  uint32_t io_threads_max = 96;  // A node that hangs holds io_threads of them, never all.
  uint32_t fetch_threads = 16;
  uint32_t recall_threads = 3;        // Kept ready.
  uint32_t recall_threads_max = 256;  // One may have to wait until another mount has let go.
  uint32_t drop_threads_max = 256;    // Each waits for the kernel's pages of one file at a time.
  size_t idle_inodes_max = 65'536;    // Cached though the kernel has forgotten them.
  size_t names_max = 1'000'000;       // Cached names over all directories.
  bool passthrough = true;            // False: every operation comes through here (tracing).
  std::string node_name;              // As in SessionStart.
  std::string host_identity;
  std::string mount_point;
  // Whose one class is waits for what is being fetched ahead; null: they are not counted. Outlives
  // the filesystem.
  DurationTable* waits = nullptr;
};

// The caller, as the kernel reports it.
struct Caller {
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t pid = 0;
  uint32_t umask = 0;  // Applied by the Filesystem to the mode of what is made.
};

// A name's answer. How long the kernel may cache name and attributes: never longer than the
// session's remaining lease, and 0 when it must not.
struct EntryResult {
  Entry entry;  // file.value == 0: the name is known to be absent (cacheable for entry_valid).
  Duration entry_valid;
  Duration attributes_valid;
};
struct AttributesResult {
  Attributes attributes;
  Duration attributes_valid;
};

// What open(2) must tell the kernel. All opens of an inode at a time are compatible: passthrough
// and cached are never mixed, direct goes with either.
struct OpenMode {
  enum class Kind : uint8_t {
    kCached,       // Pages are cached; keep_cache says whether those that are cached stay.
    kDirect,       // FOPEN_DIRECT_IO.
    kPassthrough,  // The kernel reads and writes `descriptor`, the object itself.
  };
  Kind kind = Kind::kCached;
  bool keep_cache = false;
  // Borrowed: open until the handle is released. One inode may hand out different descriptors of
  // the same object to several opens; the kernel wants one backing file per inode, so register the
  // first.
  int descriptor = -1;
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

// What read(2) returns: either `bytes` (kept alive by `keep`) or the range [offset,
// offset + size_bytes) of `descriptor`, wholly inside that object, and open while `keep` lives.
struct ReadResult {
  std::shared_ptr<const void> keep;
  int descriptor = -1;
  uint64_t offset = 0;
  size_t size_bytes = 0;
  std::span<const std::byte> bytes;  // Empty when `descriptor` is set.
  // The same as `descriptor` says, mapped into memory, or empty. For the kernel's page cache alone:
  // what somebody cuts off meanwhile faults, and has then to be asked for again.
  std::span<const std::byte> mapped;
};

// What setattr asks to change. `size_bytes` truncates or grows.
struct AttributeChanges {
  std::optional<uint32_t> permissions;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint64_t> size_bytes;
  std::optional<Time> access_time;
  std::optional<Time> modify_time;
  bool access_time_now = false;
  bool modify_time_now = false;
};

// A name that mknod, mkdir, symlink or create makes.
struct NewEntry {
  FileId parent;
  std::string_view name;
  uint32_t mode = 0;  // Type bits of st_mode (ignored by Create and MakeDirectory) and permissions.
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
// Where a piece of what one system call writes goes, and how much that call writes with all its
// pieces: 0 if that is not known.
struct CallPiece {
  uint64_t offset = 0;
  uint64_t call_bytes = 0;
};

enum class SeekKind : uint8_t { kData = 1, kHole };

// Serves one mount, from Start to Stop. Owned by the program; borrows what it is made with.
//
// Threads: every method may be called from any thread and may block, for manager or nodes at most
// about kWaitMax; none calls the KernelNotifier on the caller's thread, but InvalidateAttributes.
// Failures: a Failure whose reason names the errno; kNone only for what has no better errno than
// EIO. State is as before a failed call, except that a failed write may have written a part.
// Invariants: (1) nothing is answered from a cache after the session's lease has run out; (2) a
// byte that write accepted is either stored or reported as an error at a later write, fsync or
// flush of every handle open for writing then.
class Filesystem {
 public:
  Filesystem(FilesystemOptions options, ManagerApi& manager, NodeApi& nodes,
             KernelNotifier& notifier, const Clock& clock);
  ~Filesystem();  // Calls Stop.
  Filesystem(const Filesystem&) = delete;
  Filesystem& operator=(const Filesystem&) = delete;

  // Opens the session. Errors as ManagerApi::Start.
  Status Start();
  // Sends what is buffered and deferred, gives back grants, ends the session. Handles are gone. No
  // other call may be under way. Idempotent. An error names what could not be stored.
  Status Stop();

  // ---- names. Entries that are answered count one kernel lookup each (also RememberEntry), which
  // Forget takes back.
  Outcome<EntryResult> Lookup(FileId parent, std::string_view name);
  void Forget(FileId file, uint64_t lookups);
  Outcome<EntryResult> MakeNode(const NewEntry& entry);
  Outcome<EntryResult> MakeDirectory(const NewEntry& entry);
  Outcome<EntryResult> MakeSymlink(const NewEntry& entry, std::string_view target);
  Outcome<EntryResult> Link(FileId file, FileId new_parent, std::string_view new_name);
  Outcome<Done> Unlink(FileId parent, std::string_view name);
  Outcome<Done> RemoveDirectory(FileId parent, std::string_view name);
  // `flags` of renameat2(2): RENAME_NOREPLACE, RENAME_EXCHANGE; others are kInvalid.
  Outcome<Done> Rename(FileId old_parent, std::string_view old_name, FileId new_parent,
                       std::string_view new_name, uint32_t flags);
  Outcome<std::string> ReadSymlink(FileId file);

  // ---- attributes
  // Waits until the kernel has dropped the pages that a change under way makes wrong.
  Outcome<AttributesResult> GetAttributes(FileId file);
  // The same without that wait: while a write is served, which has pages locked. Not for the
  // kernel.
  Outcome<Attributes> GetUnsettledAttributes(FileId file);
  Outcome<AttributesResult> SetAttributes(FileId file, const AttributeChanges& changes,
                                          std::optional<HandleId> handle);
  Outcome<StatFilesystemReply> StatFilesystem();

  // ---- open files
  // O_EXCL is decided here: a name that exists is kExists with it, and opened without it.
  Outcome<CreateResult> Create(const NewEntry& entry, uint32_t flags);
  // O_TRUNC is honoured if present (the kernel sends a truncate of its own otherwise).
  Outcome<OpenResult> Open(FileId file, uint32_t flags, const Caller& caller);
  // The kernel refused the descriptor of a kPassthrough answer: how to open instead. Call before
  // the reply of the open is sent.
  OpenMode PassthroughRefused(HandleId handle);
  // At most size_bytes; fewer only at the file's end.
  Outcome<ReadResult> Read(HandleId handle, uint64_t offset, size_t size_bytes);
  // The kernel could not copy `mapped` of a ReadResult, and will ask again for what it needs: that
  // and what follows comes without.
  void OnUnreadableMapping(HandleId handle);
  // Writes all of `data`. With O_APPEND it goes to the file's end, whatever the offset says, and
  // what one system call writes is atomic over all mounts if it comes within 5 s; when a call goes
  // on is seen by the offsets of its pieces. `memory` owns the data, if they may be kept instead of
  // copied.
  Outcome<size_t> Write(HandleId handle, const CallPiece& piece, std::span<const std::byte> data,
                        const Memory& memory = {});
  // Pages that programs have stored into through a mapping: they go where they lie, by whatever
  // handle the kernel writes them, and stay locked in its cache until this returns.
  Outcome<size_t> WritePages(HandleId handle, uint64_t offset, std::span<const std::byte> data,
                             const Memory& memory = {});
  // close(2) of one descriptor: makes the file what others see, reports errors of earlier writes,
  // and drops the POSIX locks of `lock_owner` on the file if it has any. `done` is called once: on
  // this thread, or, where the close waits for copies of the file, later on another one, which it
  // must not keep. That wait ends with an error when copying has made no progress for nearly
  // kWaitMax; each byte or copy more begins it anew, so it has no limit as a whole.
  void Flush(HandleId handle, uint64_t lock_owner, std::function<void(Outcome<Done>)> done);
  // The last reference is gone. With `flock_owner` its flock lock goes too. Never fails.
  void Release(HandleId handle, std::optional<uint64_t> flock_owner);
  Outcome<Done> Fsync(HandleId handle);
  // fallocate(2): 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE, ZERO_RANGE[|KEEP_SIZE]; others kUnsupported.
  Outcome<Done> Allocate(HandleId handle, int mode, uint64_t offset, uint64_t length);
  // kNoEntry stands for ENXIO: `offset` is at or beyond the end.
  Outcome<uint64_t> Seek(HandleId handle, uint64_t offset, SeekKind kind);

  // ---- directories: a listing stands still while it is read; offset 0 begins a fresh one.
  Outcome<HandleId> OpenDirectory(FileId directory);
  Outcome<DirectoryPage> ReadDirectory(HandleId handle, uint64_t offset, size_t items_max);
  // readdirplus: call for each item that is put into the reply, except "." and ".."; counts a
  // lookup. file.value == 0: the entry has gone since; put the item without attributes.
  EntryResult RememberEntry(HandleId handle, const DirectoryItem& item);
  void ReleaseDirectory(HandleId handle);
  Outcome<Done> FsyncDirectory(FileId directory);

  // ---- extended attributes. "user.mosa.mount" of the root is this mount's counters as JSON.
  Outcome<std::string> GetXattr(FileId file, std::string_view name);
  Outcome<std::vector<std::string>> ListXattrs(FileId file);
  Outcome<Done> SetXattr(FileId file, std::string_view name, std::string_view value,
                         XattrMode mode);
  Outcome<Done> RemoveXattr(FileId file, std::string_view name);

  // ---- locks: POSIX record locks and, with Lock::whole_file, flock(2)
  Outcome<std::optional<Lock>> GetLock(FileId file, const Lock& lock);
  // kWouldBlock if another holds it.
  Outcome<Done> SetLock(FileId file, const Lock& lock);
  // A POSIX lock is asked for through `handle`: what Flush of the owner leaves (locks of the open
  // file description, which no process owns) is dropped when the handle is released.
  void NoteLockOwner(HandleId handle, uint64_t owner);
  // Waits as long as it takes. `done` runs once, on a thread of the Filesystem's, with
  // kInterrupted if cancelled; it may reply to the kernel but not call the Filesystem.
  LockWaitId WaitForLock(FileId file, const Lock& lock, std::function<void(Outcome<Done>)> done);
  // May come too late; `done` runs in any case, exactly once.
  void CancelLockWait(LockWaitId wait);

  // ---- for a trace of the mount
  Time ManagerNow();
  // False: no file that is opened from here on is the kernel's to read and write by itself. True:
  // as the options say.
  void SetPassthrough(bool allowed);
  // What this mount knows of names.
  std::vector<TracedMount::NamedFile> KnownNames();
  // As far as this mount knows; asks nobody.
  uint64_t KnownSize(FileId file);

  // Counters as JSON with stable names.
  std::string StatsJson() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_FILESYSTEM_H_
