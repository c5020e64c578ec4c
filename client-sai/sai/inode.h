// What a mount knows of one file or directory, and of its open handles. Plain structs: the
// rules live in Filesystem::Impl.
#ifndef MOSA_CLIENT_SAI_SAI_INODE_H_
#define MOSA_CLIENT_SAI_SAI_INODE_H_

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client-sai/core/read_ahead.h"
#include "client-sai/core/size_in_kernel.h"
#include "client-sai/core/write_buffer.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/object_view.h"
#include "common/model/ranges.h"

namespace mosa::sai {

// An object of a node on this host, by its descriptor.
struct LocalObject {
  NodeId node;
  UniqueFd fd;
  bool writable = false;
  // Only read, to see what programs change that this mount no longer holds the object open for.
  bool watched = false;
};

// A directory's names, as far as they are known under interest.
struct Names {
  uint64_t era = 0;
  std::unordered_map<std::string, FileId> entries;  // FileId{}: known to be absent.
  bool complete = false;                            // Every name that exists is in `entries`.
  bool delegated = false;                           // Creates may be deferred.
  // What files made here may keep inline; absent: not known. 0: their placement is settled by
  // hints, so that they are made and bound at once.
  std::optional<uint64_t> inline_bytes_max;
  uint64_t hints_generation = 0;         // When it was learned.
  std::map<std::string, FileId> unsent;  // Made here, not yet known to the manager.
  // The kernel may keep names that it was told in that epoch of its names; see KernelMayKeep.
  uint64_t kernel_epoch = 0;
  Time shared_until;    // Others change it: until then the kernel asks for each name.
  Duration patience{};  // How long that was last.
};

enum class MakeState : uint8_t { kSent = 1, kUnsent, kSending, kRefused };

// A mount's own changes of a file that the manager does not know.
struct Unsaved {
  bool needs_commit = false;  // Made or written since the last commit.
  bool data_dirty = false;
  uint64_t dirty_end = 0;  // Where the furthest of its writes ends.
  // When its last write was. None although data_dirty: that the bytes differ was found by looking,
  // and they may be older than the file's time.
  std::optional<Time> modify_time;
  // The oldest layout generation by which any of it was stored on nodes, or was to be; 0: nothing
  // was.
  uint64_t stored_by = 0;
};

// The older of two generations, where 0 is none.
inline uint64_t OlderGeneration(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return a + b;
  return a < b ? a : b;
}

// A recall that the manager waits for, and the session in which it came.
struct UnconfirmedRecall {
  RecallId recall;
  uint64_t session = 0;
};

// One system call appends: this mount holds the appenders' lock until all of it has come.
struct AppendHold {
  HandleId handle;
  uint64_t next_offset = 0;  // By which the kernel sends what follows.
  uint64_t end = 0;          // Where it goes.
  uint64_t bytes_left = 0;
  uint64_t errors_before = 0;  // The inode's error count then.
  uint64_t session = 0;        // In which the lock was given.
  uint64_t data_version = 0;   // Then.
  Time until;                  // Nobody waits for the rest any longer.
  uint64_t era = 0;            // In which the lock was given.
};

// By which what is appended may be stored where the file ended when the lock was given.
struct AppendRight {
  uint64_t era = 0;
  uint64_t data_version = 0;  // At that end.
};

struct Inode : Unsaved {
  explicit Inode(FileId id) : file(id) {}

  const FileId file;

  // Held, across calls to manager and nodes, while bytes, size or layout change. Recall threads
  // never take it. Lock order: io, then look, then mutex; never two inodes' at once.
  std::mutex io;
  // Guarded by io.
  std::optional<AppendHold> append_hold;
  bool partly_changed = false;  // Nodes are cutting or zeroing the file: some may have done so.

  // Held while the node is asked what was stored through mappings, until its answer is noted here:
  // what one look has found the next does not find again.
  std::mutex look;

  // Held while the lock for appending is taken again in a new session. Taken before mutex.
  std::mutex renewing;

  // Held briefly, never across a call.
  std::mutex mutex;
  std::condition_variable changed;  // make_state, buffer, removals, unsettled, owners_closing.

  // ---- guarded by mutex
  uint64_t kernel_lookups = 0;
  SizeInKernel size_in_kernel;

  MakeState make_state = MakeState::kSent;
  MakeRequest make;                                  // While unsent.
  std::optional<SetAttributesRequest> unsent_times;  // utimensat of an unsent file.
  Failure make_failure;                              // When refused.

  Attributes attributes;        // As last heard of the manager.
  uint64_t attributes_era = 0;  // The era in which they may be answered from here; 0: never.
  bool attributes_known = false;

