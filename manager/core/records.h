// The records of the durable image and their keys.
//
// Values are little-endian and begin with their format version. Decoding checks every bound: any
// bytes yield a value or DataLoss, a newer version FailedPrecondition. Keys sort by kind, then by
// id (big-endian).
//
//   "B" file           the bytes of an inline file (raw; written by the core, read by the shell)
//   "C"                ClusterRecord
//   "D" parent name    the file id of an entry
//   "F" file           WriterBoundsRecord
//   "G" group          GroupRecord
//   "H" rule           RuleRecord
//   "I" file           InodeRecord
//   "K"                CountersRecord
//   "L" file reader    ReaderRecord
//   "N" node           NodeRecord
//   "O" "H" rule, or "O" "W" run   OwnerRecord; sorted after the rule, before the run
//   "P"                RecoveryRecord
//   "Q" client         CutRepliesRecord
//   "R" client request the recorded replies of an envelope
//   "S" client         SessionRecord
//   "T" file           StagedRecord
//   "U" node           NodeNotesRecord
//   "W" run            WorkflowRecord
//   "X" file name      the value of an ordinary extended attribute
#ifndef MOSA_MANAGER_CORE_RECORDS_H_
#define MOSA_MANAGER_CORE_RECORDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/attributes.h"
#include "common/model/hints.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/messages.h"
#include "common/model/session.h"

