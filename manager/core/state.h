// The implementation of ManagerCore: its state, and its rules by topic, one source file each
// (state_envelopes, state_recalls, state_sessions, state_names, state_bytes, state_generations,
// state_limits, state_space, state_copies, state_copy_orders, state_copy_truth, state_xattrs,
// state_hints, state_lifetimes, state_staging, state_nodes, state_recovery, state_load,
// state_scans, state_status). Only these files and manager_core.cc include this header.
//
// Invariants:
//  1. Every directory entry names an inode; every inode has a name or is in `orphans_`.
//  2. An inode's link_count is the number of its names (a directory's: 2 plus its subdirectories).
//  3. Every inode in `dirty_` is written before the step ends; no other inode change is durable.
//  4. A session's outstanding recalls are exactly those in `recalls_by_file_` under its client.
//  5. A node's granted_bytes is the sum of all sessions' grants on it.
#ifndef MOSA_MANAGER_CORE_STATE_H_
#define MOSA_MANAGER_CORE_STATE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "manager/core/file_attributes.h"
#include "manager/core/groups.h"
#include "manager/core/hint_rules.h"
#include "manager/core/hints.h"
#include "manager/core/interests.h"
#include "manager/core/lock_table.h"
#include "manager/core/manager_core.h"
#include "manager/core/quotas.h"
#include "manager/core/records.h"
#include "manager/core/recovery.h"
#include "manager/core/runs.h"
#include "manager/core/state_types.h"
#include "manager/core/text_pool.h"
#include "manager/core/writer_fences.h"
#include "manager/placement/copies.h"
#include "manager/placement/policy.h"

namespace mosa::manager {

struct ManagerCore::State {
 public:
  explicit State(ManagerOptions options);

  Status LoadRecord(std::string_view key, std::string_view value);
  Status FinishLoad(Time now);
  Effects Step(const Command& command, Time now);

  ClusterStatus GetClusterStatus(Time now) const;
  Result<FileStatus> GetFileStatus(std::string_view path) const;
  Result<HintExplanation> ExplainHints(std::string_view path) const;
  std::vector<HintRule> ListHintRules() const { return rules_.List(); }
  uint32_t CountStayingNodes() const;
  std::vector<ReadableFile> ListReadable(const std::vector<std::string>& paths) const;
  CapabilityTerms TermsFor(ClientId client) const;
  // Sets `file`, or returns why `path` is not a regular file.
  std::optional<Failure> FindRegular(const std::string& path, FileId& file) const;
  std::vector<FileLocation> ListLocations(const std::vector<std::string>& paths,
                                          bool with_chunks) const;
  bool ContinueScan(FileScan& scan, size_t steps) const;

 private:
  // ---- commands
  void Handle(const StartSession& command);
  void Handle(const SessionRequest& command);
  void Handle(const SessionLost& command);
  void Handle(const SessionClosed& command);
  void Handle(const RegisterNode& command);
  void Handle(const NodeReport& command);
  void TakeUntold(const Node& node, FileId file);
  void Handle(const NodeStreamLost& command);
  void Handle(const NodeReportedAside& command);
  void Handle(const NodeCopyReport& command);
  void Handle(const AddHintRule& command);
  void Handle(const RemoveHintRule& command);
  void Handle(const SetFileHint& command);
  void Handle(const BeginWorkflow& command);
  void Handle(const EndTask& command);
  void Handle(const EndWorkflow& command);
  void Handle(const DrainNode& command);
  void Handle(const MarkStaged& command);
  void Handle(const SetCopiesForecast& command);
  void Handle(const AdoptFiles& command);
  void Handle(const RecallMakers& command);
  void Handle(const Tick& command);
  void Handle(const Stalled& command);
  void Handle(const SetStorePressure& command);
  void FinishStep();