  uint32_t handles = 0;   // Includes those being opened.
  uint32_t removals = 0;  // Requests that may take its last name, and say that it is not open.
  uint32_t write_handles = 0;
  uint32_t unclosed_writers = 0;  // Those that were not closed since they last wrote.
  uint32_t closes_waiting = 0;    // For copies, from before their commits.
  uint32_t cached_handles = 0;
  uint32_t passthrough_handles = 0;
  uint32_t passthrough_writers = 0;
  // Those by which programs may have mapped the object to store into it; with a handle
  // that is kept because of that.
  uint32_t mappable_handles = 0;
  // Since the node has last looked at the bytes, nothing was written but through mappings: what
  // differs at the next look is not committed yet.
  bool stores_known = false;
  bool look_was_lost = false;  // With what it had found.
  uint64_t times_set = 0;      // How often a time of change was set.
  uint32_t finishing = 0;      // How often the node is being told of the end of local writes.
  uint64_t cached_opens = 0;   // Counts opens that read by the kernel's pages.
  // The kernel has written it by itself while it was set-user-id or set-group-id.
  bool must_lose_privileges = false;
  // Changes whose new size the kernel must not learn yet: it may still cache the page at the old
  // end, which is zero where the new bytes are.
  uint32_t unsettled = 0;
  bool manager_counts_open = false;  // It knows of a write open of ours and waits for its end.
  // Whether bytes may change without this mount asking the manager first. After the last close they
  // may not, although the kernel's release is yet to come, unless the kernel writes by itself.
  bool MayWriteUnasked() const {
    return write_handles > 0 && (manager_counts_open || passthrough_writers > 0);
  }
  bool awaits_copies = false;  // Bytes were committed for whose copies no close has waited yet.
  bool told_held = false;  // It was told that we hold the file open though it may lose its name.
  std::optional<uint64_t> pages_version;  // data_version of the pages in the kernel's cache.

  bool counts_readers = false;  // The manager wants to hear which client closed a read of it.

  std::shared_ptr<const DataAccess> access;
  uint64_t access_era = 0;
  uint64_t access_recalls = 0;  // How often the layout was recalled.
  uint64_t access_version = 0;  // The data_version of its inline content.
  uint64_t own_changes = 0;     // Counts what of this mount's has become the manager's truth.

  Unsaved committing;  // Being told to the manager; changes made meanwhile go into the next commit.
  // The whole content, while it is inline and written: `inline_ranges` of it by this mount since
  // the last commit, the rest as it was at `inline_version`.
  std::optional<std::string> inline_buffer;
  IntervalSet inline_ranges;
  bool appended = false;  // Some of them, before others could know the file.
  uint64_t inline_version = 0;
  WriteBuffer buffer;  // Write-behind to other nodes.
  IntervalSet pages;   // Pages that this mount has written: room for them was taken.
  std::map<NodeId, uint64_t> allocated;     // Bytes of `pages`, per node.
  bool allocated_known = false;             // `allocated` is all that the file has.
  std::optional<AppendRight> append_right;  // While a system call appends.
  std::set<NodeId> stored_on;               // Nodes that have taken bytes of this mount's.
  uint32_t stores = 0;        // How many writes to nodes are under way; see BeginStore.
  bool fenced = false;        // Room is made elsewhere: none may begin.
  bool moves_inline = false;  // Puts inline content into objects; nobody else may store.
  std::vector<UnconfirmedRecall> unconfirmed;  // They wait for the ones under way.
  std::vector<NodeId> full_nodes;              // Refused bytes in `buffer` for want of room.
  Time kernel_modify_time;  // The object's modify time, as far as it is reported; passthrough only.
  uint64_t kernel_allocated = 0;
  uint64_t kernel_stored_by = 0;  // The generation by which passthrough writers got the object.
  // Objects are being cut to this size, which the manager does not know yet; and how often that has
  // begun. Readers find the end there meanwhile, and do not take what is gone for a hole.
  std::optional<uint64_t> cutting_to;
  std::atomic<uint64_t> cuts = 0;
  uint64_t cut_by = 0;       // The generation by whose layout the objects were last cut.
  uint64_t kernel_room = 0;  // Set aside for what passthrough writers will write.

  // Errors of writes that nobody has been told of: every handle compares its own count.
  uint64_t error_count = 0;
  Failure error;

  std::map<NodeId, std::shared_ptr<LocalObject>> objects;
  bool wrote_locally = false;  // Through a descriptor since the last FinishLocalWrites.
  ByteRange unannounced;       // The part that nodes following the file have not heard of.

  Names names;                                  // Directories only.
  uint32_t posix_locks = 0;                     // Times a lock was granted since none was held.
  std::map<uint64_t, std::vector<Lock>> locks;  // Held, by owner.
  // Owners whose descriptor was closed, and when: the kernel says only some time after close(2) has
  // returned that it was the last one.
  std::map<uint64_t, Time> owners_closing;
};

struct OpenFile {
  HandleId id;
  std::shared_ptr<Inode> inode;
  uint32_t flags = 0;
  bool write = false;
  bool append = false;
  std::string task;
  std::optional<std::string> reader;  // The task that reads a file which counts its readers.
  ObjectView view;                    // Self-locking.
  // Guarded by the inode's mutex.
  OpenMode mode;
  bool uses_pages = false;              // The kernel's pages; counted in cached_handles.
  std::shared_ptr<LocalObject> object;  // Behind a passthrough descriptor.
  uint64_t errors_seen = 0;
  bool closed = false;  // Open for writing: a descriptor of it was closed since its last write.
  bool ended = false;   // The kernel has released it.
  ReadAhead read_ahead;
  std::set<uint64_t> lock_owners;  // Owners that asked for POSIX locks through this handle.
};

struct Listing {
  HandleId id;
  std::shared_ptr<Inode> inode;
  std::mutex mutex;
  // Guarded by mutex.
  std::vector<DirectoryItem> items;
  bool complete = false;
  std::string last_name;
  uint64_t begun_log = 0;  // The mark of its first page.
  uint64_t begun_era = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_INODE_H_
