// The manager's decisions as one deterministic state machine: Step(command, now) -> Effects.
//
// The shell (manager/service) feeds commands from one loop and makes `writes` durable. Only then
// does it release replies, pushes and orders, in order, so no reply shows what a crash could undo.
// The predictor drives the same class in virtual time. Step never blocks and never fails: a refusal
// is a reply.
//
// Not thread-safe: one owner, one thread. The same commands at the same times give the same
// effects.
#ifndef MOSA_MANAGER_CORE_MANAGER_CORE_H_
#define MOSA_MANAGER_CORE_MANAGER_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/kv_batch.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/adoption.h"
#include "common/model/hints.h"
#include "common/model/ids.h"
#include "common/model/messages.h"
#include "common/model/read_cost.h"
#include "common/model/session.h"
#include "common/model/staging.h"
#include "common/model/status.h"
#include "common/model/storage.h"
#include "manager/core/file_scan.h"
#include "manager/core/quotas.h"
#include "manager/placement/copies.h"

namespace mosa::manager {

struct ManagerOptions {
  std::string cluster_name = "mosa";
  uint64_t cluster_seed = 1;
  uint64_t chunk_bytes = 1 << 20;
  uint64_t inline_bytes_max = kInlineBytesMax;
  uint32_t stripe_width = 0;                  // 0: all live nodes.
  std::string default_placement = "stripe";   // For files without a placement hint.
  uint64_t grant_bytes = uint64_t{64} << 20;  // Maximum of one grant.
  uint32_t sessions_max = 4096;
  // A directory is shared ("Shared directories" in common/model/session.h) when the session that
  // makes names there has changed so often, each time within 2 s.
  uint32_t turns_to_share = 4;
  // The first file id of an empty image. It must exceed all ids of any earlier store whose objects
  // nodes may still hold.
  uint64_t first_file_id = kRootFile.value + 1;
  // The image may lack acknowledged changes (recovery.h).
  bool may_have_forgotten = false;
  QuotaOptions quotas;
  // For task names, hints and layout reasons; each distinct text counts once.
  uint64_t text_bytes_max = kNoLimit;
  // Limits on waiting requests and withheld replies: per session, and for all sessions together.
  uint64_t session_waiting_bytes_max = uint64_t{64} << 20;
  uint64_t waiting_bytes_max = uint64_t{512} << 20;
  // Limits on the replies kept for retransmission: per client, and for all clients together.
  uint64_t client_reply_log_bytes_max = uint64_t{16} << 20;
  uint64_t reply_log_bytes_max = uint64_t{256} << 20;
};

// ---- commands

struct StartSession {
  SessionStart start;
};
struct SessionRequest {
  ClientId client;
  RequestEnvelope envelope;
};
struct SessionLost {  // The stream broke. The session lives on until its lease expires.
  ClientId client;
};
struct SessionClosed {  // A clean unmount.
  ClientId client;
};
struct RegisterNode {
  NodeRegistration registration;
};
struct NodeReport {
  NodeId node;
  NodeHeartbeat heartbeat;
};
struct NodeStreamLost {
  NodeId node;
};
struct NodeReportedAside {
  NodeId node;
  NodeAside aside;
};
struct NodeCopyReport {
  NodeId node;
  CopyReport report;
};
// ---- changes by users, administrators and schedulers; answered by Effects::admin_reply
// The user on whose behalf a command runs. A user may change only what they own; anything else is
// PermissionDenied. Absent: an administrator, who may change everything.
using Asker = std::optional<uint32_t>;
// Adds a rule, or replaces the asker's rule with the same glob. A user's rule applies only to files
// that the user makes.
struct AddHintRule {
  std::string glob;
  std::vector<HintValue> hints;
  Asker asker{};
};
struct RemoveHintRule {
  uint64_t id = 0;
  Asker asker{};
};
struct SetFileHint {
  std::string path, name, value;
  Asker asker{};
};
// Starts a run. From then on its tasks ("RUN/...") count as readers of a file once EndTask reports
// that they succeeded.
struct BeginWorkflow {
  std::string run;
  Asker asker{};  // Owns the run from now on.
};
struct EndTask {  // Ends a task of a run that has begun.
  std::string task;
  bool succeeded = false;
  Asker asker{};
};
// Ends a run. Its temporary files are removed, each once nobody has it open. For a user, only files
// that the user owns.
struct EndWorkflow {
  std::string run;
  Asker asker{};
};
// Moves all bytes off a node, and places no new files there until a command with `drain` false.
struct DrainNode {
  std::string name;
  bool drain = true;
};
// Records that these versions of files have been copied out of the store.
struct MarkStaged {
  std::vector<StagedFile> files;
  Asker asker{};
};
// Sets how many copies `replicas=auto` means for this number of nodes, replacing any earlier
// forecast for that number. Not durable: a new core needs it again before its first other command;
// without a forecast the square-root rule applies (copies.h).
struct SetCopiesForecast {
  uint32_t nodes = 0;
  std::vector<CopiesForBytes> sizes;  // Not empty; ascending.
};
// Turns objects that nodes have put aside into files in /lost+found, or discards them.
struct AdoptFiles {
  std::vector<FileId> files;
  bool discard = false;
};
// Recalls delegations, so that mounts report the files they made without asking. A user's command
// is served at most once per kUserRecallEvery, counted over all users; until then the answer is to
// try again.
struct RecallMakers {
  Asker asker{};
};
inline constexpr Duration kUserRecallEvery = Seconds(10);
struct Tick {};  // Time has passed: expire leases, declare nodes silent, end the grace period.
// The manager did not run for `time` (stopped or suspended). Others may have sent messages
// meanwhile, so this time never counts as their silence.
struct Stalled {
  Duration time;
};
// How full the directory of the durable image is. Not durable: the shell sets it again after a
// restart.
struct SetStorePressure {
  uint64_t used_bytes = 0;
  uint64_t limit_bytes = 0;  // Growth is refused from here on.
  // If not empty, nothing may grow. States the reason, with numbers and what to do.
  std::string refusal;
};
using Command =
    std::variant<StartSession, SessionRequest, SessionLost, SessionClosed, RegisterNode, NodeReport,
                 NodeStreamLost, NodeReportedAside, NodeCopyReport, AddHintRule, RemoveHintRule,
                 SetFileHint, BeginWorkflow, EndTask, EndWorkflow, DrainNode, MarkStaged,
                 SetCopiesForecast, AdoptFiles, RecallMakers, Tick, Stalled, SetStorePressure>;

// ---- effects

struct ToClient {
  ClientId client;
  std::variant<SessionReady, ReplyEnvelope, Push, Failure>
      message;  // Failure: the session start was refused.
};
struct ToNode {
  NodeId node;
  std::variant<NodeRegistered, NodeOrder> message;
};
struct NodeRefused {  // Answers RegisterNode when no NodeId was assigned.
  std::string name;
  Failure failure;
};
struct AdminReply {
  // Aborted: another client must let go first; ask again in a moment.
  Status status;
  uint64_t rule = 0;  // AddHintRule: the rule's id.
  // AddHintRule: false while a mount may still make files without knowing the rule.
  bool settled = true;
  // EndWorkflow: how many files still have to be removed. `more`: not all were examined, so ask
  // again.
  uint64_t files_left = 0;
  bool more = false;
  std::vector<StageOutcome> staged{};   // MarkStaged: one per file, in order.
  std::vector<AdoptOutcome> adopted{};  // AdoptFiles: one per file, in order.
};
struct Effects {
  KvBatch writes;  // Must be durable before anything below leaves the process.
  std::vector<ToClient> to_clients;
  std::vector<ToNode> to_nodes;
  std::vector<NodeRefused> refused_nodes;
  std::optional<AdminReply> admin_reply;
  size_t reply_bytes = 0;        // Approximate size of the replies.
  std::vector<std::string> log;  // One sentence each, for the shell's log.
  // Likewise, but peers can cause them as often as they like: the shell limits their number.
  std::vector<std::string> frequent_log;
  std::optional<Time> wake_at;  // Call Step(Tick) no later than this.
};

// ---- queries (read only, answered between steps): common/model/status.h

using mosa::ClusterStatus;
using mosa::FileStatus;
using mosa::NodeStatus;
using mosa::SessionStatus;

// What the shell seals into the capabilities that it adds to replies.
struct CapabilityTerms {
  uint64_t era = 0;    // The session's era.
  uint64_t epoch = 0;  // The current epoch of node incarnations.
};

class ManagerCore {
 public:
  explicit ManagerCore(ManagerOptions options);
  ~ManagerCore();

