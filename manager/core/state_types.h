// ManagerCore's in-memory records: files, directories, sessions, nodes and waiting requests. Plain
// values; state.h states ownership and invariants.
#ifndef MOSA_MANAGER_CORE_STATE_TYPES_H_
#define MOSA_MANAGER_CORE_STATE_TYPES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "common/model/task.h"
#include "manager/core/copy_orders.h"
#include "manager/core/given_up.h"
#include "manager/core/held_bytes.h"
#include "manager/core/manager_core.h"
#include "manager/core/quotas.h"
#include "manager/core/records.h"

namespace mosa::manager {

// A client that leaves a recall unanswered this long is condemned: its lease is not renewed any
// more.
constexpr Duration kRecallPatience = Seconds(10);
// A client that reopens its session may still store, or make files, under a recalled right. It is
// asked again, but others wait at most this long in total.
constexpr Duration kLetGoMax = Seconds(30);
// Number of ids that a client gets at once.
constexpr uint64_t kFileIdsAtOnce = 16384;
// Maximum length of an attribute value in a reply; clients cannot read longer ones.
constexpr size_t kAttributeValueBytesMax = 65536;
// A node with less free space than one page counts as full.
constexpr uint64_t kRoomBytesMin = 4096;

// Placement of a file's bytes. Only files that have, or had, bytes have one.
struct FileBytes {
  uint64_t chunk_bytes = 0;
  std::vector<Segment> segments;    // Segments of the first copy.
  std::vector<NodeObject> objects;  // Ascending by node.
  // By segment, copy by copy without the first; empty if there is only one copy.
  std::vector<std::vector<CopyCell>> copies;
  uint64_t inline_valid_bytes = 0;
  uint64_t generation = 0;  // The layout's generation.
  uint64_t kept_since = 0;  // Oldest generation whose stores count; WriterFences lists exceptions.
  uint32_t reason = 0;      // Text.
  NodeId inline_node;
  uint32_t raised_uncommitted = 0;  // As in InodeRecord.
  bool may_differ = false;          // As in InodeRecord.
  bool is_inline = false;
};

// Kept compact: there are millions. Rare properties are in side maps.
struct Inode {
  uint64_t size_bytes = 0;
  Time access_time, modify_time, change_time, birth_time;
  uint64_t data_version = 0;
  uint64_t interest = 0;  // Session slots 0 to 63; see Interests.
  uint64_t placement_seed = 0;
  FileId named_in;  // Directory of its latest name.
  uint32_t uid = 0, gid = 0;
  uint32_t link_count = 0;
  uint32_t device = 0;
  uint32_t task = 0, hints = 0;  // Texts.
  uint16_t permissions = 0;
  FileType type = FileType::kRegular;
  StreamPhase stream = StreamPhase::kNone;
  std::unique_ptr<FileBytes> bytes;
  Charge charged;  // As of the last request that changed the file.
};

struct Directory {
  FileId parent;
  std::string name;  // Name in `parent`; meaningless for the root and for removed directories.
  uint32_t subdirectories = 0;
  absl::btree_map<std::string, FileId, std::less<>> entries;
};

struct Waiter {
  ClientId client;
  RequestId request;
  auto operator<=>(const Waiter&) const = default;
};

struct Recall {
  FileId file;
  RecallKind kind = RecallKind::kFile;
  Time sent;                    // When it was last sent.
  Time since;                   // When it was first sent; a reopened session is asked again.
  std::vector<Waiter> waiters;  // Replies withheld until the recall is done.
  bool asks_holder = false;     // Sent because the client has a file without a name open.
  bool opened_since = false;    // The client has opened that file again.
  // The client has no interest in the directory, only reserved names. It shows nothing old.
  bool only_names = false;
};

// An envelope that was received and not answered yet.
struct Pending {
  enum class Stage : uint8_t { kParked, kWithheld, kLock, kSpace, kCopies };
  Stage stage = Stage::kParked;
  RequestEnvelope envelope;    // kParked, kSpace, kCopies: to run (again).
  bool awaits_names = false;   // kParked: until `recalls_left` recalls are confirmed.
  std::vector<Reply> replies;  // kWithheld, kLock: the replies to send.
  std::vector<std::pair<size_t, FileId>> promised;  // Which replies promise which delegation.
  std::vector<std::pair<size_t, FileId>> commits;   // Which requests committed bytes of which file.
  std::vector<FileId> files;                        // Files to which the requests asked for access.
  FileId locks{};                                   // kLock: the file.
  size_t recalls_left = 0;
  Time deadline;           // kSpace, kCopies.
  HeldBytes held, in_all;  // Its size, counted in the session's and the global sum.
};

struct Session {
  SessionStart start;  // Without the held state.
  bool connected = true;
  bool awaited = false;    // Known from before a restart, and not heard from since.
  bool condemned = false;  // Does not answer recalls: its lease is not renewed any more.
  uint32_t slot = 0;
  uint64_t interests = 0;
  Time heard;
  std::map<RecallId, Recall> recalls;
  uint64_t waiting_bytes = 0;  // Size of `pending`.
  std::map<RequestId, Pending> pending;
  std::map<NodeId, uint64_t> grants;
  std::set<FileId> write_opens;
  std::set<FileId> delegations;
  uint64_t era = 0;
  GivenUp given_up;
};

struct Delegation {
  ClientId holder;
  bool recalled = false;
  std::optional<Time> wanted_since{};  // Since when other clients want it.
};

struct Node {
  NodeAddress address;
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  // Bytes that clients reported since the node's last measurement, and between its last two. A node
  // may have measured before bytes were stored that a client has already reported.
  uint64_t consumed_bytes = 0, consumed_before_bytes = 0;
  uint64_t granted_bytes = 0;
  Time last_heard;
  uint64_t epoch = 0;  // Epoch in which its incarnation appeared.
  // Files of which it may hold bytes that are no longer theirs (NodeObject::uncut), each with the
  // order to drop the object; number 0: none was sent since the node registered.
  struct UncutDrop {
    uint64_t number = 0;
    Time ordered;
  };
  std::map<FileId, UncutDrop> uncut;
  // The last drop order that it was sent since it registered, and the last that it has carried out.
  uint64_t drops_sent = 0, drops_done = 0;
  bool connected = false;
  bool draining = false;
  // It came back without its earlier objects during the grace period after the manager's restart.
  bool came_empty = false;
  // RecoveryRecord::kept_below at the time when it registered without any object of a forgotten
  // file, or 0.
  uint64_t settled_below = 0;
  std::optional<Time> silent_since;  // Set while it is silent.
  bool given_up = false;             // Silent for long: its copies are made elsewhere.
  // While it drains: files with bytes on it, by the last full count and by the current one.
  std::optional<uint64_t> files_left;
  uint64_t files_counted = 0;
  NodeHeartbeat last_heartbeat;
  // When a client was asked to return grants; removed by its answer.
  std::map<ClientId, Time> grant_recalls;
};

// One client inspects the places of a file's bytes; no other client stores meanwhile.
struct Freeze {
  ClientId holder;
  Time until;
  bool pinned = false;  // Another client's kernel has the object open.
  bool cleans = false;  // The holder was asked to clean nodes: what it sent may still arrive.
};

// State of a file that is to be removed automatically.
struct Lifetime {
  uint64_t readers_wanted = 0;  // 0: it is temporary.
  std::string name;             // In the directory `named_in` of its inode, if known.
  // By reader number; false: the task has read the file, but its success was not reported yet.
  std::map<uint64_t, bool> readers;
  uint64_t counted = 0;        // Readers that count.
  std::set<ClientId> holders;  // While it is due: clients that have it open.
};

// A node may still carry out an order for this long after it was cancelled.
inline constexpr Duration kCancelArrivesWithin = Seconds(10);

// Pending work on copies. Not durable: rebuilt by examining all files.
struct CopyWork {
  CopyOrders orders;
  uint64_t last_order = 0;
  std::set<FileId> reviews;                      // Files to examine in this step or soon.
  std::set<std::pair<Time, FileId>> retries;     // Files to examine at a time; file 0: all files.
  std::map<FileId, Time> retry_times;            // The same by file.
  std::optional<FileId> scan_next;               // Next file of a scan over all files.
  bool scan_again = false;                       // Something has changed since the scan began.
  std::map<FileId, std::set<NodeId>> leftovers;  // Objects to drop once nobody reads them.
  std::set<FileId> leftover_checks;
  // Nodes that may still carry out a cancelled order, and nodes that had no room: each until a
  // time.
  std::map<FileId, std::map<NodeId, Time>> cancelled, full;
  // Files with copies that others replace: since when the nodes of these must have answered, and
  // how many copies were wanted then.
  struct Replaced {
    Time since;
    uint32_t wanted = 0;
  };
  std::map<FileId, Replaced> replaced;
  std::map<FileId, std::vector<Waiter>> waiters;
  std::set<FileId> marked;  // Loaded with `may_differ`, until sessions have declared their opens.
};

Failure Refuse(StatusCode code, ErrorReason reason, std::string message);
// `name` refers to `found` (FileId{}: nothing) instead of `meant`.
Failure AnotherFile(std::string_view name, FileId found, FileId meant);

struct Uncommitted {
  ClientId maker;
  FileId parent;
  std::string name;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STATE_TYPES_H_
