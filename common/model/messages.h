// What a client asks of the manager and what it is told: one struct per operation, used alike by
// the wire (proto/convert), the manager's core, the SAI and the predictor. Plain values; the
// comments say what is true, not which part does it.
//
// Idempotence: every request has a RequestId; a request that changes something is answered from the
// recorded reply when it comes again. File ids of new files are chosen by the client out of a range
// granted to it (FileIdRange), so that a create can be sent late, and again.
//
// Leases: the manager remembers which session may have cached what ("interest"). Lookup,
// GetAttributes, ListDirectory, Open and the makers of files register interest in the directory
// (its entries, present or absent) and in the file (its attributes, layout, bytes). A change by
// another session is recalled from the interested ones before it is answered.
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

// Refines a StatusCode where errno needs it. The name of each is the errno that a program sees.
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
  kNodeLost,        // EIO: every copy of the bytes was on nodes that are gone
  kCorrupt,         // EIO: a checksum did not match
  kTimedOut,        // ETIMEDOUT
  kQuota,           // EDQUOT: a user has as much as one user may have
};
inline constexpr ErrorReason kErrorReasonLast = ErrorReason::kQuota;

// Why a request was refused. `message` says what, on what, with the numbers, and what to do.
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

// The bytes, and the right to reach them. Part of every reply that opens or binds a file.
struct DataAccess {
  Layout layout;
  bool may_write = false;
  Time expires;  // When the capability expires.
  std::string
      capability;  // Opaque to clients; sealed by the manager's shell, shown to storage nodes.
  // The bytes are `inline_data` (filled by the manager's shell from its store), not in objects,
  // even if the layout is bound already: a writer then puts them into the objects first. What is
  // stored may be longer or shorter than the file: the first `inline_valid_bytes` of it count, the
  // rest of the file is zero.
  bool is_inline = false;
  std::string inline_data;
  uint64_t inline_valid_bytes = 0;
  uint64_t inline_bytes_max = 0;  // How much this file may keep inline; 0: bind at the first byte.
  bool lost = false;  // Some bytes were on nodes that lost them: reads answer EIO until the file is
                      // cut to nothing.
  bool frozen = false;  // Another session has frozen the layout: nothing is stored by it now.
  // Nodes copy what is written while it is written: no kernel writes the object by itself, and its
  // node is told now and then what was written through a descriptor.
  bool copied_eagerly = false;
  // So many copies are to be valid before a close that committed data returns (AwaitCopies); of
  // `replicas=auto` the most that there may be, and the reply to AwaitCopies says how many.
  uint32_t close_copies = 1;
  // Counts the changes of where the file's bytes go (bind, promote, relocate, unbind, fence); 0
  // before the first. Any client that stores by this layout names it in its commit.
  uint64_t generation = 0;
  // What this client was to store by an older generation is no part of the file any more, and must
  // not be stored by this one: others may have written there since.
  uint64_t kept_since = 0;
  // Nodes of the layout without a committed byte of the file, ascending. An object that is absent
  // there reads as zeroes; on any other node its absence is a loss.
  std::vector<NodeId> empty_nodes{};
  bool operator==(const DataAccess&) const = default;
};

// ---- names
// ------------------------------------------------------------

struct LookupRequest {
  FileId parent;
  std::string name;  // "." and ".." are answered too (".." of the root is the root).
  bool operator==(const LookupRequest&) const = default;
};

struct GetAttributesRequest {
  FileId file;
  bool operator==(const GetAttributesRequest&) const = default;
};

// One page of a directory in the order of names' bytes, without "." and "..".
struct ListDirectoryRequest {
  FileId directory;
  std::string after_name;  // Empty: from the first.
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
  FileId parent;  // What ".." is.
  bool operator==(const ListDirectoryReply&) const = default;
};

inline constexpr size_t kHintsAtMakeMax = 64;

