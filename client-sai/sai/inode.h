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

#include "client-sai/core/read_ahead.h"
#include "client-sai/core/shared_names.h"
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
  SharedNames shared;                    // If several sessions make names here.
  uint64_t told_in = 0;                  // See KernelNames: the kernel was told one in this epoch.
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

// A make that the manager does not know yet, or has refused.
struct Making {
  MakeState state = MakeState::kSent;
  MakeRequest request;                               // While unsent.
  std::optional<SetAttributesRequest> unsent_times;  // utimensat of an unsent file.
  Failure failure;                                   // Set if refused.
};

// What the manager said of a file, and what this mount has changed since.
struct KnownAttributes {
  Attributes attributes;  // As last received.
  uint64_t era = 0;       // The era in which they are valid; 0: none.
  Time shown_until;       // Monotonic; those of a shared directory may be shown until then.
  bool received = false;
  // Counts this mount's changes that the manager has applied.
  uint64_t own_changes = 0;
  // Changes whose new size the kernel must not learn yet: it may still cache the page at the old
  // end, which is zero where the new bytes are.
  uint32_t unsettled = 0;

  // They are to be asked for again.
  void Invalidate() {
    era = 0;
    shown_until = {};
  }
};

// Who uses a file on this mount, and what the manager knows of that.
struct Uses {
  uint32_t handles = 0;   // Includes handles being opened.
  uint32_t removals = 0;  // Requests that may remove its last name and claim that it is not open.
  uint32_t write_handles = 0;
  uint32_t unclosed_writers = 0;  // Writers not closed since their last write.
  uint32_t closes_waiting = 0;    // For copies, counted from before their commits.
  // The manager knows of our write open and waits for its end.
  bool manager_counts_open = false;
  // Bytes were committed, and no close has waited for their copies yet.
  bool awaits_copies = false;
  // The manager was told that we hold the file open although it may lose its name, and no release
  // that says otherwise was sent.
  bool told_held = false;
  // The manager wants to hear when a client closes the file after reading.
  bool counts_readers = false;
  // The commit of a last close is under way. A session that begins meanwhile names this mount as a
  // writer still: a node that has lost its bytes must end the commit. If the commit had run before,
  // the mount must be released once more.
  bool closes = false;
  bool named_while_closing = false;
  // The task that last opened it for writing as a stream; empty: none that is known.
  std::string streaming_task;
};

// How the kernel uses a file: its names, its pages, and the object as a backing file.
struct KernelUse {
  uint64_t lookups = 0;
  SizeInKernel size;
  uint32_t cached_handles = 0;   // They may read pages.
  uint32_t filling_handles = 0;  // They only write, and what they write stays in pages.
  // Handles that programs can map, and whose mappings use the kernel's pages, and those that fill
  // pages. While there are any, the kernel refuses a backing file.
  uint32_t unbacked_handles = 0;
  // Handles for which the kernel has a backing file, or, if they only write, had one at their open.
  // While there are any, others must name it, too.
  uint32_t backed_handles = 0;
  // Those of them that read, write or may map the object: it must stay where it is.
  uint32_t passthrough_handles = 0;
  uint32_t passthrough_writers = 0;  // The kernel writes the object by itself.
  // Handles through which programs may have mapped the object for writing, including a handle that
  // is kept for this reason.
  uint32_t mappable_handles = 0;
  uint64_t cached_opens = 0;              // Counts opens by the kernel's pages.
  std::optional<uint64_t> pages_version;  // data_version of the pages in its cache.
  // The kernel has written it directly while it was set-user-id or set-group-id.
  bool must_lose_privileges = false;
  // Passthrough only: the object's modify time and size as last reported.
  Time modify_time;
  uint64_t allocated = 0;
  // Generation by which programs got the object that they write or map through the kernel.
  uint64_t stored_by = 0;
  uint64_t room = 0;  // Reserved for passthrough writers.
};

// Objects of this host, stores into them past the mount, and the node's looks for these.
struct LocalStores {
  std::map<NodeId, std::shared_ptr<LocalObject>> objects;
  // Since the node's last look, the bytes were changed only through mappings: a difference found by
  // the next look is not committed yet.
  bool stores_known = false;
  bool look_was_lost = false;  // A look failed, and its findings are lost.
  uint64_t times_set = 0;      // How often a modification time was set.
  uint32_t finishing = 0;      // Reports of the end of local writes in progress.
  bool wrote = false;          // Through a descriptor, since the last FinishLocalWrites.
  ByteRange unannounced;       // Not yet reported to nodes that copy the file eagerly.
};

