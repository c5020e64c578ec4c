// The records that ManagerCore keeps in memory: files, directories, sessions, nodes, and what
// waits. Plain values; state.h says who owns them and what holds between them.
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
#include "manager/core/copy_orders.h"
#include "manager/core/given_up.h"
#include "manager/core/held_bytes.h"
#include "manager/core/manager_core.h"
#include "manager/core/quotas.h"
#include "manager/core/records.h"
#include "manager/core/reply_log.h"

namespace mosa::manager {

// A client that has not answered a recall by then is condemned: its lease is not renewed any more.
constexpr Duration kRecallPatience = Seconds(10);
// A client that reopens its session may still store, or make files, under what is recalled: it is
// asked again, but others wait no longer than this in all.
constexpr Duration kLetGoMax = Seconds(30);
// How many ids a client is given at once.
constexpr uint64_t kFileIdsAtOnce = 16384;
// Limit for a value in an answer: a client could not read a longer one.
constexpr size_t kAttributeValueBytesMax = 65536;
// Limit for a task name, as a mount sends it.
constexpr size_t kTaskBytesMax = 1024;
// A node with less room than a page's block has none.
constexpr uint64_t kRoomBytesMin = 4096;

// Where a file's bytes are; only files that have, or had, some.
struct FileBytes {
  uint64_t chunk_bytes = 0;
  std::vector<Segment> segments;    // The first copy's.
  std::vector<NodeObject> objects;  // Ascending by node.
  // By segment, copy by copy without the first; empty if there are no others.
  std::vector<std::vector<CopyCell>> copies;
  uint64_t inline_valid_bytes = 0;
  uint64_t generation = 0;  // The layout's generation.
  uint64_t kept_since = 0;  // The oldest one whose stores count, but for WriterFences.
  uint32_t reason = 0;      // Text.
  NodeId inline_node;
  uint32_t raised_uncommitted = 0;  // As in InodeRecord.
  bool may_differ = false;          // As in InodeRecord.
  bool is_inline = false;
};

// Compact, since there are millions; what few inodes have is in side maps.
struct Inode {
  uint64_t size_bytes = 0;
  Time access_time, modify_time, change_time, birth_time;
  uint64_t data_version = 0;
  uint64_t interest = 0;  // Session slots 0 to 63; higher ones are in `far_interest_`.
  uint64_t placement_seed = 0;
  FileId named_in;  // The directory of its last name.
  uint32_t uid = 0, gid = 0;
  uint32_t link_count = 0;
  uint32_t device = 0;
  uint32_t task = 0, hints = 0;  // Texts.
  uint16_t permissions = 0;
  FileType type = FileType::kRegular;
  std::unique_ptr<FileBytes> bytes;
  Charge charged;  // As of the last request that changed the file.
};

struct Directory {
  FileId parent;
  std::string name;  // In `parent`; without meaning for the root, and for a removed directory.
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
  Time sent;                    // Last.
  Time since;                   // First; a client that opens its session again is asked again.
  std::vector<Waiter> waiters;  // Whose replies are withheld until it is done.
  bool asks_holder = false;     // Sent because it has opened a file without a name.
  bool opened_since = false;    // It has opened that again.
};

// An envelope that was received and is not answered yet.
struct Pending {
  enum class Stage : uint8_t { kParked, kWithheld, kLock, kSpace, kCopies };
  Stage stage = Stage::kParked;
  RequestEnvelope envelope;                         // kParked, kSpace, kCopies: to be run (again).
  bool awaits_names = false;                        // kParked: until `recalls_left` are confirmed.
  std::vector<Reply> replies;                       // kWithheld, kLock: what is to be answered.
  std::vector<std::pair<size_t, FileId>> promised;  // Which replies tell of which delegation.
  std::vector<std::pair<size_t, FileId>> commits;   // Which requests committed bytes of which file.
  std::vector<FileId> files;                        // To which requests have asked for access.
  FileId locks{};                                   // kLock: the file.
  size_t recalls_left = 0;
  Time deadline;           // kSpace, kCopies.
  HeldBytes held, in_all;  // What it keeps, among the session's and everybody's.
};

struct Session {
  SessionStart start;  // Without what is held.
  bool connected = true;
  bool awaited = false;    // Known from before a restart, not heard of since.
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
  std::optional<Time> wanted_since{};  // By others.
};

struct Node {
  NodeAddress address;
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  // Reported by clients since the node measured last, and between its last two measurements: a node
  // may have measured before the bytes were stored that a client has told of.
  uint64_t consumed_bytes = 0, consumed_before_bytes = 0;
  uint64_t granted_bytes = 0;
  Time last_heard;
  uint64_t epoch = 0;  // When its incarnation came.
  bool connected = false;
  bool draining = false;
  // It has come back with nothing of before since the manager's restart, whose grace is not over.
  bool came_empty = false;
  // What RecoveryRecord::kept_below was when it had no object of a file that was forgotten, or 0.
  uint64_t settled_below = 0;
  std::optional<Time> silent_since;  // While it is.
  bool given_up = false;             // It has been silent for long: its copies are made elsewhere.
  // While it drains: files that have bytes on it, as of the last full count; and so far of this.
  std::optional<uint64_t> files_left;
  uint64_t files_counted = 0;
  NodeHeartbeat last_heartbeat;
  std::map<ClientId, Time> grant_recalls;  // Asked to give back, not answered yet: when.
};

// One client looks at where a file's bytes are; nobody else stores any meanwhile.
struct Freeze {
  ClientId holder;
  Time until;
  bool pinned = false;  // Another client's kernel has the object open.
};

// Files that are to lie on one node.
struct Group {
  NodeId anchor;       // kNoNode: the next file chooses one.
  uint64_t files = 0;  // That are bound; with the last the group is forgotten.
};

// What is kept of a file that is to go by itself.
struct Lifetime {
  uint64_t readers_wanted = 0;  // 0: it is temporary.
  std::string name;             // In its inode's `named_in`, as far as it is known.
  // By number; false: its task has read the file, and nobody has said yet that it succeeded.
  std::map<uint64_t, bool> readers;
  uint64_t counted = 0;        // Readers that count.
  std::set<ClientId> holders;  // While it is due: clients that have it open.
};

// What there is to do about copies. Not durable: it is found again by looking at all files.
struct CopyWork {
  CopyOrders orders;
  uint64_t last_order = 0;
  std::set<FileId> reviews;                      // To be looked at in this step or soon.
  std::set<std::pair<Time, FileId>> retries;     // To be looked at then; 0: all files.
  std::map<FileId, Time> retry_times;            // The same, by file.
  std::optional<FileId> scan_next;               // All files are being looked at, from here on.
  bool scan_again = false;                       // Something has changed since the scan began.
  std::map<FileId, std::set<NodeId>> leftovers;  // Objects to drop once nobody reads them.
  std::set<FileId> leftover_checks;
  // Where an order to drop may be under way still, and which nodes had no room: until then.
  std::map<FileId, std::map<NodeId, Time>> dropped, full;
  std::map<FileId, std::vector<Waiter>> waiters;
  std::set<FileId> marked;  // Loaded with `may_differ`, until sessions have declared their opens.
};

struct Uncommitted {
  ClientId maker;
  FileId parent;
  std::string name;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STATE_TYPES_H_
