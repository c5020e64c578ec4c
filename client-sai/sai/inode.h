// A mount's knowledge of one file or directory and of its open handles. Plain structs: the rules
// are in the classes that Filesystem::Impl consists of.
#ifndef MOSA_CLIENT_SAI_SAI_INODE_H_
#define MOSA_CLIENT_SAI_SAI_INODE_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client-sai/core/kept_names.h"
#include "client-sai/core/read_ahead.h"
#include "client-sai/core/size_in_kernel.h"
#include "client-sai/core/write_buffer.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/object_view.h"
#include "common/base/sync.h"
#include "common/model/messages.h"
#include "common/model/ranges.h"

namespace mosa::sai {

// An open descriptor of an object on a node of this host.
struct LocalObject {
  NodeId node;
  UniqueFd fd;
  bool writable = false;
  // Opened read-only, to detect changes by programs after this mount has closed the object for
  // writing.
  bool watched = false;
};

// The names of a directory that are known under interest.
struct Names {
  uint64_t era = 0;
  std::unordered_map<std::string, FileId> entries;  // FileId{}: known to be absent.
  bool complete = false;                            // Every existing name is in `entries`.
  bool delegated = false;                           // Creates may be deferred.
  // Limit on inline bytes of files created here; absent: unknown. 0: hints determine their
  // placement, so they are created and bound at once.
  std::optional<uint64_t> inline_bytes_max;
  uint64_t hints_generation = 0;         // NameCache's when that was learned.
  std::map<std::string, FileId> unsent;  // Created here and not yet known to the manager.
  KeptNames kept;                        // By the kernel; see KernelNames.
};

// Copies all but the inline bytes. (After clear(), their memory would still be in use.)
inline std::shared_ptr<DataAccess> WithoutInlineBytes(const DataAccess& access) {
  auto without = std::make_shared<DataAccess>(access);
  std::string().swap(without->inline_data);
  return without;
}

enum class MakeState : uint8_t { kSent = 1, kUnsent, kSending, kRefused };

// A mount's own changes of a file that the manager does not know yet.
struct Unsaved {
  bool needs_commit = false;  // Created or written since the last commit.
  bool data_dirty = false;
  bool change_failed = false;  // An operation that failed may have changed bytes on nodes.
  uint64_t dirty_end = 0;      // End of the furthest write.
  // Time of the last write. Absent with data_dirty: a look found different bytes, which may be
  // older than the file's time.
  std::optional<Time> modify_time;
  // The oldest layout generation by which any of the data was, or should be, stored on nodes; 0:
  // none.
  uint64_t stored_by = 0;
};

// Returns the older of two generations; 0 means none.
inline uint64_t OlderGeneration(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return a + b;
  return a < b ? a : b;
}

// A recall that the manager waits for, and the session that sent it.
struct UnconfirmedRecall {
  RecallId recall;
  uint64_t session = 0;
};

// An appending system call in progress. This mount holds the appenders' lock until all of the call
// has arrived.
struct AppendHold {
  HandleId handle;
  uint64_t next_offset = 0;  // The kernel's offset for the next piece.
  uint64_t end = 0;          // Where that piece goes.
  uint64_t bytes_left = 0;
  uint64_t errors_before = 0;  // The inode's error count at the start.
  uint64_t session = 0;        // In which the lock was granted.
  uint64_t data_version = 0;   // At the start.
  Time until;                  // Other appenders wait no longer than this.
  uint64_t era = 0;            // In which the lock was granted.
};

// The right to store appended bytes at the end that the file had when the lock was granted.
struct AppendRight {
  uint64_t era = 0;
  uint64_t data_version = 0;  // The data_version of the file with that end.
};

struct Inode {
  explicit Inode(FileId id) : file(id) {}

  const FileId file;

  // Held across calls to manager and nodes while bytes, size or layout change. Recall threads never
  // take it. Lock order: io, look, mutex. Never hold two inodes' locks at once; only DeferCreate
  // does, with a child that nobody else knows yet.
  Mutex io;
  std::optional<AppendHold> append_hold ABSL_GUARDED_BY(io);
  // Nodes are truncating or zeroing the file; some may have finished.
  bool partly_changed ABSL_GUARDED_BY(io) = false;

  // Held from a question to the node about stores through mappings until its answer is recorded
  // here. The next look does not report the same stores again.
  Mutex look;

  // Held while the appenders' lock is taken again in a new session. Taken before mutex.
  Mutex renewing;

  // Held briefly, never across a call.
  Mutex mutex;
  // Signals make_state, buffer, removals, unsettled and owners_closing.
  CondVar changed;