// The right to a file's bytes.
struct AccessRight {
  std::shared_ptr<const DataAccess> access;
  uint64_t era = 0;      // In which it is valid; 0: none.
  uint64_t recalls = 0;  // How often the layout was recalled.
  uint64_t version = 0;  // data_version of the inline content.
};

// The whole content of an inline file with unsaved writes. This mount wrote `ranges` since the last
// commit; the rest is as of `version`.
struct InlineContent {
  std::optional<std::string> buffer;
  IntervalSet ranges;
  bool appended = false;  // Some of it was appended before others could know the file.
  uint64_t version = 0;
  // This mount moves inline content into objects; nobody else may store.
  bool moves = false;
};

// Room that this mount has taken on nodes.
struct TakenRoom {
  IntervalSet pages;                     // That this mount has written, with room taken.
  std::map<NodeId, uint64_t> allocated;  // Bytes of `pages`, per node.
  // `allocated` covers the whole file at this data_version: nobody else has changed it since.
  std::optional<uint64_t> version;
};

// Stores in progress and recalls that wait for them; see StoreGate.
struct StoresInProgress {
  uint32_t stores = 0;
  bool fenced = false;  // Room is being made elsewhere: no store may begin.
  std::vector<UnconfirmedRecall> unconfirmed;
  // Nodes that have stored bytes of this mount, since it last cut the file to nothing.
  std::set<NodeId> stored_on;
};

// Bytes that are yet to be sent to other nodes, and what came of those that were.
struct BehindWrites {
  WriteBuffer buffer;
  std::vector<NodeId> full_nodes;  // Without room for bytes in `buffer`.
  // Write errors. Each handle compares its own count to find unreported ones.
  uint64_t error_count = 0;
  Failure error;
};

// Truncations of objects.
struct Cutting {
  // The size to which objects are being truncated, before the manager knows it. Readers see this
  // end, so that they do not mistake truncated bytes for a hole.
  std::optional<uint64_t> to;
  bool resizing = false;  // A truncation is under way: this mount is a writer until its end.
  uint64_t by = 0;        // Generation of the layout by which the objects were last truncated.
  // The objects are not truncated, because a node is silent: the manager lays the empty file out
  // anew.
  bool lays_out_anew = false;
};

struct HeldByOwners {
  uint32_t posix_locks = 0;                    // Grants since the file was last without a lock.
  std::map<uint64_t, std::vector<Lock>> held;  // By owner.
  // Owners with a closed descriptor, and when it was closed. The kernel reports some time after
  // close(2) that it was the last one.
  std::map<uint64_t, Time> owners_closing;
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
  // Signals making.state, behind.buffer, uses.removals, known.unsettled and locking.owners_closing.
  CondVar changed;

  // ---- guarded by mutex
  Unsaved unsaved ABSL_GUARDED_BY(mutex);
  Unsaved committing ABSL_GUARDED_BY(mutex);  // Later changes go into the next commit.
  Making making ABSL_GUARDED_BY(mutex);
  KnownAttributes known ABSL_GUARDED_BY(mutex);
  Uses uses ABSL_GUARDED_BY(mutex);
  KernelUse kernel ABSL_GUARDED_BY(mutex);
  LocalStores local ABSL_GUARDED_BY(mutex);
  AccessRight right ABSL_GUARDED_BY(mutex);
  InlineContent content ABSL_GUARDED_BY(mutex);
  TakenRoom room ABSL_GUARDED_BY(mutex);
  StoresInProgress gate ABSL_GUARDED_BY(mutex);
  BehindWrites behind ABSL_GUARDED_BY(mutex);
  Cutting cut ABSL_GUARDED_BY(mutex);
  std::optional<AppendRight> append_right ABSL_GUARDED_BY(mutex);  // While a system call appends.
  Names names ABSL_GUARDED_BY(mutex);                              // Directories only.
  HeldByOwners locking ABSL_GUARDED_BY(mutex);

  std::atomic<uint64_t> cuts = 0;  // Counts truncations.