  // ---- envelopes (state_envelopes.cc)
  void ReceiveEnvelope(Session& session, const RequestEnvelope& envelope);
  static void NoteGivenUp(Session& session, const RequestEnvelope& envelope);
  bool AnswerAsRecorded(Session& session, const RequestEnvelope& envelope);
  // `names_awaited`: every client already shows the names that a listing would return.
  void RunEnvelope(Session& session, const RequestEnvelope& envelope, bool names_awaited = false);
  void Withhold(Session& session, const RequestEnvelope& envelope, size_t recalls,
                std::vector<Reply> replies);
  std::vector<Reply> RunRequests(const RequestEnvelope& envelope);
  bool MayRunReady() const;
  void RunReady();
  void Answer(Session& session, RequestId id, std::vector<Reply> replies);
  void RecordReplies(ClientId client, RequestId id, const std::vector<Reply>& replies);
  void DropRecordedReplies(ClientId client, RequestId below);
  using ReplyLogs = std::map<ClientId, ReplyLog>;
  ReplyLogs::iterator ForgetReplies(ReplyLogs::iterator log);
  bool MayHaveRun(ClientId client, const RequestEnvelope& envelope) const;
  bool IsTooLong(const ReplyLog& log) const;
  void HoldWaiting(Session& session, Pending& pending);
  void FinishPending(const Waiter& waiter);
  void AnswerPending(Session& session, RequestId id, Pending pending);
  void CorrectDelegations(ClientId client, Pending& pending) const;
  void CorrectAccess(Session& session, const std::vector<FileId>& files,
                     std::vector<Reply>& replies);
  static std::vector<std::pair<size_t, FileId>> CommittedBy(const std::vector<Request>& requests);
  void CorrectCommits(const std::vector<std::pair<size_t, FileId>>& commits,
                      std::vector<Reply>& replies) const;
  std::vector<FileId> BlockedOn(const Session& session, const Request& request) const;
  bool IsDelegatedElsewhere(const Session& session, FileId directory) const;
  bool ParkListing(Session& session, const RequestEnvelope& envelope);
  void Park(Session& session, RequestEnvelope envelope, FileId directory);

  // ---- interest, recalls, delegations (state_recalls.cc)
  uint32_t TakeSlot(ClientId client);
  RecallId SendRecall(Session& session, FileId file, RecallKind kind);
  bool IsRecalledFrom(ClientId client, FileId file) const;
  void AskHolder(Session& session, FileId file);
  void FinishRecall(Session& session, const RecallDoneRequest& done);
  // Recalls `touched_` and `access_changed_` from all interested clients but `actor`. `waiter`, if
  // given, waits for these recalls, except access recalls that need no wait, and for earlier ones
  // of the same files. Returns the number of recalls that it waits for.
  size_t RecallTouched(ClientId actor, std::optional<Waiter> waiter);
  // Both withhold a request's reply until other clients have confirmed earlier recalls. They return
  // how many recalls the reply now waits for.
  size_t AwaitSameNames(ClientId client, const RequestEnvelope& envelope,
                        const std::vector<Reply>& replies);
  size_t AwaitRecalls(FileId file, const Waiter& waiter);
  size_t RecallAccess(ClientId actor, std::optional<Waiter> waiter);
  // `waits`: the current reply waits until no client stores by the previous layout.
  void TouchAccess(FileId file, bool waits = true);
  bool MayDelegate(const Session& session, FileId directory) const;
  void Delegate(Session& session, FileId directory);
  void EndDelegation(FileId directory);
  void NoteContended(FileId directory);
  void RecallDelegation(FileId directory);
  bool HoldsDelegation(ClientId client, FileId directory) const;

  // ---- sessions (state_sessions.cc)
  void RefuseSession(ClientId client, StatusCode code, std::string message);
  void Redeclare(Session& session, const SessionStart& start, bool was_known);
  void ForgetHeld(Session& session, bool ended, bool clean);
  void EndSession(ClientId client, std::string_view reason, bool clean);
  void EndGrace();
  void EndGraceIfAllAreBack();
  void RemoveUncommittedOf(ClientId client);
  FileIdRangeReply TakeFileIds();
  void ReleaseGrants(Session& session);
  void Schedule(Time at);

