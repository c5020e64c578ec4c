// Everything that the manager decides, as one deterministic state machine: Step(command, now) ->
// Effects.
//
// The shell (manager/service) feeds commands from one loop, makes `writes` durable, and only then
// releases replies, pushes and orders, in order; so no reply shows what a crash could undo. The
// predictor drives the same class with virtual time. Step never blocks and never
// fails: a refusal is a reply.
//
// One owner, one thread. Deterministic: the same commands at the same times give the same effects.
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
  std::string default_placement = "stripe";   // What an untagged file gets.
  uint64_t grant_bytes = uint64_t{64} << 20;  // The largest grant given at once.
  Duration capability_lifetime = kCapabilityLifetime;
  uint32_t sessions_max = 4096;
  // Where an empty image's file ids begin: above those of any store before it, whose objects nodes
  // may still hold.
  uint64_t first_file_id = kRootFile.value + 1;
  // The image may lack changes that were acknowledged (recovery.h).
  bool may_have_forgotten = false;
  QuotaOptions quotas;
  uint64_t text_bytes_max = kNoLimit;  // Names of tasks, hints, reasons; each is kept once.
  // Requests that wait for others, with withheld replies: per session, and in all.
  uint64_t session_waiting_bytes_max = uint64_t{64} << 20;
  uint64_t waiting_bytes_max = uint64_t{512} << 20;
  // Replies that a client may ask for again: per client, and in all.
  uint64_t client_reply_log_bytes_max = uint64_t{16} << 20;
  uint64_t reply_log_bytes_max = uint64_t{256} << 20;
};

// ---- commands
// ------------------------------------------------------------------------------------------

struct StartSession {
  SessionStart start;
};
struct SessionRequest {
  ClientId client;
  RequestEnvelope envelope;
};
struct SessionLost {  // The stream broke. The session lives on until its lease ends.
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
// ---- what people and schedulers change; answered by Effects::admin_reply
// On whose behalf: a user, who changes only what is his own, else PermissionDenied; none: somebody
// who may change everything.
using Asker = std::optional<uint32_t>;
// In the place of one with the same glob. A user's is for what he makes.
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
// From now on tasks of this run, those named "RUN/...", count as readers when EndTask says so.
struct BeginWorkflow {
  std::string run;
  Asker asker{};  // Whose run it is from now on.
};
struct EndTask {  // Ends a task of a run that has begun.
  std::string task;
  bool succeeded = false;
  Asker asker{};
};
// Its temporary files go, each as soon as nobody has it open; for a user those that are his.
struct EndWorkflow {
  std::string run;
  Asker asker{};
};
// Moves everything off a node, and keeps it free of new files, until it is told otherwise.
struct DrainNode {
  std::string name;
  bool drain = true;
};
// These have been copied out of the store, as of these versions.
struct MarkStaged {
  std::vector<StagedFile> files;
  Asker asker{};
};
// How many copies pay among so many nodes: from now on what `replicas=auto` comes to, whatever was
// said of this number before. Not durable: it must be said again to a new core, before the
// first other command, or else the rule holds.
struct SetCopiesForecast {
  uint32_t nodes = 0;
  std::vector<CopiesForBytes> sizes;  // Not empty; ascending.
};
// Makes files of what nodes have put aside, in /lost+found or beside it, or has it removed.
struct AdoptFiles {
  std::vector<FileId> files;
  bool discard = false;
};
// Mounts that make files without asking tell what they have made. A user's recall happens at most
// once in kUserRecallEvery, whoever asks; until then he is told to try again.
struct RecallMakers {
  Asker asker{};
};
inline constexpr Duration kUserRecallEvery = Seconds(10);
struct Tick {};  // Time has passed: expire leases, declare nodes silent, end the grace period.
// The manager itself did not run (it was stopped, or its host was): what others may have said
// meanwhile has not been heard, and none of it counts as their silence.
struct Stalled {
  Duration time;
};
// How full the directory of the durable image is. Not durable: it must be said again.
struct SetStorePressure {
  uint64_t used_bytes = 0;
  uint64_t limit_bytes = 0;  // Growth is refused from there on.
  // Not empty: nothing may grow, and this says why, with the numbers and what to do.
  std::string refusal;
};
using Command =
    std::variant<StartSession, SessionRequest, SessionLost, SessionClosed, RegisterNode, NodeReport,
                 NodeStreamLost, NodeReportedAside, NodeCopyReport, AddHintRule, RemoveHintRule,
                 SetFileHint, BeginWorkflow, EndTask, EndWorkflow, DrainNode, MarkStaged,
                 SetCopiesForecast, AdoptFiles, RecallMakers, Tick, Stalled, SetStorePressure>;

// ---- effects
// ------------------------------------------------------------------------------------------

struct ToClient {
  ClientId client;
  std::variant<SessionReady, ReplyEnvelope, Push, Failure>
      message;  // Failure: the session start was refused.
};
struct ToNode {
  NodeId node;
  std::variant<NodeRegistered, NodeOrder> message;
};
struct NodeRefused {  // Answers RegisterNode when there is no NodeId to speak of.
  std::string name;
  Failure failure;
};
struct AdminReply {
  // Aborted: somebody else has to let go first; ask again in a moment.
  Status status;
  uint64_t rule = 0;  // AddHintRule: its id.
  // AddHintRule: false while some mount may still make files without knowing of the rule.
  bool settled = true;
  // EndWorkflow: files that are still to go, and true if not all were looked at: ask again.
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
  size_t reply_bytes = 0;        // About what the replies take.
  std::vector<std::string> log;  // One sentence each, for the shell's log.
  std::optional<Time> wake_at;   // Call Step(Tick) no later than this.
};

// ---- what people ask (read only, answered between steps): common/model/status.h

using mosa::ClusterStatus;
using mosa::FileStatus;
using mosa::NodeStatus;
using mosa::SessionStatus;

// What the shell seals into the capabilities that it adds to replies.
struct CapabilityTerms {
  uint64_t era = 0;    // Era of the client's session.
  uint64_t epoch = 0;  // Epoch of the nodes' incarnations.
};

class ManagerCore {
 public:
  explicit ManagerCore(ManagerOptions options);
  ~ManagerCore();