// Makes a file, directory, symlink or special file. The parent's setgid bit decides group and, for
// a directory, the bit. A directory made by this request is delegated to the session (see
// Delegation in session.h), and known to be empty.
struct MakeRequest {
  FileId parent;
  std::string name;
  FileId file;  // The new file's id, out of the client's range.
  FileType type = FileType::kRegular;
  uint32_t permissions = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t device = 0;
  std::string symlink_target;
  std::string task;  // MOSA_TASK of the maker.
  Time now;  // When the program made it, in the manager's time base; not later than the manager's
             // now.
  bool open = false;               // The maker holds it open for writing.
  bool bind = false;               // Bind its layout now if hints settle placement.
  std::vector<HintValue> hints{};  // The file's own, in the order in which they were set.
  bool operator==(const MakeRequest&) const = default;
};
struct MakeReply {
  Entry entry;
  Attributes parent_attributes;
  // Set for a regular file, bound or not. For a directory, only `inline_bytes_max` and
  // `layout.chunk_bytes` mean something: what files made in it will have.
  std::optional<DataAccess> access;
  // The session holds the delegation of the new directory, or, when no directory was made, of the
  // parent.
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
  // The file that the asker believes to have this name; FileId{}: whichever has it. Refused with
  // kStale if another one has it, so that only what the asker has seen is removed.
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
  // What the asker believes to have the old name (FileId{}: whichever has it), and the new one
  // (FileId{}: nobody; absent: whoever has it). Refused with kStale if that is not so.
  FileId moved{};
  std::optional<FileId> replaced{};
  bool operator==(const RenameRequest&) const = default;
};
struct RenameReply {
  FileId moved;
  std::optional<FileId> replaced;  // After an exchange: the file that now has the old name.
  uint32_t replaced_links_left = 0;
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

// Sets what is present. change_time becomes the manager's now. A new size is recorded after the
// client has truncated the objects; a file that is inline is cut or grown with zeroes in place.
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
  // With a smaller size: the generation by whose layout the objects were cut. kAborted if the file
  // has another one by now: cut them again.
  uint64_t generation = 0;
  bool operator==(const SetAttributesRequest&) const = default;
};

// ---- bytes
// ------------------------------------------------------------

struct OpenRequest {
  FileId file;
  bool write = false;
  std::string task;
  bool operator==(const OpenRequest&) const = default;
};
struct OpenReply {
  Attributes attributes;
  DataAccess access;
  bool counts_readers = false;  // Tell the manager who closes a read (ReleaseRequest).
  bool operator==(const OpenReply&) const = default;
};

// Chooses where the bytes of an unbound file go. `first_bytes` is how much is known to come. An
// inline file becomes an object: its layout is frozen for the client, which writes the inline bytes
// first and commits `inline_moved`; the manager then forgets its copy and ends the freeze.
// kAborted: another client is doing so; try again in a moment.
struct BindRequest {
  FileId file;
  uint64_t first_bytes = 0;
  bool operator==(const BindRequest&) const = default;
};
// Keeps the layout as it is, and other sessions from storing bytes by it, until this session sends
// a RelocateRequest, ends, or kFreezeMax has passed. The reply comes when every write that is under
// way elsewhere has ended. kAborted: another session has frozen it; try again in a moment.
struct FreezeRequest {
  FileId file;
  bool operator==(const FreezeRequest&) const = default;
};
inline constexpr Duration kFreezeMax = Seconds(30);

// Puts bytes [begin, end) of a file that this session has frozen on nodes other than `full`, and
// ends the freeze, whatever the answer (but not that of a file whose content is inline still). The
// asker has seen that nothing is stored there: no byte moves. An empty range only ends the freeze.
// kAborted: the file is frozen no longer. kResourceExhausted: no node has room, or another mount's
// kernel has the file's object open.
struct RelocateRequest {
  FileId file;
  uint64_t begin = 0;
  uint64_t end = 0;  // UINT64_MAX: all that may ever come.
  std::vector<NodeId> full;
  bool operator==(const RelocateRequest&) const = default;
};
struct BindReply {
  DataAccess access;
  bool operator==(const BindReply&) const = default;
};

// The state of a file's bytes after a close or fsync: size, times, where space went. Other
// sessions' caches are recalled before the reply. `inline_data`, when present, is the whole
// content.
struct CommitRequest {
  struct NodeBytes {
    NodeId node;
    uint64_t allocated_bytes = 0;  // What the file's object occupies there now.
    uint64_t consumed_bytes = 0;   // Used of the client's grant there since the last report.
    bool operator==(const NodeBytes&) const = default;
  };
  FileId file;
  uint64_t size_bytes = 0;
  bool size_is_exact =
      true;  // False: the size is at least this (another writer may have grown it).
  std::optional<Time> modify_time;
  // Without a modify_time a change of data or size is of now; but if this is true the time that the
  // file has stays: the bytes may have been there when somebody set it.
  bool modify_time_stays = false;
  std::optional<Time> access_time;
  std::optional<std::string> inline_data;
  std::vector<NodeBytes> nodes;
  bool data_changed = true;
  bool last_close = false;  // The session holds no other open for writing.
  // The data_version that `inline_data` rests on: if the file has another one by now, the commit is
  // refused with kAborted, for the bytes of another writer would be lost.
  std::optional<uint64_t> based_on_version;
  // The content that was inline is in the objects now, says the client that froze the file for it.
  bool inline_moved = false;
  // For what is reported as stored in objects: the oldest layout generation by which any of it was
  // stored. Refused with kStale if what was stored by that generation is not part of the file: its
  // bytes went to other nodes while this session was not heard. 0 if the file was never bound.
  uint64_t generation = 0;
  bool operator==(const CommitRequest&) const = default;
};

// The session has the file open no longer. Only for files that have lost their last name, and for
// write opens.
struct ReleaseRequest {
  FileId file;
  // Present: this task has closed what it opened to read the file, which counts its readers. The
  // request says nothing else.
  std::optional<std::string> reader{};
  bool operator==(const ReleaseRequest&) const = default;
};