  // ---- names (state_names.cc, state_rename.cc)
  Reply Apply(const LookupRequest& request);
  Reply Apply(const GetAttributesRequest& request);
  Reply Apply(const ListDirectoryRequest& request);
  Reply Apply(const MakeRequest& request);
  Reply Apply(const LinkRequest& request);
  Reply Apply(const RemoveRequest& request);
  Reply Apply(const RenameRequest& request);
  Reply Apply(const ReadSymlinkRequest& request);
  Reply Apply(const SetAttributesRequest& request);
  std::optional<Failure> CheckMake(const MakeRequest& request) const;
  std::optional<Failure> CheckRename(const RenameRequest& request, FileId moved,
                                     std::optional<FileId> target) const;
  std::optional<Failure> CheckExchange(const RenameRequest& request, FileId moved,
                                       FileId target) const;
  void Exchange(const RenameRequest& request, FileId moved, FileId target);
  void TouchBothParents(const RenameRequest& request);
  void RenamedTo(FileId file, FileId parent, const std::string& name);
  std::optional<Failure> CheckDirectory(FileId directory) const;
  std::optional<Failure> CheckName(std::string_view name) const;
  bool IsWithin(FileId directory, FileId ancestor) const;
  void SetSize(FileId file, Inode& inode, uint64_t size_bytes);
  void AddEntry(FileId parent, const std::string& name, FileId child);
  void EraseEntry(FileId parent, std::string_view name);
  // Called after the name was erased: drops one link, or removes the directory.
  uint32_t Unlink(FileId file, bool holder_has_it_open, ClientId holder);
  void CheckOrphan(FileId file);
  // Keeps an orphan for a while: another client may have looked the name up just before it was
  // removed, and be about to open the file.
  void Linger(FileId orphan);
  void DropInode(FileId file);
  void TouchDirectory(FileId directory, Time at);
  void Touch(FileId file);
  Attributes AttributesOf(FileId file, const Inode& inode) const;
  Entry EntryWithInterest(FileId file);

  // ---- bytes (state_bytes.cc)
  Reply Apply(const OpenRequest& request);
  Reply Apply(const BindRequest& request);
  Reply Apply(const FreezeRequest& request);
  Reply Apply(const RelocateRequest& request);
  Reply Apply(const CommitRequest& request);
  Reply Apply(const ReleaseRequest& request);
  std::optional<Failure> CheckRegular(FileId file) const;
  std::optional<Failure> CheckCommit(const CommitRequest& request);
  void StoreInline(FileId file, Inode& inode, const CommitRequest& request);
  void DropInline(FileId file, Inode& inode);
  bool GoesOutToAll(const EffectiveHints& hints) const;
  Result<PlacementPlan> PlaceSegment(const Inode& inode, const EffectiveHints& hints,
                                     PlacementRequest request) const;
  Status Bind(FileId file, Inode& inode, uint64_t first_bytes);
  // Returns the file's freeze, or null if there is none.
  Freeze* FreezeOf(FileId file);
  // Freezes the file for the actor. The caller's reply waits until no client stores by the layout.
  std::optional<Failure> FreezeFor(FileId file);
  Reply Relocate(const RelocateRequest& request, Inode& inode);
  // Has the client punch out what the nodes have in the range, under a generation that they accept.
  Reply AskToClean(FileId file, Inode& inode, std::vector<NodeId> nodes);
  // What the first copies' objects may hold when the file's placement is taken away.
  enum class FirstObjects : uint8_t { kCut, kNotCut };
  void Unbind(FileId file, Inode& inode, FirstObjects first_objects);
  // Returns why the file cannot be laid out anew now, if anything prevents it. kAborted: the actor
  // must freeze it first.
  std::optional<Failure> MayUnbind(FileId file, const Inode& inode);
  static NodeObject& ObjectOn(FileBytes& bytes, NodeId node);
  // Null: the node has no object of the file.
  static const NodeObject* FindObject(const FileBytes& bytes, NodeId node);
  static bool HasCommitted(const NodeObject& object);
  static void NoteCopies(NodeObject& object);
  DataAccess AccessTo(FileId file, const Inode& inode, bool may_write);
  Layout LayoutOf(const Inode& inode) const;
  HintDefaults Defaults() const;
  const EffectiveHints& HintsOf(const Inode& inode) const;  // Valid until the next call.
  // Chunks of the file's own size in one chunk of its layout.
  uint64_t RunChunksOf(const Inode& inode) const;
  FileBytes& BytesOf(Inode& inode) const;
  void SetReason(FileBytes& bytes, std::string_view reason);
  void CloseWrite(Session& session, FileId file);
  void CommitTo(FileId file);
  // Returns the first node, if any, whose loss or silence makes bytes of the file unavailable.
  std::optional<NodeId> LostAt(const Inode& inode) const;