  // ---- guarded by mutex
  Unsaved unsaved ABSL_GUARDED_BY(mutex);
  uint64_t kernel_lookups ABSL_GUARDED_BY(mutex) = 0;
  SizeInKernel size_in_kernel ABSL_GUARDED_BY(mutex);

  MakeState make_state ABSL_GUARDED_BY(mutex) = MakeState::kSent;
  MakeRequest make ABSL_GUARDED_BY(mutex);  // While unsent.
  std::optional<SetAttributesRequest> unsent_times
      ABSL_GUARDED_BY(mutex);                   // utimensat of an unsent file.
  Failure make_failure ABSL_GUARDED_BY(mutex);  // Set if refused.

  Attributes attributes ABSL_GUARDED_BY(mutex);        // As last received from the manager.
  uint64_t attributes_era ABSL_GUARDED_BY(mutex) = 0;  // The era in which they are valid; 0: none.
  bool attributes_known ABSL_GUARDED_BY(mutex) = false;

  uint32_t handles ABSL_GUARDED_BY(mutex) = 0;  // Includes handles being opened.
  // Requests in progress that may remove its last name and claim that it is not open.
  uint32_t removals ABSL_GUARDED_BY(mutex) = 0;
  uint32_t write_handles ABSL_GUARDED_BY(mutex) = 0;
  // Writers not closed since their last write.
  uint32_t unclosed_writers ABSL_GUARDED_BY(mutex) = 0;
  // Closes that wait for copies, counted from before their commits.
  uint32_t closes_waiting ABSL_GUARDED_BY(mutex) = 0;
  uint32_t cached_handles ABSL_GUARDED_BY(mutex) = 0;
  // Handles that programs can map, and whose mappings use the kernel's pages. While there are any,
  // the kernel refuses a backing file.
  uint32_t unbacked_handles ABSL_GUARDED_BY(mutex) = 0;
  // Handles for which the kernel has a backing file, or, if they only write, had one at their open.
  // While there are any, others must name it, too.
  uint32_t backed_handles ABSL_GUARDED_BY(mutex) = 0;
  // Those of them that read, write or may map the object: it must stay where it is.
  uint32_t passthrough_handles ABSL_GUARDED_BY(mutex) = 0;
  // The kernel writes the object by itself.
  uint32_t passthrough_writers ABSL_GUARDED_BY(mutex) = 0;
  // Handles through which programs may have mapped the object for writing, including a handle that
  // is kept for this reason.
  uint32_t mappable_handles ABSL_GUARDED_BY(mutex) = 0;
  // Since the node's last look, the bytes were changed only through mappings: a difference found by
  // the next look is not committed yet.
  bool stores_known ABSL_GUARDED_BY(mutex) = false;
  bool look_was_lost ABSL_GUARDED_BY(mutex) = false;  // A look failed, and its findings are lost.
  uint64_t times_set ABSL_GUARDED_BY(mutex) = 0;      // How often a modification time was set.
  // How many reports of the end of local writes are in progress.
  uint32_t finishing ABSL_GUARDED_BY(mutex) = 0;
  // Counts opens that read through the kernel's pages.
  uint64_t cached_opens ABSL_GUARDED_BY(mutex) = 0;
  // The kernel has written it directly while it was set-user-id or set-group-id.
  bool must_lose_privileges ABSL_GUARDED_BY(mutex) = false;
  // Changes whose new size the kernel must not learn yet: it may still cache the page at the old
  // end, which is zero where the new bytes are.
  uint32_t unsettled ABSL_GUARDED_BY(mutex) = 0;
  // The manager knows of our write open and waits for its end.
  bool manager_counts_open ABSL_GUARDED_BY(mutex) = false;
  // True if bytes may change without this mount asking the manager first. False after the last
  // close, although the kernel's release is still to come, unless the kernel writes directly.
  bool MayWriteUnasked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return write_handles > 0 &&
           (manager_counts_open || passthrough_writers > 0 || mappable_handles > 0);
  }
  // Bytes that this mount has stored and not committed are in the first copies alone. A right to
  // read, which also names other copies, does not serve then. (Behind its last close the mount
  // cannot ask for another right: readers wait for that commit.)
  bool MustReadFirstCopy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return manager_counts_open &&
           (unsaved.stored_by != 0 || committing.stored_by != 0 || HasUntold());
  }
  bool AccessServes(const DataAccess& right, bool write) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return right.may_write || !(write || MustReadFirstCopy());
  }
  // The manager counts writers: call it before whatever may change bytes, so that the right to do
  // so is asked for.
  void AskIfUncounted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (make_state == MakeState::kSent && !manager_counts_open) access_era = 0;
  }
  // Call it when a use of the file has ended: a handle, a failed open, a truncation.
  // Returns what to tell the manager, if it counts this mount as a writer or holder and need not
  // any more.
  std::optional<ReleaseRequest> EndUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (resizing || write_handles > 0) return std::nullopt;
    if (!manager_counts_open && !(told_held && handles == 0)) return std::nullopt;
    manager_counts_open = false;
    return ReleaseRequest{.file = file, .uncommitted = TakeUntold()};
  }
  // The mount asked to be a writer, or was named as one, for programs that may have closed the file
  // since. Returns what to tell the manager; nothing if there are others, whose end does so.
  std::optional<ReleaseRequest> EndUnlessWriter() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    manager_counts_open = resizing || unclosed_writers > 0 || passthrough_writers > 0 ||
                          mappable_handles > 0 || HasUntold();
    if (manager_counts_open) return std::nullopt;
    return ReleaseRequest{.file = file};
  }
  // Bytes were committed, and no close has waited for their copies yet.
  bool awaits_copies ABSL_GUARDED_BY(mutex) = false;
  // The manager was told that we hold the file open although it may lose its name, and no release
  // that says otherwise was sent.
  bool told_held ABSL_GUARDED_BY(mutex) = false;
  // data_version of the pages in the kernel's cache.
  std::optional<uint64_t> pages_version ABSL_GUARDED_BY(mutex);

  // The manager wants to hear when a client closes the file after reading.
  bool counts_readers ABSL_GUARDED_BY(mutex) = false;

  std::shared_ptr<const DataAccess> access ABSL_GUARDED_BY(mutex);
  uint64_t access_era ABSL_GUARDED_BY(mutex) = 0;
  uint64_t access_recalls ABSL_GUARDED_BY(mutex) = 0;  // How often the layout was recalled.
  uint64_t access_version ABSL_GUARDED_BY(mutex) = 0;  // data_version of the inline content.
  // Counts this mount's changes that the manager has applied.
  uint64_t own_changes ABSL_GUARDED_BY(mutex) = 0;

  // Being committed; later changes go into the next commit.
  Unsaved committing ABSL_GUARDED_BY(mutex);
  // The commit of a last close is under way. A session that begins meanwhile names this mount as a
  // writer still: a node that has lost its bytes must end the commit. If the commit had run before,
  // the mount must be released once more.
  bool closes ABSL_GUARDED_BY(mutex) = false;
  bool named_while_closing ABSL_GUARDED_BY(mutex) = false;
  // The manager has yet to hear of bytes that this mount may have changed.
  bool HasUntold() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return unsaved.data_dirty || unsaved.change_failed || committing.data_dirty ||
           committing.change_failed;
  }
  // A store that failed may have changed bytes of the first copy. Locks mutex.
  void NoteChangeFailed() {
    const MutexLock lock(mutex);
    unsaved.needs_commit = unsaved.change_failed = true;
  }
  // A release is going to tell it.
  bool TakeUntold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const bool untold = HasUntold();
    unsaved.data_dirty = unsaved.change_failed = false;
    unsaved.stored_by = 0;
    if (make_state == MakeState::kSent) unsaved.needs_commit = false;
    return untold;
  }
  // The whole content of an inline file with unsaved writes. This mount wrote `inline_ranges` since
  // the last commit; the rest is as of `inline_version`.
  std::optional<std::string> inline_buffer ABSL_GUARDED_BY(mutex);
  IntervalSet inline_ranges ABSL_GUARDED_BY(mutex);
  // Some of it was appended before others could know the file.
  bool appended ABSL_GUARDED_BY(mutex) = false;
  uint64_t inline_version ABSL_GUARDED_BY(mutex) = 0;
  WriteBuffer buffer ABSL_GUARDED_BY(mutex);  // Write-behind to other nodes.
  IntervalSet pages ABSL_GUARDED_BY(mutex);   // Pages that this mount has written, with room taken.
  std::map<NodeId, uint64_t> allocated ABSL_GUARDED_BY(mutex);  // Bytes of `pages`, per node.
  // `allocated` covers the whole file at this data_version: nobody else has changed it since.
  std::optional<uint64_t> allocated_version ABSL_GUARDED_BY(mutex);
  bool allocated_known() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return allocated_version == attributes.data_version;
  }
  std::optional<AppendRight> append_right ABSL_GUARDED_BY(mutex);  // While a system call appends.
  std::set<NodeId> stored_on ABSL_GUARDED_BY(mutex);  // Nodes that have stored bytes of this mount,
                                                      // since it last cut the file to nothing.
  uint32_t stores ABSL_GUARDED_BY(mutex) = 0;         // Stores in progress; see StoreGate.
  bool fenced ABSL_GUARDED_BY(mutex) = false;  // Room is being made elsewhere: no store may begin.
  // This mount moves inline content into objects; nobody else may store.
  bool moves_inline ABSL_GUARDED_BY(mutex) = false;
  // They wait for the stores in progress.
  std::vector<UnconfirmedRecall> unconfirmed ABSL_GUARDED_BY(mutex);
  // Nodes without room for bytes in `buffer`.
  std::vector<NodeId> full_nodes ABSL_GUARDED_BY(mutex);
  // Passthrough only: the object's modify time as last reported.
  Time kernel_modify_time ABSL_GUARDED_BY(mutex);
  uint64_t kernel_allocated ABSL_GUARDED_BY(mutex) = 0;
  // Generation by which programs got the object that they write or map through the kernel.
  uint64_t kernel_stored_by ABSL_GUARDED_BY(mutex) = 0;
  // The size to which objects are being truncated, before the manager knows it; `cuts` counts the
  // truncations. Readers see this end, so that they do not mistake truncated bytes for a hole.
  std::optional<uint64_t> cutting_to ABSL_GUARDED_BY(mutex);
  // A truncation is under way: this mount is a writer until its end.
  bool resizing ABSL_GUARDED_BY(mutex) = false;
  std::atomic<uint64_t> cuts = 0;
  // Generation of the layout by which the objects were last truncated.
  uint64_t cut_by ABSL_GUARDED_BY(mutex) = 0;
  // The objects are not truncated, because a node is silent: the manager lays the empty file out
  // anew.
  bool lays_out_anew ABSL_GUARDED_BY(mutex) = false;
  uint64_t kernel_room ABSL_GUARDED_BY(mutex) = 0;  // Reserved for passthrough writers.

  // Write errors. Each handle compares its own count to find unreported ones.
  uint64_t error_count ABSL_GUARDED_BY(mutex) = 0;
  Failure error ABSL_GUARDED_BY(mutex);

  std::map<NodeId, std::shared_ptr<LocalObject>> objects ABSL_GUARDED_BY(mutex);
  // Through a descriptor, since the last FinishLocalWrites.
  bool wrote_locally ABSL_GUARDED_BY(mutex) = false;
  // Not yet reported to nodes that copy the file eagerly.
  ByteRange unannounced ABSL_GUARDED_BY(mutex);

  Names names ABSL_GUARDED_BY(mutex);  // Directories only.
  // Grants since the file was last without a lock.
  uint32_t posix_locks ABSL_GUARDED_BY(mutex) = 0;
  std::map<uint64_t, std::vector<Lock>> locks ABSL_GUARDED_BY(mutex);  // Held locks, by owner.
  // Owners with a closed descriptor, and when it was closed. The kernel reports some time after
  // close(2) that it was the last one.
  std::map<uint64_t, Time> owners_closing ABSL_GUARDED_BY(mutex);
};