  // True if bytes may change without this mount asking the manager first. False after the last
  // close, although the kernel's release is still to come, unless the kernel writes directly.
  bool MayWriteUnasked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return uses.write_handles > 0 && (uses.manager_counts_open || kernel.passthrough_writers > 0 ||
                                      kernel.mappable_handles > 0);
  }
  // False after the last close, although the kernel's release is still to come.
  bool IsOpenToWrite() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return uses.unclosed_writers > 0 || kernel.mappable_handles > 0;
  }
  // Bytes that this mount has stored and not committed are in the first copies alone. A right to
  // read, which also names other copies, does not serve then. (Behind its last close the mount
  // cannot ask for another right: readers wait for that commit.)
  bool MustReadFirstCopy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return uses.manager_counts_open &&
           (unsaved.stored_by != 0 || committing.stored_by != 0 || HasUntold());
  }
  bool AccessServes(const DataAccess& access, bool write) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return access.may_write || !(write || MustReadFirstCopy());
  }
  // The manager counts writers: call it before whatever may change bytes, so that the right to do
  // so is asked for.
  void AskIfUncounted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (making.state == MakeState::kSent && !uses.manager_counts_open) right.era = 0;
  }
  // Call it when a use of the file has ended: a handle, or a failed open.
  // Returns what to tell the manager, if it counts this mount as a writer or holder and need not
  // any more.
  std::optional<ReleaseRequest> EndUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (cut.resizing || uses.write_handles > 0) return std::nullopt;
    if (!uses.manager_counts_open && !(uses.told_held && uses.handles == 0)) return std::nullopt;
    uses.manager_counts_open = false;
    return ReleaseRequest{.file = file, .uncommitted = TakeUntold()};
  }
  // The same for a truncation. Handles that the kernel has yet to release after a last close do not
  // make this mount a writer.
  std::optional<ReleaseRequest> EndTruncation() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (uses.write_handles == 0) return EndUse();
    if (IsOpenToWrite() || HasUntold() || !uses.manager_counts_open) return std::nullopt;
    uses.manager_counts_open = false;
    return ReleaseRequest{.file = file};
  }
  // The mount asked to be a writer, or was named as one, for programs that may have closed the file
  // since. Returns what to tell the manager; nothing if there are others, whose end does so.
  std::optional<ReleaseRequest> EndUnlessWriter() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    uses.manager_counts_open = cut.resizing || uses.unclosed_writers > 0 ||
                               kernel.passthrough_writers > 0 || kernel.mappable_handles > 0 ||
                               HasUntold();
    if (uses.manager_counts_open) return std::nullopt;
    return ReleaseRequest{.file = file};
  }
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
  // A release is going to tell it. Nobody is left who could commit the changes, so neither their
  // end nor their time may be shown any more.
  bool TakeUntold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const bool untold = HasUntold();
    if (making.state == MakeState::kSent) {
      if (untold) known.Invalidate();
      unsaved = {};
    } else {
      unsaved.data_dirty = unsaved.change_failed = false;
      unsaved.stored_by = 0;
    }
    return untold;
  }
  bool allocated_known() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return room.version == known.attributes.data_version;
  }
};

using InodePtr = std::shared_ptr<Inode>;

struct OpenFile {
  HandleId id;
  std::shared_ptr<Inode> inode;
  uint32_t flags = 0;
  bool write = false;
  bool append = false;
  bool begins_empty = false;  // This open has made the file, or cut it to nothing.
  bool stream = false;        // It takes part in a stream: OpensAsStream().
  std::string task;
  std::optional<std::string> reader;  // The reading task, for a file that counts its readers.
  ObjectView view;                    // Thread-safe.
  // Guarded by the inode's mutex.
  OpenMode mode;
  // How it is counted in the inode's numbers of handles.
  bool uses_pages = false;   // Reads the kernel's pages: in cached_handles.
  bool fills_pages = false;  // Only writes, by the kernel's pages: in filling_handles.
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
  std::vector<DirectoryItem> items;  // Ascending by `next_offset`.
  bool begun = false;
  bool complete = false;
  // When the listing begins anew, names that it had keep their offsets, and new ones come behind
  // all that there were: programs remember positions (telldir).
  std::unordered_map<std::string, uint64_t> next_offsets;
  uint64_t offsets_end = 0;
  bool shared = false;  // A page of it was: not all names may be kept.
  std::string last_name;
  uint64_t begun_log = 0;  // The mark of its first page.
  uint64_t begun_era = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_INODE_H_