  // Rebuilds the state from the durable image, one record at a time, before the first Step. Errors
  // name the record's key: DataLoss if it cannot be read, FailedPrecondition if a newer version
  // wrote it.
  Status LoadRecord(std::string_view key, std::string_view value);
  // Ends loading. Checks that the image is consistent, and starts the grace period if there were
  // sessions.
  Status FinishLoad(Time now);

  Effects Step(const Command& command, Time now);

  ClusterStatus GetClusterStatus(Time now) const;
  // `path` is absolute within the store. NotFound names the first missing component.
  Result<FileStatus> GetFileStatus(std::string_view path) const;
  // Returns files that lost every copy of some chunk with their nodes: at most `files_max`,
  // ascending by id. Takes time proportional to all files; a shell that serves others uses
  // ContinueScan.
  std::vector<FileStatus> ListLostFiles(size_t files_max) const;
  // Explains the hints of the file at `path`, or of one that would be made there now.
  Result<HintExplanation> ExplainHints(std::string_view path) const;
  std::vector<HintRule> ListHintRules() const;
  // Returns one location per path, in order. `with_chunks`: also per range of chunks.
  std::vector<FileLocation> ListLocations(const std::vector<std::string>& paths,
                                          bool with_chunks) const;
  // Returns for each path what a reader of the file would fetch, and from which nodes. Once the
  // files lie in kReadNodesMax places, later paths get kArgumentTooBig.
  std::vector<ReadableFile> ListReadable(const std::vector<std::string>& paths) const;
  // Counts the files that are to be kept and whose current version has not been copied out. Lists
  // the paths of at most `files_max` of them, those with the lowest ids above `after`. Files that
  // mounts have not reported yet are missing: send RecallMakers first. Takes time proportional to
  // all files, as above.
  UnstagedFiles ListUnstaged(size_t files_max, FileId after) const;
  // Continues a scan of all files by about `steps` files. Returns true when the scan is complete.
  bool ContinueScan(FileScan& scan, size_t steps) const;
  CapabilityTerms TermsFor(ClientId client) const;
  // Returns at most `files_max` files with objects that nodes have put aside, those with the lowest
  // ids above `after`.
  std::vector<AsideFile> ListAside(size_t files_max, FileId after) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The key of an inline file's bytes in the durable image. The shell fills a DataAccess that has
// `is_inline`, empty `inline_data` and nonzero `inline_valid_bytes` from this record, cut to
// `inline_valid_bytes`. All such keys, and no others, begin with the prefix; they need not be
// loaded.
std::string InlineDataKey(FileId file);
inline constexpr std::string_view kInlineDataPrefix = "B";

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_MANAGER_CORE_H_
