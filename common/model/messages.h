// Requests of a client and the manager's replies: one struct per operation, shared by the wire
// (proto/convert), the manager's core, the SAI and the predictor. Plain values. The comments state
// facts, whichever part enforces them.
//
// Idempotence: every request has a RequestId. A request that changes something is answered from the
// recorded reply when it is repeated. Clients choose the ids of new files from a range granted to
// them (FileIdRange), so a create can be sent late and repeated.
//
// Leases: the manager remembers which session may have cached what ("interest"). Lookup,
// GetAttributes, ListDirectory, Open and the requests that create files register interest in the
// directory (its entries, present or absent) and in the file (its attributes, layout, bytes). A
// change by one session is answered only after the other interested sessions have been recalled.
#ifndef MOSA_COMMON_MODEL_MESSAGES_H_
#define MOSA_COMMON_MODEL_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/attributes.h"
#include "common/model/hint_values.h"
#include "common/model/ids.h"
#include "common/model/layout.h"

namespace mosa {

// Refines a StatusCode where errno needs it. Each name corresponds to the errno that a program
// sees.
enum class ErrorReason : uint8_t {
  kNone = 0,
  kNoEntry,         // ENOENT
  kExists,          // EEXIST
  kNotDirectory,    // ENOTDIR
  kIsDirectory,     // EISDIR
  kNotEmpty,        // ENOTEMPTY
  kNameTooLong,     // ENAMETOOLONG
  kTooManyLinks,    // EMLINK
  kNotPermitted,    // EPERM
  kAccessDenied,    // EACCES
  kInvalid,         // EINVAL
  kNoSpace,         // ENOSPC
  kTooBig,          // EFBIG
  kRange,           // ERANGE
  kArgumentTooBig,  // E2BIG
  kNoAttribute,     // ENODATA
  kWouldBlock,      // EAGAIN: a lock is held by another
  kInterrupted,     // EINTR: a waiting lock was cancelled
  kDeadlock,        // EDEADLK
  kNoLocks,         // ENOLCK
  kStale,           // ESTALE: the file, open or session is gone
  kBusy,            // EBUSY
  kUnsupported,     // EOPNOTSUPP
  kNodeLost,        // EIO: all nodes with a copy of the bytes are gone
  kCorrupt,         // EIO: a checksum did not match
  kTimedOut,        // ETIMEDOUT
  kQuota,           // EDQUOT: the user has reached a per-user limit
};
inline constexpr ErrorReason kErrorReasonLast = ErrorReason::kQuota;

// Why a request was refused. `message` names the problem, its object, the numbers, and a remedy.
struct Failure {
  StatusCode code = StatusCode::kInternal;
  ErrorReason reason = ErrorReason::kNone;
  std::string message;
  bool operator==(const Failure&) const = default;
};

struct Entry {
  FileId file;
  Attributes attributes;
  bool operator==(const Entry&) const = default;
};

// Where a file's bytes are, and the right to access them. Part of every reply that opens or binds a
// file.
struct DataAccess {
  Layout layout;
  bool may_write = false;
  Time expires;  // When the capability expires.
  // Opaque to clients; sealed by the manager's shell, checked by storage nodes.
  std::string capability;
  // The bytes are `inline_data` (filled in by the manager's shell from its store) and not in
  // objects, even if the layout is bound; a writer then first moves them into the objects. The
  // stored data may be longer or shorter than the file: only the first `inline_valid_bytes` count,
  // and the rest of the file is zero.
  bool is_inline = false;
  std::string inline_data;
  uint64_t inline_valid_bytes = 0;
  uint64_t inline_bytes_max = 0;  // Limit on this file's inline bytes; 0: bind at the first byte.
  // Nodes have lost some of the bytes: reads fail with EIO until the file is truncated to zero.
  bool lost = false;
  bool frozen = false;  // Another session has frozen the layout: do not store by it now.
  // Nodes copy the file while it is being written. The kernel must not write the object directly,
  // and its node is told from time to time what was written through a descriptor.
  bool copied_eagerly = false;
  // A close that has committed data waits for this many valid copies (AwaitCopies). With
  // `replicas=auto` this is the maximum, and the reply to AwaitCopies gives the actual number.
  uint32_t close_copies = 1;
  // Counts the changes of the file's placement (bind, promote, relocate, unbind, fence); 0 before
  // the first. A client that stores by this layout names it in its commit.
  uint64_t generation = 0;
  // Data that this client wanted to store by an older generation is no longer part of the file. It
  // must not be stored by this layout either, because others may have written there since.
  uint64_t kept_since = 0;
  // The layout's nodes without a committed byte of the file, ascending. A missing object on these
  // reads as zeroes; on any other node it means that bytes are lost.
  std::vector<NodeId> empty_nodes{};
  bool operator==(const DataAccess&) const = default;
};

// ---- names

struct LookupRequest {
  FileId parent;
  std::string name;  // May be "." or ".." (".." of the root is the root).
  // If the directory is shared and has no such name: reserve it, because this user may be about to
  // make it. See "Shared directories" in session.h.
  std::optional<uint32_t> reserve_for{};
  bool operator==(const LookupRequest&) const = default;
};

struct GetAttributesRequest {
  FileId file;
  bool operator==(const GetAttributesRequest&) const = default;
};

// One page of a directory, in byte order of names, without "." and "..".
struct ListDirectoryRequest {
  FileId directory;
  std::string after_name;  // Empty: start at the first name.
  uint32_t entries_max = 1024;
  bool operator==(const ListDirectoryRequest&) const = default;
};
struct ListDirectoryReply {
  struct Item {
    std::string name;
    Entry entry;
    bool operator==(const Item&) const = default;
  };
  std::vector<Item> items;
  bool more = false;
  FileId parent;        // The target of "..".
  bool shared = false;  // The directory is shared (session.h).
  bool operator==(const ListDirectoryReply&) const = default;
};

inline constexpr size_t kHintsAtMakeMax = 64;

// Creates a file, directory, symlink or special file. The parent's setgid bit determines the group
// and, for a directory, is inherited. A directory created by this request is delegated to the
// session (see Delegation in session.h) and known to be empty.
struct MakeRequest {
  FileId parent;
  std::string name;
  FileId file;  // The new file's id, from the client's range.
  FileType type = FileType::kRegular;
  uint32_t permissions = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t device = 0;
  std::string symlink_target;
  std::string task;  // MOSA_TASK of the creating process.
  // When the program created it, in the manager's time base; never in the manager's future.
  Time now;
  bool open = false;               // The creator holds it open for writing.
  bool bind = false;               // Bind the layout now if hints determine the placement.
  std::vector<HintValue> hints{};  // The file's own, in the order in which they were set.
  bool operator==(const MakeRequest&) const = default;
};
struct MakeReply {
  Entry entry;
  Attributes parent_attributes;
  // Set for a regular file, bound or not. For a directory, only `inline_bytes_max` and
  // `layout.chunk_bytes` are meaningful: the values for files created in it.
  std::optional<DataAccess> access;
  // The session holds the delegation: of the new directory if one was created, else of the parent.
  bool delegated = false;
  bool counts_readers = false;  // As in OpenReply.
  bool operator==(const MakeReply&) const = default;
};

struct LinkRequest {
  FileId file;
  FileId new_parent;
  std::string new_name;
  bool operator==(const LinkRequest&) const = default;
};

// Unlink (directory = false) or rmdir (directory = true).
struct RemoveRequest {
  FileId parent;
  std::string name;
  bool directory = false;
  bool holds_open = false;  // The client has the file open: keep its bytes until Release.
  // The file that the client believes to have this name; FileId{}: any. If another file has the
  // name, the request fails with kStale, so that only a file which the client has seen is removed.
  FileId file{};
  bool operator==(const RemoveRequest&) const = default;
};
struct RemoveReply {
  FileId file;
  uint32_t links_left = 0;
  Attributes parent_attributes;
  bool operator==(const RemoveReply&) const = default;
};

struct RenameRequest {
  FileId old_parent;
  std::string old_name;
  FileId new_parent;
  std::string new_name;
  bool no_replace = false;
  bool exchange = false;
  bool holds_open = false;  // The client has the replaced file open.
  // The files that the client believes to have the old name (FileId{}: any) and the new name
  // (FileId{}: none; absent: any). If one differs, the request fails with kStale.
  FileId moved{};
  std::optional<FileId> replaced{};
  bool operator==(const RenameRequest&) const = default;
};
struct RenameReply {
  FileId moved;
  std::optional<FileId> replaced;  // After an exchange: the file that now has the old name.
  uint32_t replaced_links_left = 0;
  bool shared = false;  // Both names are in one directory, which is shared.
  bool operator==(const RenameReply&) const = default;
};

struct ReadSymlinkRequest {
  FileId file;
  bool operator==(const ReadSymlinkRequest&) const = default;
};
struct ReadSymlinkReply {
  std::string target;
  bool operator==(const ReadSymlinkReply&) const = default;
};

// Sets the fields that are present. change_time becomes the manager's now. The client truncates the
// objects before it sends a new size. An inline file is cut, or extended with zeroes, in place.
struct SetAttributesRequest {
  FileId file;
  std::optional<uint32_t> permissions;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint64_t> size_bytes;
  std::optional<Time> access_time;
  std::optional<Time> modify_time;
  bool access_time_now = false;
  bool modify_time_now = false;
  // With a smaller size: the generation of the layout by which the objects were truncated. kAborted
  // if the generation has changed since: truncate again.
  uint64_t generation = 0;
  // With size 0: not all objects could be truncated, because a node is silent. The file is laid out
  // anew, and all its objects are dropped. kAborted with kBusy: other sessions use the layout;
  // freeze the file and try again. kUnavailable: another session's kernel has the object open.
  bool lay_out_anew = false;
  bool operator==(const SetAttributesRequest&) const = default;
};

// ---- bytes

struct OpenRequest {
  FileId file;
  bool write = false;
  std::string task;
  bool operator==(const OpenRequest&) const = default;
};
struct OpenReply {
  Attributes attributes;
  DataAccess access;
  bool counts_readers = false;  // The manager wants to hear of closed reads (ReleaseRequest).
  bool operator==(const OpenReply&) const = default;
};

// Chooses the nodes of an unbound file. `first_bytes` is the number of bytes known to be coming.
// Binding an inline file moves it into objects: its layout is frozen for the client, which first
// stores the inline bytes and then commits `inline_moved`. The manager then drops its copy and ends
// the freeze. kAborted: another client is moving it; try again shortly.
struct BindRequest {
  FileId file;
  uint64_t first_bytes = 0;
  bool operator==(const BindRequest&) const = default;
};
// Freezes the layout: it does not change, and other sessions store no bytes by it, until this
// session sends a RelocateRequest, ends, or kFreezeMax has passed. The reply is sent when all
// writes in progress elsewhere have ended. kAborted: another session has frozen it; try again
// shortly.
struct FreezeRequest {
  FileId file;
  bool operator==(const FreezeRequest&) const = default;
};
inline constexpr Duration kFreezeMax = Seconds(30);

// Moves bytes [begin, end) of a file that this session has frozen to nodes other than `full`. Ends
// the freeze whatever the reply, except while an inline file is being moved. The client has checked
// that nothing is stored in the range, so no byte moves. An empty range only ends the freeze.
// kAborted: the freeze is over. kResourceExhausted: no node has room, or another mount's kernel has
// the file's object open. A reply that names nodes in `older` has moved nothing and ended nothing:
// objects there may hold older bytes in the range. The client removes them and asks again.
struct RelocateRequest {
  FileId file;
  uint64_t begin = 0;
  uint64_t end = 0;  // UINT64_MAX: to the end of any future file size.
  std::vector<NodeId> full;
  std::vector<NodeId> cleaned{};  // Nodes on which the client has removed older bytes.
  bool operator==(const RelocateRequest&) const = default;
};
struct BindReply {
  DataAccess access;
  std::vector<NodeId> older{};  // Only of a RelocateRequest.
  bool operator==(const BindReply&) const = default;
};

// The state of a file's bytes after a close or fsync: size, times, and where space was used. Other
// sessions' caches are recalled before the reply. `inline_data`, if present, is the whole content.
struct CommitRequest {
  struct NodeBytes {
    NodeId node;
    uint64_t allocated_bytes = 0;  // Space that the file's object occupies there now.
    uint64_t consumed_bytes = 0;   // Part of the client's grant used there since the last report.
    // The client has stored nothing there, so the object may hold copies only.
    bool stored_nothing = false;
    // The node could not be asked: the object occupies at least `allocated_bytes`.
    bool at_least = false;
    bool operator==(const NodeBytes&) const = default;
  };
  FileId file;
  uint64_t size_bytes = 0;
  // False: another writer may have grown the file, and the size is at least this.
  bool size_is_exact = true;
  std::optional<Time> modify_time;
  // A change of data or size without a modify_time is stamped with the manager's now. If this is
  // true, the file keeps its time instead, because the bytes may be older than a time that a user
  // has set.
  bool modify_time_stays = false;
  std::optional<Time> access_time;
  std::optional<std::string> inline_data;
  std::vector<NodeBytes> nodes;
  bool data_changed = true;
  // With data_changed: only operations that failed may have changed bytes. Copies of the previous
  // commit may still replace lost ones.
  bool change_failed = false;
  bool last_close = false;  // The session holds no other open for writing.
  // The data_version that the client knew. If the file has another one, a commit with `inline_data`
  // fails with kAborted, because it would overwrite another writer's bytes; and no object becomes
  // empty by `nodes`, because the other writer may have stored there.
  std::optional<uint64_t> based_on_version;
  // Sent by the client that froze the file: the inline content is now in the objects.
  bool inline_moved = false;
  // For data stored in objects: the oldest layout generation by which any of it was stored. The
  // commit fails with kStale if data of that generation is no longer part of the file, because its
  // bytes went to other nodes while this session was not heard. 0 if the file was never bound.
  uint64_t generation = 0;
  bool operator==(const CommitRequest&) const = default;
};

// The session no longer has the file open, or no longer for writing. Sent only for files without a
// name and for write opens.
struct ReleaseRequest {
  FileId file;
  // If present, the request means only this: the task has closed a file that counts its readers,
  // after opening it for reading.
  std::optional<std::string> reader{};
  // The client may have changed bytes on nodes and could not commit that: copies may differ.
  bool uncommitted = false;
  bool holds_open = false;  // It still has the file open for reading.
  bool operator==(const ReleaseRequest&) const = default;
};

// Asks for room on a node ahead of writing, and reports what was used. A grant belongs to the
// client until it is used or returned.
struct GrantRequest {
  NodeId node;
  uint64_t wanted_bytes = 0;
  uint64_t consumed_bytes = 0;
  uint64_t returned_bytes = 0;
  bool operator==(const GrantRequest&) const = default;
};
struct GrantReply {
  uint64_t granted_bytes = 0;  // Added to the client's grant; 0 when the node is full.
  uint64_t free_bytes = 0;     // Free space on the node after this grant, for any client.
  uint64_t limit_bytes = 0;    // The node's limit. This and free_bytes are 0 while it is not live.
  bool operator==(const GrantReply&) const = default;
};

// ---- attributes, locks, the rest

struct GetXattrRequest {
  FileId file;
  // With the "user." prefix. user.mosa.* and the aliases can be read but are not listed.
  std::string name;
  bool operator==(const GetXattrRequest&) const = default;
};
struct GetXattrReply {
  std::string value;
  bool operator==(const GetXattrReply&) const = default;
};
struct ListXattrsRequest {
  FileId file;
  bool operator==(const ListXattrsRequest&) const = default;
};
struct ListXattrsReply {
  std::vector<std::string> names;
  bool operator==(const ListXattrsReply&) const = default;
};
struct SetXattrRequest {
  FileId file;
  std::string name;
  std::string value;
  bool must_create = false;
  bool must_replace = false;
  // The client's kernel has the file's object open (passthrough), so the file cannot get a new
  // layout.
  bool pinned = false;
  bool operator==(const SetXattrRequest&) const = default;
};
struct RemoveXattrRequest {
  FileId file;
  std::string name;
  bool pinned = false;  // As in SetXattrRequest.
  bool operator==(const RemoveXattrRequest&) const = default;
};

// Waits until `copies` copies of the file hold `data_version` or a later one. With `replicas=auto`
// the number follows from `ack` and from the current number of replicas. Also answered when no more
// copies will come, or after kAwaitCopiesMax. It must be alone in its envelope.
struct AwaitCopiesRequest {
  FileId file;
  uint64_t data_version = 0;
  uint32_t copies = 1;  // Includes the first copy, which is valid from the commit on.
  bool operator==(const AwaitCopiesRequest&) const = default;
};
struct AwaitCopiesReply {
  uint32_t copies_valid = 0;
  uint64_t copied_bytes = 0;   // By all copies in progress: grows while they advance.
  bool more = false;           // More copies are in progress or about to start.
  uint32_t copies_wanted = 0;  // The number waited for: the close completes with this many.
  // If too few: the file is strict, or no node has room for another copy.
  bool no_room = false;
  std::string reason{};           // Why there are no more; empty if there are enough.
  bool open_for_writing = false;  // Copies become complete only when nobody writes any more.
  bool operator==(const AwaitCopiesReply&) const = default;
};
// Maximum delay of the answer. The client asks again, and sees whether copying moves.
inline constexpr Duration kAwaitCopiesMax = Milliseconds(300);

enum class LockType : uint8_t { kShared = 1, kExclusive, kUnlock };

// A byte range held by (client, owner). flock locks cover the whole file and form a separate space.
struct Lock {
  LockType type = LockType::kShared;
  uint64_t begin = 0;
  uint64_t last = UINT64_MAX;  // Inclusive.
  uint64_t owner = 0;
  uint32_t pid = 0;
  bool whole_file = false;  // flock(2).
  bool operator==(const Lock&) const = default;
};
struct GetLockRequest {
  FileId file;
  Lock lock;
  bool operator==(const GetLockRequest&) const = default;
};
struct GetLockReply {
  std::optional<Lock> conflict;
  bool operator==(const GetLockReply&) const = default;
};
// With `wait`, answered when the lock is granted or CancelLock names this request. It must then be
// the last request of an envelope that changes nothing else.
struct SetLockRequest {
  FileId file;
  Lock lock;
  bool wait = false;
  bool operator==(const SetLockRequest&) const = default;
};
struct CancelLockRequest {
  RequestId request;
  bool operator==(const CancelLockRequest&) const = default;
};

struct StatFilesystemRequest {
  bool operator==(const StatFilesystemRequest&) const = default;
};
struct StatFilesystemReply {
  uint64_t limit_bytes = 0;
  uint64_t free_bytes = 0;  // limit - used - granted, summed over live nodes.
  uint64_t files = 0;
  uint64_t files_free = 0;  // How many more files can be created.
  bool operator==(const StatFilesystemReply&) const = default;
};

// A new range of file ids for MakeRequest.
struct FileIdRangeRequest {
  bool operator==(const FileIdRangeRequest&) const = default;
};
struct FileIdRangeReply {
  FileId first;
  uint64_t count = 0;
  bool operator==(const FileIdRangeReply&) const = default;
};

// The client no longer caches anything about these files or directories.
struct ForgetRequest {
  std::vector<FileId> files;
  bool operator==(const ForgetRequest&) const = default;
};

// Answers RecallPush. The client has dropped what it cached and sent what it had deferred (kAccess:
// it no longer stores by the old layout), and reports what it holds open. `pinned`: its kernel
// accesses the file's object directly. `writes`: the client has the file open for writing, even if
// the manager was told of an end (one of several descriptors was closed).
struct RecallDoneRequest {
  RecallId recall;
  bool holds_open = false;
  bool pinned = false;
  bool writes = false;
  bool operator==(const RecallDoneRequest&) const = default;
};

struct AttributesReply {
  Attributes attributes;
  // After a file was cut to nothing by a session that the manager counts as a writer: where its
  // bytes go from now on. Not in a reply that is repeated after a restart of the manager.
  std::optional<DataAccess> access{};
  bool operator==(const AttributesReply&) const = default;
};
struct EntryReply {
  Entry entry;  // FileId{}: a shared directory has no such name.
  // Set if the name is in a shared directory, whose attributes these are.
  std::optional<Attributes> shared_parent{};
  bool reserved = false;  // The name does not exist and is reserved for this session.
  bool operator==(const EntryReply&) const = default;
};
struct EmptyReply {
  bool operator==(const EmptyReply&) const = default;
};

using Request =
    std::variant<LookupRequest, GetAttributesRequest, ListDirectoryRequest, MakeRequest,
                 LinkRequest, RemoveRequest, RenameRequest, ReadSymlinkRequest,
                 SetAttributesRequest, OpenRequest, BindRequest, FreezeRequest, RelocateRequest,
                 CommitRequest, ReleaseRequest, GrantRequest, GetXattrRequest, ListXattrsRequest,
                 SetXattrRequest, RemoveXattrRequest, GetLockRequest, SetLockRequest,
                 CancelLockRequest, StatFilesystemRequest, FileIdRangeRequest, ForgetRequest,
                 RecallDoneRequest, AwaitCopiesRequest>;

// Lookup and Link are answered by an EntryReply; GetAttributes, SetAttributes and Commit by an
// AttributesReply; Bind, Freeze and Relocate by a BindReply. Every other request is answered by the
// reply of its own name, or by an EmptyReply if there is none. Any request may be answered by a
// Failure.
using Reply = std::variant<EmptyReply, Failure, EntryReply, AttributesReply, ListDirectoryReply,
                           MakeReply, RemoveReply, RenameReply, ReadSymlinkReply, OpenReply,
                           BindReply, GrantReply, GetXattrReply, ListXattrsReply, GetLockReply,
                           StatFilesystemReply, FileIdRangeReply, AwaitCopiesReply>;

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_MESSAGES_H_