  // ---- generations of layouts (state_generations.cc)
  // Call when the places of a file's bytes change. What was stored by earlier layouts still counts.
  void RaiseGeneration(FileId file, Inode& inode);
  // As RaiseGeneration, but what writers without a session stored no longer counts.
  void BeginGeneration(FileId file, Inode& inode);
  // As RaiseGeneration, but what writers outside `live` stored by earlier layouts no longer counts.
  void FenceWriters(FileId file, Inode& inode, const std::set<ClientId>& live);
  // Another client now relies on the file's content: fences writers whose sessions have expired.
  void FenceAbsentWriters(FileId file);
  void NoteReturned(FileId file, ClientId client, bool was_known);
  static bool TellsOfObjects(const CommitRequest& request);
  std::optional<Failure> CheckGeneration(const CommitRequest& request, const Inode& inode) const;
  std::vector<NodeId> EmptyNodesOf(const Inode& inode, const Layout& layout) const;

  // ---- limits (state_limits.cc)
  Charge ChargeOf(FileId file, const Inode& inode) const;
  void ChargeForChanges();
  void ChargeForAll();
  // Maximum length of the file's inline content. Content that is already longer is kept.
  uint64_t InlineBytesMaxOf(const Inode& inode) const;
  std::optional<Failure> CheckInlineGrowth(const Inode& inode, uint64_t bytes) const;
  std::optional<Failure> CheckAttributeGrowth(FileId file, const Inode& inode,
                                              std::string_view name, uint64_t value_bytes) const;
  std::optional<Failure> CheckTextGrowth(uint32_t uid) const;
  std::vector<LimitStatus> ListLimits() const;

  // ---- queries over all files (state_scans.cc)
  bool CountUnstaged(UnstagedFiles& unstaged, FileId file, const Inode& inode) const;
  void ScanFile(FileScan& scan, FileId file, const Inode& inode) const;
  void ScanFiles(FileScan& scan, size_t& steps) const;
  bool ScanNames(FileScan& scan, FileId id, const Directory& directory, size_t& steps) const;
  void ScanLikelyDirectories(FileScan& scan, size_t& steps) const;
  void ScanAllDirectories(FileScan& scan, size_t& steps) const;

  // ---- space (state_space.cc)
  Reply Apply(const GrantRequest& request);
  Reply Apply(const StatFilesystemRequest& request);
  uint64_t FreeBytes(const Node& node) const;
  ClusterView ViewFor(const Session* session, bool count_grants_of_others) const;
  void ReportConsumed(Session& session, NodeId node, uint64_t bytes);
  void GiveBack(Session& session, NodeId node, uint64_t bytes);
  bool RecallGrants(Node& node, ClientId except);
  void RetrySpaceWaiters(bool only_expired);

  // ---- extended attributes (state_xattrs.cc)
  Reply Apply(const GetXattrRequest& request);
  Reply Apply(const ListXattrsRequest& request);
  Reply Apply(const SetXattrRequest& request);
  Reply Apply(const RemoveXattrRequest& request);
  Reply SetHint(FileId file, Inode& inode, const AttributeName& name,
                const SetXattrRequest& request);
  Reply RemoveHint(FileId file, Inode& inode, const AttributeName& name, bool pinned);
  // `pinned`: the requester's kernel has the file's object open.
  std::optional<Failure> PrepareLayoutHint(FileId file, Inode& inode, std::string_view hint,
                                           bool pinned);
  bool IsOpenForWritingElsewhere(FileId file) const;
  bool IsKnownElsewhere(FileId file, const Inode& inode) const;
  bool IsEffective(const Inode& inode, std::string_view hint, const std::string& value) const;
  void StoreHints(FileId file, Inode& inode, const Hints& hints);
  Reply ReadOnlyAttribute(FileId file, const Inode& inode, std::string_view name) const;
  std::string HintsJsonOf(const Inode& inode) const;
  std::vector<std::string> NodeNamesOf(const Inode& inode) const;
  Result<std::string> ChunkLocationsOf(const Inode& inode) const;
  std::string LayoutJsonOf(FileId file, const Inode& inode) const;
  std::string CopiesJsonOf(FileId file, const Inode& inode) const;
  Hints DecodedHints(const Inode& inode) const;
  const std::string& NameOf(NodeId node) const;
  std::string NamesOf(const std::vector<NodeId>& nodes) const;