  // Rebuilds the state from the durable image, one record at a time, before the first Step.
  // DataLoss names the key of a record that cannot be read; FailedPrecondition one of a newer
  // version.
  Status LoadRecord(std::string_view key, std::string_view value);
  // Ends loading: checks that the image is whole, and starts the grace period if there were
  // sessions.
  Status FinishLoad(Time now);

  Effects Step(const Command& command, Time now);

  ClusterStatus GetClusterStatus(Time now) const;
  // By absolute path in the store. NotFound names the first missing component.
  Result<FileStatus> GetFileStatus(std::string_view path) const;
  // Files whose every copy of some chunk was on lost nodes, at most `files_max`, ascending by id.
  // As long as there are files: a shell that serves others asks by ContinueScan.
  std::vector<FileStatus> ListLostFiles(size_t files_max) const;
  // What holds for the file at this path, or for one that would be made there now.
  Result<HintExplanation> ExplainHints(std::string_view path) const;
  std::vector<HintRule> ListHintRules() const;
  // One answer for each path, in their order; with `with_chunks` per range of chunks too.
  std::vector<FileLocation> ListLocations(const std::vector<std::string>& paths,
                                          bool with_chunks) const;
  // How many nodes copies can stay on.
  uint32_t CountStayingNodes() const;
  // The same as ListLocations for who would read them; of paths behind kReadNodesMax nodes
  // kArgumentTooBig.
  std::vector<ReadableFile> ListReadable(const std::vector<std::string>& paths) const;
  // How many files are to be kept and have not been copied out as they are, with at most
  // `files_max` of them by path: those with the lowest ids greater than `after`. What mounts have
  // made and not told of is missing: RecallMakers. As long as there are files, as above.
  UnstagedFiles ListUnstaged(size_t files_max, FileId after) const;
  // Goes on with a question about all files; takes the time of looking at `steps` of them. True: it
  // is answered.
  bool ContinueScan(FileScan& scan, size_t steps) const;
  CapabilityTerms TermsFor(ClientId client) const;
  // At most `files_max` files that nodes have put something aside of, with the lowest ids greater
  // than `after`.
  std::vector<AsideFile> ListAside(size_t files_max, FileId after) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The key under which an inline file's bytes stand in the durable image. A DataAccess with
// `is_inline`, empty `inline_data` and `inline_valid_bytes` above 0 is filled by the shell from
// there (and cut to `inline_valid_bytes`). All such keys, and no others, begin with the prefix;
// they need not be loaded.
std::string InlineDataKey(FileId file);
inline constexpr std::string_view kInlineDataPrefix = "B";

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_MANAGER_CORE_H_