// Asks for room on a node ahead of writing, and reports what was used. The grant is the client's
// until used or given back.
struct GrantRequest {
  NodeId node;
  uint64_t wanted_bytes = 0;
  uint64_t consumed_bytes = 0;
  uint64_t returned_bytes = 0;
  bool operator==(const GrantRequest&) const = default;
};
struct GrantReply {
  uint64_t granted_bytes = 0;  // Added to what the client held; 0 when the node is full.
  uint64_t free_bytes = 0;     // What the node has left for anybody after this grant.
  uint64_t limit_bytes = 0;    // The node's limit; both are 0 while it is not live.
  bool operator==(const GrantReply&) const = default;
};

// ---- attributes, locks, the rest
// ------------------------------------------------------------

struct GetXattrRequest {
  FileId file;
  std::string
      name;  // With its "user." prefix; user.mosa.* and the aliases answer here and are not listed.
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
  // The client's kernel has the file's object open (passthrough): it cannot be laid out anew.
  bool pinned = false;
  bool operator==(const SetXattrRequest&) const = default;
};
struct RemoveXattrRequest {
  FileId file;
  std::string name;
  bool pinned = false;  // As of SetXattrRequest.
  bool operator==(const RemoveXattrRequest&) const = default;
};

// Answered when `copies` copies of the file hold `data_version` or a later one, of `replicas=auto`
// as many as its `ack` makes of what that comes to by now; when no more will come, or after
// kAwaitCopiesMax. It must be alone in its envelope.
struct AwaitCopiesRequest {
  FileId file;
  uint64_t data_version = 0;
  uint32_t copies = 1;  // With the first, which is valid from the commit on.
  bool operator==(const AwaitCopiesRequest&) const = default;
};
struct AwaitCopiesReply {
  uint32_t copies_valid = 0;
  uint64_t copied_bytes = 0;   // By all copies that are under way: grows while there is progress.
  bool more = false;           // Further copies are under way, or about to be.
  uint32_t copies_wanted = 0;  // What was waited for: with so many the close is done.
  // With fewer: the file is strict, or no node has room for another one.
  bool no_room = false;
  std::string reason{};  // Why there are no more; empty with enough of them.
  bool operator==(const AwaitCopiesReply&) const = default;
};
inline constexpr Duration kAwaitCopiesMax = Seconds(2);

enum class LockType : uint8_t { kShared = 1, kExclusive, kUnlock };

// A byte range held by (client, owner). flock locks are whole-file locks in a space of their own.
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
// With `wait`, answered when the lock is granted or CancelLock names this request; it must then be
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
  uint64_t free_bytes = 0;  // limit - used - granted, over live nodes.
  uint64_t files = 0;
  uint64_t files_free = 0;  // As many more may be made.
  bool operator==(const StatFilesystemReply&) const = default;
};

// A fresh range of file ids for Make.
struct FileIdRangeRequest {
  bool operator==(const FileIdRangeRequest&) const = default;
};
struct FileIdRangeReply {
  FileId first;
  uint64_t count = 0;
  bool operator==(const FileIdRangeReply&) const = default;
};

// The client no longer caches anything of these files or directories.
struct ForgetRequest {
  std::vector<FileId> files;
  bool operator==(const ForgetRequest&) const = default;
};

// Answers RecallPush: the client has dropped what it cached, has sent what it deferred (kAccess:
// stores nothing any more by what it knew before), and says what it holds open. `pinned`: its
// kernel reads or writes the file's object by itself. `writes`: it is open for writing, also where
// the manager has heard that this had ended (one of several descriptors was closed).
struct RecallDoneRequest {
  RecallId recall;
  bool holds_open = false;
  bool pinned = false;
  bool writes = false;
  bool operator==(const RecallDoneRequest&) const = default;
};

struct AttributesReply {
  Attributes attributes;
  bool operator==(const AttributesReply&) const = default;
};
struct EntryReply {
  Entry entry;
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

// Which reply answers which request: Lookup, Link -> Entry; GetAttributes, SetAttributes, Commit ->
// Attributes; ListDirectory -> ListDirectory; Make -> Make; Remove -> Remove; Rename -> Rename;
// ReadSymlink -> ReadSymlink; Open -> Open; Bind, Freeze, Relocate -> Bind; Grant -> Grant; the
// rest by their names, or Empty. Any -> Failure.
using Reply = std::variant<EmptyReply, Failure, EntryReply, AttributesReply, ListDirectoryReply,
                           MakeReply, RemoveReply, RenameReply, ReadSymlinkReply, OpenReply,
                           BindReply, GrantReply, GetXattrReply, ListXattrsReply, GetLockReply,
                           StatFilesystemReply, FileIdRangeReply, AwaitCopiesReply>;

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_MESSAGES_H_