  // ---- hints for files that do not exist yet, and groups (state_hints.cc)
  Hints HintsAtMake(FileId parent, std::string_view name, FileType type, uint32_t maker) const;
  // As HintsAtMake, with the request's own hints on top. Precondition: CheckMake accepted the
  // request.
  Hints HintsOfMake(const MakeRequest& request) const;
  FileId DirectoryOf(const Inode& inode) const;
  std::vector<ExplainedHint> ExplainedHintsOf(const Inode& inode) const;
  void NameOrigins(std::vector<ExplainedHint>& hints) const;
  // For replicas=auto, adds how many copies a file of this size gets.
  void NoteCopies(std::vector<ExplainedHint>& hints, std::optional<uint64_t> size_bytes) const;
  // Returns the path without a trailing "/", so that a name can be appended; the root is "". A path
  // longer than the kernel accepts is shortened to its end, after "/...".
  std::string PathOf(FileId directory) const;
  // Mounts must not defer creations where a rule may settle the placement. These recall the
  // delegations of such directories: all below `within`, or those where one rule settles placement
  // (returns true if there are none).
  void RecallRuledDelegations(FileId within);
  bool RecallDelegationsUnder(uint64_t rule);
  void AnswerAdmin(Status status, uint64_t rule = 0, bool settled = true);
  Status StillRestarting() const;
  void RemoveRule(const HintRule& rule);
  // PermissionDenied if the run has begun and a user other than its owner asks.
  Status CheckRunOwner(std::string_view run, Asker asker) const;
  // The group of a bound file; empty if it has none. Valid until the next call of HintsOf.
  std::string_view GroupOf(const Inode& inode) const;
  void CountGroups();

  // ---- lifetimes (state_lifetimes.cc)
  // Called when a file gets its hints. `name` is empty if unknown.
  void FollowLifetime(FileId file, const Inode& inode, std::string_view name);
  void ForgetLifetime(FileId file);
  void ForgetReaders(FileId file, Lifetime& lifetime);
  void ContentChanged(FileId file);
  bool CountsReaders(FileId file) const;
  void FinishLifetimes();
  void SetReader(FileId file, Lifetime& lifetime, uint64_t reader, bool counts);
  void StopWaiting(FileId file, uint64_t reader);
  void NoteRead(FileId file, std::string_view task);
  void MarkDue(FileId file, Lifetime& lifetime);
  void RecheckDue(FileId file);
  void NoteHolder(FileId file, ClientId client, bool holds_open);
  void CheckDue();
  // If no client is known to have the file open, asks those that may have.
  bool MayReclaim(FileId file);
  bool FindName(FileId file);

  // ---- staging (state_staging.cc)
  StageOutcome Stage(const StagedFile& staged);
  bool IsStaged(FileId file, const Inode& inode) const;
  void ForgetStaged(FileId file);
  void NoteWriter(Session& session, FileId file);

  // ---- locks and other requests (state_envelopes.cc)
  Reply Apply(const GetLockRequest& request);
  Reply Apply(const SetLockRequest& request);
  Reply Apply(const CancelLockRequest& request);
  Reply Apply(const FileIdRangeRequest& request);
  Reply Apply(const ForgetRequest& request);
  Reply Apply(const RecallDoneRequest& request);
  void AnswerLocks(const std::vector<LockTable::Waiting>& waiting, const Reply& reply);