namespace mosa::manager {

struct ClusterRecord {
  std::string cluster_name;
  uint64_t cluster_seed = 0;
  uint64_t next_file_id = 2;
  uint32_t next_node_id = 1;
  bool operator==(const ClusterRecord&) const = default;
};

// Which bytes of its file a node's object may hold.
enum class ObjectHolds : uint8_t {
  kOwn = 0,     // Only those of its stripe positions.
  kCopies = 1,  // Only copies of what is first on other nodes.
  kBoth = 2,
};

// A node's share of a file, as committed.
struct NodeObject {
  NodeId node;
  bool lost = false;  // The node came back without it.
  uint64_t allocated_bytes = 0;
  bool damaged = false;  // The node found blocks with wrong checksums.
  // The object may hold bytes that are no longer the file's. The file gets no new byte there before
  // the node has copied the file again or, if it is to hold none of it, has dropped the object.
  bool uncut = false;
  ObjectHolds holds = ObjectHolds::kOwn;
  bool operator==(const NodeObject&) const = default;
};

// One stripe position's copy on one node.
struct CopyCell {
  NodeId node;  // kNoNode: no copy.
  // The file's data_version when the node had all bytes. The copy is valid while the file still has
  // it.
  uint64_t data_version = 0;
  // The node may hold bytes of the position that are no longer the file's: the copy must be made
  // even if the position has no bytes any more.
  bool uncut = false;
  // The node had the first copy until another one replaced it. It has all bytes of `data_version`,
  // but a writer may have stored there since, so it is compared before it counts as valid.
  bool was_first = false;
  bool operator==(const CopyCell&) const = default;
};

// What is known of the writers of a file with the hint stream=append.
enum class StreamPhase : uint8_t {
  kNone = 0,   // It was never opened for writing as a stream.
  kOpen = 1,   // It was, and not every writer has closed it.
  kEnded = 2,  // Every writer has closed it.
  kBroken = 3,
};

struct InodeRecord {
  Attributes attributes;  // Without allocated_bytes; size_bytes and link_count of directories are
                          // counted from their entries.
  uint64_t placement_seed = 0;
  std::string task;
  std::string hints;  // EncodeHints().
  std::string symlink_target;
  Layout layout;                    // Layout of the first copy.
  std::vector<NodeObject> objects;  // Ascending by node.
  // By segment, copy by copy without the first; empty if there is only one copy.
  std::vector<std::vector<CopyCell>> copies;
  // A client may have stored bytes in the first copy that valid copies, and pages of readers, lack.
  bool may_differ = false;
  // How often data_version was raised since the last commit because a writer ended without
  // committing.
  uint32_t raised_uncommitted = 0;
  bool is_inline = false;
  uint64_t inline_valid_bytes = 0;
  NodeId inline_node;
  ClientId uncommitted_by;  // The session that made it and has not committed it yet, or 0.
  // It was removed because that session ended, and is still open elsewhere.
  bool abandoned = false;
  // The layout's generation. `kept_since` is the oldest generation whose stores still count.
  uint64_t generation = 0;
  uint64_t kept_since = 0;
  StreamPhase stream = StreamPhase::kNone;
  bool operator==(const InodeRecord&) const = default;
};

struct NodeRecord {
  NodeAddress address;
  uint64_t limit_bytes = 0;
  bool draining = false;
  uint64_t epoch = 0;  // Epoch in which this incarnation appeared.
  bool operator==(const NodeRecord&) const = default;
};

// Properties of a node that are kept for a limited time.
struct NodeNotesRecord {
  bool came_empty = false;     // During the grace period after the manager's restart.
  uint64_t settled_below = 0;  // As in Node.
  bool operator==(const NodeNotesRecord&) const = default;
};

// The oldest layout generation whose stores by one writer of a file count.
struct WriterBound {
  ClientId client;
  uint64_t kept_since = 0;
  bool operator==(const WriterBound&) const = default;
};

// The writers of a file that a fence left unaffected.
struct WriterBoundsRecord {
  std::vector<WriterBound> bounds;
  bool operator==(const WriterBoundsRecord&) const = default;
};

// Replies to a client were dropped before the client confirmed them.
struct CutRepliesRecord {
  RequestId last;  // Highest request id of these.
  bool operator==(const CutRepliesRecord&) const = default;
};

struct SessionRecord {
  std::string node_name;
  std::string host_identity;
  std::string mount_point;
  bool operator==(const SessionRecord&) const = default;
};

struct RepliesRecord {
  std::vector<Reply> replies;
  bool operator==(const RepliesRecord&) const = default;
};

struct EntryRecord {
  FileId file;
  bool operator==(const EntryRecord&) const = default;
};

// A group of files that are to lie on one node.
struct GroupRecord {
  NodeId anchor;  // kNoNode: the next file chooses one.
  bool operator==(const GroupRecord&) const = default;
};

// A HintRule; its id is in the key.
struct RuleRecord {
  std::string glob;
  std::vector<HintValue> hints;
  bool operator==(const RuleRecord&) const = default;
};

// Counters that never restart.
struct CountersRecord {
  uint64_t next_rule_id = 1;
  uint64_t era = 0;    // Sessions started.
  uint64_t epoch = 0;  // Nodes that registered for the first time, or with a new incarnation.
  bool operator==(const CountersRecord&) const = default;
};

// For a file that is removed automatically: a reader, or (reader 0) that the file is due.
struct ReaderRecord {
  bool counts = false;  // Final: no report of the task's success is awaited.
  bool operator==(const ReaderRecord&) const = default;
};

// A run whose runner reports its tasks.
struct WorkflowRecord {
  Time begun;
  bool operator==(const WorkflowRecord&) const = default;
};

// The owner of a rule or run. Those without a record belong to nobody in particular.
struct OwnerRecord {
  uint32_t uid = 0;
  bool operator==(const OwnerRecord&) const = default;
};

// A file that was copied out of the store.
struct StagedRecord {
  uint64_t data_version = 0;  // The version that was copied.
  bool operator==(const StagedRecord&) const = default;
};

// What earlier runs of the manager may have forgotten, and from where on everything is known.
struct RecoveryRecord {
  uint64_t kept_below = 0;     // Objects of files with lower ids are never dropped as unowned.
  uint64_t version_floor = 0;  // Files with bytes have at least this data_version.
  bool operator==(const RecoveryRecord&) const = default;
};

std::string Encode(const ClusterRecord& record);
std::string Encode(const InodeRecord& record);
std::string Encode(const NodeRecord& record);
std::string Encode(const NodeNotesRecord& record);
std::string Encode(const WriterBoundsRecord& record);
std::string Encode(const CutRepliesRecord& record);
std::string Encode(const SessionRecord& record);
std::string Encode(const RepliesRecord& record);
// Encodes a RepliesRecord without copying the replies into one.
std::string Encode(const std::vector<Reply>& replies);
std::string Encode(const EntryRecord& record);
std::string Encode(const GroupRecord& record);
std::string Encode(const RuleRecord& record);
std::string Encode(const CountersRecord& record);
std::string Encode(const ReaderRecord& record);
std::string Encode(const WorkflowRecord& record);
std::string Encode(const OwnerRecord& record);
std::string Encode(const StagedRecord& record);
std::string Encode(const RecoveryRecord& record);

// T is one of the records above. Errors name `key`.
template <typename T>
Result<T> Decode(std::string_view key, std::string_view value);

// Returns a readable key: kind and ids, other bytes in hexadecimal.
std::string PrintableKey(std::string_view key);

std::string ClusterKey();
std::string CountersKey();
std::string CutRepliesKey(ClientId client);
std::string EntryKey(FileId parent, std::string_view name);
std::string GroupKey(std::string_view group);
std::string RuleKey(uint64_t rule);
std::string InodeKey(FileId file);
std::string NodeKey(NodeId node);
std::string NodeNotesKey(NodeId node);
std::string RuleOwnerKey(uint64_t rule);
std::string RunOwnerKey(std::string_view run);
std::string ReaderKey(FileId file, uint64_t reader);
std::string RecoveryKey();
std::string RepliesKey(ClientId client, RequestId request);
std::string SessionKey(ClientId client);
std::string StagedKey(FileId file);
std::string WorkflowKey(std::string_view run);
std::string WriterBoundsKey(FileId file);
std::string XattrKey(FileId file, std::string_view name);

// Returns the big-endian number at `position` of a key. Precondition: the key is long enough.
uint64_t KeyNumber(std::string_view key, size_t position);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_RECORDS_H_