using InodePtr = std::shared_ptr<Inode>;

struct OpenFile {
  HandleId id;
  std::shared_ptr<Inode> inode;
  uint32_t flags = 0;
  bool write = false;
  bool append = false;
  std::string task;
  std::optional<std::string> reader;  // The reading task, for a file that counts its readers.
  ObjectView view;                    // Thread-safe.
  // Guarded by the inode's mutex.
  OpenMode mode;
  // How it is counted in the inode's numbers of handles.
  bool uses_pages = false;  // Reads the kernel's pages: in cached_handles.
  bool backed = false;
  bool unbacked = false;
  // The object that the kernel reads or writes by itself, or that programs may map for writing.
  std::shared_ptr<LocalObject> object;
  uint64_t errors_seen = 0;
  std::atomic<bool> wrote = false;  // Through this mount, not by the kernel alone.
  bool closed = false;  // Open for writing: one of its descriptors was closed since its last write.
  bool was_closed = false;  // One of its descriptors was closed, perhaps the last one.
  bool ended = false;       // The kernel has released it.
  ReadAhead read_ahead;
  std::set<uint64_t> lock_owners;  // Owners that requested POSIX locks through this handle.

  // What was written here and could not be stored. TellError returns it once, to the write, fsync
  // or close that tells the program. Locks the inode's mutex, as EnsureCounted does.
  Outcome<Done> UntoldError() const;
  Outcome<Done> TellError();
  // Call it before a write. Fails if the kernel has released the handle.
  Outcome<Done> EnsureCounted();
};

struct Listing {
  HandleId id;
  std::shared_ptr<Inode> inode;
  Mutex mutex;
  // Guarded by mutex.
  std::vector<DirectoryItem> items;
  bool complete = false;
  std::string last_name;
  uint64_t begun_log = 0;  // The mark of its first page.
  uint64_t begun_era = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_INODE_H_