  // ---- copies: wanted copies, and the nodes that hold them (state_copies.cc)
  void ReviewCopiesLater(FileId file, const Inode& inode);
  void RunCopyReviews();
  void ReviewCopies(FileId file);
  // Examines all files, some thousand per step.
  void StartCopyScan();
  void ContinueCopyScan();
  bool PromoteCopies(FileId file, Inode& inode);
  bool PlanCells(FileId file, Inode& inode, uint32_t wanted);
  bool DropCells(FileId file, Inode& inode, size_t segment, uint32_t wanted);
  bool HasEnoughHolders(const FileBytes& bytes, size_t segment, uint32_t wanted) const;
  bool AddCells(FileId file, Inode& inode, size_t segment, uint32_t wanted);
  CopiesPlan PlanOf(FileId file, const Inode& inode, size_t segment, uint32_t wanted) const;
  Status CheckStrictCopies(const Inode& inode, const EffectiveHints& hints,
                           const Segment& segment) const;
  // Returns the number of copies that a close waits for if it asked for `asked`.
  uint32_t CopiesAwaited(FileId file, const Inode& inode, uint32_t asked) const;
  // Carries over the copies of segments that `bytes` still has unchanged.
  void KeepCells(FileBytes& bytes, const std::vector<Segment>& before);
  // Returns the copies that `replicas` asks for: a number, or the current choice for auto.
  uint32_t CopiesOf(FileId file, const Inode& inode, const EffectiveHints& hints) const;
  uint32_t CopiesIfAllAnswer(FileId file, const Inode& inode) const;
  CopiesChoice ChooseCopiesOf(FileId file, const Inode& inode, const EffectiveHints& hints) const;
  bool IsReachable(NodeId node) const;
  static bool IsLost(const FileBytes& bytes, NodeId node);
  // Returns true if the stripe position holds a byte of a file of this size. The first position
  // always counts, so that an empty file has copies too.
  static bool HasBytes(const FileBytes& bytes, uint64_t size_bytes, size_t segment,
                       size_t position);
  bool Stays(NodeId node) const;
  bool IsValid(const Inode& inode, size_t segment, size_t cell) const;
  bool MustCopy(const Inode& inode, size_t segment, size_t cell) const;
  std::set<NodeId> NamedNodes(const FileBytes& bytes) const;
  void FindLeftovers(FileId file, FileBytes& bytes);
  void DropLeftovers(FileId file);
  std::vector<NodeId> StillOrdered(FileId file) const;
  std::vector<NodeId> NodesWithOlderBytes(const Inode& inode, uint64_t offset) const;
  Layout ReaderLayoutOf(const Inode& inode) const;
  std::optional<NodeId> UncoveredNode(const Inode& inode, bool count_silent) const;
  static bool IsFirstCopyLost(const Inode& inode);
  uint32_t ValidCopies(const Inode& inode) const;
  void DescribeCopies(FileId file, const Inode& inode, FileStatus& status) const;

  // ---- objects with bytes that are no longer their file's (state_uncut.cc)
  std::optional<Failure> MayLayOutAnew(const SetAttributesRequest& request, const Inode& inode);
  void LayOutAnewIfGone(FileId file, Inode& inode);
  void NoteUncut(FileId file, Inode& inode, const std::vector<NodeId>& nodes);
  static bool MayHoldOtherBytes(const FileBytes& bytes, NodeId node,
                                const std::vector<NodeId>& first);
  void ForgetCommittedBeyondEnd(Inode& inode);
  bool IsUncutDrop(FileId file, NodeId id) const;
  void NoteFurtherCopiesUncut(Inode& inode);
  static std::vector<NodeId> UncutNodesOf(const Inode& inode);
  bool AwaitsDrops(FileId file, const Inode& inode) const;
  void ForgetUncut(Node& node, FileId file);
  void OrderUncutDrops(Node& node);
  void TakeUncut(Node& node, bool new_incarnation);
  void NoteDropsDone(Node& node, uint64_t drops_done);

  // ---- copies: validity (state_copy_truth.cc)
  void RaiseVersion(FileId file, Inode& inode, bool committed);
  // Must be called before any client is given the right to store in the file.
  void MarkMayDiffer(FileId file);
  // A client that had the file open for writing is gone, or its commit was rejected.
  void EndUncommitted(FileId file);
  void EndMarkedOpens();
  static bool HasUnmarkedCopies(const Inode& inode);
  static bool HoldsLastCommit(const Inode& inode, const CopyCell& cell);
  static bool IsDamaged(const FileBytes& bytes, NodeId node);
  std::optional<NodeId> DamagedAt(const Inode& inode) const;
  std::string DamageOf(const Inode& inode) const;
  void NoteDamage(NodeId node, FileId file);
  void NoteHealed(NodeId node, FileId file);
  void ExplainCopies(FileId file, const Inode& inode, AwaitCopiesReply& reply) const;

  // ---- copies: orders, reports, and waiters (state_copy_orders.cc)
  void StartCopy(NodeId target, const std::map<NodeId, CopyOrder>& orders);
  void OrderCopies(FileId file, const Inode& inode, bool eagerly);
  bool MayOrderCopy(FileId file, const Inode& inode, NodeId target, bool follow);
  bool Answers(NodeId node) const;
  // Returns the nodes on whose hosts the file is open for writing.
  std::set<NodeId> WritersOf(FileId file) const;
  struct CopyPlace {
    size_t segment = 0;
    size_t cell = 0;
    NodeId current{};  // The node it is fetched from now.
    NodeId avoided{};  // The node it could not be fetched from.
    bool follow = false;
  };
  std::optional<size_t> SuccessorOf(FileId file, const Inode& inode, CopyPlace place, bool gone);
  NodeId SourceFor(const Inode& inode, const CopyPlace& place,
                   const std::set<NodeId>& copying) const;
  void FillSources(const Inode& inode, NodeId target, const std::set<NodeId>& copying,
                   CopyOrder& order) const;
  void EndCopyTask(FileId file, NodeId node);
  void ForgetCopies(FileId file);
  void ForgetCopiesBy(NodeId node);
  void FinishCopy(FileId file, Inode& inode, NodeId node, const CopyTask& task,
                  const CopyReport& report);
  void FailCopy(FileId file, NodeId node, const CopyReport& report);
  void RetryCopies(FileId file, Time at);
  Reply Apply(const AwaitCopiesRequest& request);
  bool MayGetCopy(FileId file, NodeId node) const;
  AwaitCopiesReply CopiesReply(FileId file, const Inode& inode) const;
  bool IsAnyCopyWaiterDue(const std::vector<Waiter>& waiters);
  void AnswerCopyWaiters(FileId file, bool only_expired);
  void CopiesTick();

  // ---- nodes (state_nodes.cc)
  void RefuseNode(const std::string& name, std::string message);
  void BeginEpoch(Node& node);
  void NoteStall(Duration time);
  Time ListedAfter(const Node& node) const;
  void LoseUncommittedHole(NodeId id, FileId file, Inode& inode);
  void LoseObjectsOf(NodeId node, const std::set<FileId>& present, Time listed_after);
  void LoseUncommittedOf(const Node& node);
  void LoseStoresOn(NodeId node, FileId file, Inode& inode);
  void LoseStoresOnEmptyNodes(FileId file, Inode& inode);
  void ForgetWhoCameEmpty();
  void SetNodeState(Node& node, NodeState state);
  void PushNodes();  // Sends all nodes to all clients.

 public:
  struct RecoveryRules;  // Rules for state that may have been forgotten (state_recovery.h).

 private:
  Status MayDrain(const Node& node) const;
  Node* FindNode(NodeId node);
  const Node* FindNode(NodeId node) const;
  NodeId NodeOfSession(const Session& session) const;
  void SendOrder(NodeId node, NodeOrder order);
  void OrderDrop(const FileBytes& bytes, FileId file);
  Node::UncutDrop OrderUncutDrop(Node& node, FileId file, const FileBytes& bytes);
  void SendDrops();

  // ---- the durable image (state_load.cc)
  Status LoadInode(FileId file, const InodeRecord& record);
  Status LoadRule(uint64_t number, std::string_view key, std::string_view value);
  Status LoadSession(ClientId client, std::string_view key, std::string_view value);
  // Loads records whose keys are not one number: the cluster's own, groups, workflows.
  Status LoadNamed(std::string_view key, std::string_view value);
  Status LoadOwner(std::string_view key, std::string_view value);
  void NoteRefusedHint(std::string_view whose, const HintValue& hint);
  Status LoadNode(uint64_t number, std::string_view key, std::string_view value);
  Status CheckTree();
  Status LinkEntries();
  InodeRecord RecordOf(FileId file, const Inode& inode) const;
  void WriteCluster();
  void WriteNode(const Node& node);
  void WriteWriterBounds(FileId file);

  FileStatus StatusOf(FileId file, const Inode& inode, std::string path) const;
  // `path` is absolute. NotFound names the first missing component. `deepest`, if given, is set to
  // the last directory found on the way.
  Result<FileId> FileAt(std::string_view path, FileId* deepest = nullptr) const;

  Inode* Find(FileId file);
  const Inode* Find(FileId file) const;
  Directory* FindDirectory(FileId file);
  const Directory* FindDirectory(FileId file) const;
  std::optional<FileId> ChildOf(FileId parent, std::string_view name) const;
  Session* FindSession(ClientId client);
  Session& actor() { return *actor_; }

  // ---- constant
  const ManagerOptions options_;

  // ---- totals; they must outlive what contributes to them
  uint64_t waiting_bytes_ = 0, reply_log_bytes_ = 0;

  // ---- durable
  ClusterRecord cluster_;
  bool cluster_loaded_ = false, image_found_ = false, loaded_ = false;
  absl::btree_map<FileId, std::unique_ptr<Inode>> inodes_;
  absl::btree_map<FileId, std::unique_ptr<Directory>> directories_;
  absl::btree_map<FileId, std::string> symlinks_;
  std::map<FileId, FileAttributes> xattrs_;
  std::map<NodeId, Node> nodes_;
  std::map<std::string, NodeId, std::less<>> node_names_;
  std::map<ClientId, Session> sessions_;
  ReplyLogs reply_logs_;
  std::map<FileId, Uncommitted> uncommitted_;
  // Files that were removed because their maker's session ended, and are still open somewhere.
  // Nothing can be committed to them: the bytes would have no name.
  std::set<FileId> abandoned_;
  CountersRecord counters_;
  HintRules rules_;
  Recovery recovery_;
  Groups groups_;
  std::map<FileId, Lifetime> lifetimes_;  // Files with one name and a lifetime other than `keep`.
  Runs runs_;
  absl::btree_map<FileId, uint64_t> staged_;  // The data_version that was copied out.

  // ---- not durable
  Quotas quotas_;
  std::vector<FileId> recharges_;  // Changed since the last request's charge.
  SetStorePressure store_pressure_;
  std::vector<std::string> load_log_;  // Messages from loading, for the first step's log.
  TextPool texts_;
  // Parsed hints by text number. Most files share a few texts.
  struct KnownHints {
    std::string text;
    std::optional<EffectiveHints> hints;
  };
  mutable std::array<KnownHints, 64> known_hints_;
  LockTable locks_;
  std::map<FileId, std::set<ClientId>> write_opens_;
  // Objects that nodes registered as shorter than their files require, and their sizes.
  std::map<NodeId, std::map<FileId, uint64_t>> cut_objects_;
  WriterFences fences_;
  // Files without names, and the clients that have them open.
  std::map<FileId, std::set<ClientId>> orphans_;
  std::set<FileId> due_;         // To be removed once no client has them open.
  std::set<FileId> due_checks_;  // Due files that a client may have closed.
  // By the directory whose delegation is being recalled.
  std::map<FileId, std::set<FileId>> due_delegated_;
  std::map<uint64_t, std::set<FileId>> waiting_reads_;  // By reader that does not count yet.
  // Versions being staged while mounts are asked whether they write.
  std::map<FileId, uint64_t> staging_;
  Time users_recall_at_;  // No user may recall delegations before this.
  std::map<FileId, Freeze> freezes_;
  std::map<FileId, Time> lingering_;  // Orphans that are kept until then.
  Interests interests_;
  std::map<FileId, Delegation> delegations_;
  std::map<FileId, Time> contended_;  // Directories that are not delegated before then.
  std::map<FileId, std::set<std::pair<ClientId, RecallId>>> recalls_by_file_;
  uint64_t last_recall_ = 0;
  std::map<FileId, std::deque<Waiter>> parked_;
  std::deque<Waiter> ready_;
  std::deque<Waiter> grace_queue_;
  std::deque<Waiter> space_queue_;
  CopyWork copy_;
  CopiesForecast copies_forecast_;
  bool space_changed_ = false;
  std::optional<Time> grace_end_;
  Time stall_begin_, stall_end_;  // The latest stalls, merged if close together.
  Time next_tick_ = kNever;

  // ---- valid during one step
  static constexpr Time kNever{INT64_MAX};
  Effects effects_;
  Time now_{0};
  Session* actor_ = nullptr;
  RequestId actor_request_;
  size_t request_index_ = 0;
  bool last_in_envelope_ = false;
  bool only_in_envelope_ = false;
  bool may_wait_for_space_ = true;
  std::optional<Pending::Stage> wait_;  // Set if the current request is to be answered later.
  std::vector<std::pair<size_t, FileId>> promised_;
  bool changed_ = false;
  std::set<FileId> touched_;
  // Files of which only the layout, or the set of permitted writers, changed. True: the reply waits
  // for these recalls.
  std::map<FileId, bool> access_changed_;
  std::set<FileId> orphan_checks_;
  std::set<FileId> dirty_;
  bool cluster_dirty_ = false, recovery_dirty_ = false;
  std::map<NodeId, DropObjectsOrder> drops_;  // Each node gets one order a step.
};

Failure Refuse(StatusCode code, ErrorReason reason, std::string message);
// `name` refers to `found` (FileId{}: nothing) instead of `meant`.
Failure AnotherFile(std::string_view name, FileId found, FileId meant);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STATE_H_
