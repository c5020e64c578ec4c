// The bytes of files: opening, binding, extending, committing.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"
#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kSegmentsMax = 1024;
constexpr size_t kReasonBytesMax = 1000;

}  // namespace

std::optional<Failure> ManagerCore::State::CheckRegular(FileId file) const {
  const Inode* inode = Find(file);
  if (!inode)
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", file.value));
  if (inode->type == FileType::kRegular) return std::nullopt;
  const bool directory = inode->type == FileType::kDirectory;
  return Refuse(StatusCode::kFailedPrecondition,
                directory ? ErrorReason::kIsDirectory : ErrorReason::kInvalid,
                fmt::format("file {} is not a regular file and has no bytes", file.value));
}

// ---- layout, hints and access

HintDefaults ManagerCore::State::Defaults() const {
  return {options_.default_placement, options_.chunk_bytes, options_.stripe_width};
}

const EffectiveHints& ManagerCore::State::HintsOf(const Inode& inode) const {
  const std::string& text = texts_.TextOf(inode.hints);
  KnownHints& known = known_hints_[inode.hints % known_hints_.size()];
  if (!known.hints || known.text != text) known = {text, Evaluate(DecodedHints(inode), Defaults())};
  return *known.hints;
}

uint64_t ManagerCore::State::RunChunksOf(const Inode& inode) const {
  const uint64_t run_chunks = HintsOf(inode).run_chunks;
  if (!inode.bytes || inode.bytes->segments.empty()) return run_chunks;
  // A file bound before it had runs keeps its chunk size, whatever its hint says.
  const uint64_t run_bytes = inode.bytes->chunk_bytes;
  return run_bytes % run_chunks == 0 && run_bytes / run_chunks >= kChunkBytesMin ? run_chunks : 1;
}

FileBytes& ManagerCore::State::BytesOf(Inode& inode) const {
  if (!inode.bytes) inode.bytes = std::make_unique<FileBytes>();
  return *inode.bytes;
}

void ManagerCore::State::SetReason(FileBytes& bytes, std::string_view reason) {
  const uint32_t held = texts_.HoldIfRoom(reason.substr(0, kReasonBytesMax), 0);
  texts_.Drop(bytes.reason);
  bytes.reason = held;
}

Layout ManagerCore::State::LayoutOf(const Inode& inode) const {
  Layout layout;
  if (inode.bytes && !inode.bytes->segments.empty()) {
    layout.chunk_bytes = inode.bytes->chunk_bytes;
    layout.segments = inode.bytes->segments;
    layout.reason = texts_.TextOf(inode.bytes->reason);
  } else {
    layout.chunk_bytes = HintsOf(inode).run_bytes();
  }
  return layout;
}

std::optional<NodeId> ManagerCore::State::LostAt(const Inode& inode) const {
  return UncoveredNode(inode, /*count_silent=*/true);
}

DataAccess ManagerCore::State::AccessTo(FileId file, const Inode& inode, bool may_write) {
  DataAccess access;
  if (may_write) MarkMayDiffer(file);
  const Freeze* freeze = FreezeOf(file);
  access.frozen = freeze && freeze->holder != actor().start.client;
  // Writers store in the first copy only.
  access.layout = may_write ? LayoutOf(inode) : ReaderLayoutOf(inode);
  access.may_write = may_write;
  access.expires = now_ + kCapabilityLifetime;
  if (inode.bytes) {
    access.generation = inode.bytes->generation;
    access.kept_since = fences_.KeptSince(file, actor().start.client, inode.bytes->kept_since);
    access.empty_nodes = EmptyNodesOf(inode, access.layout);
    access.is_inline = inode.bytes->is_inline;
    access.inline_valid_bytes = inode.bytes->inline_valid_bytes;
    // Other copies do not help a client that stores in the first copy.
    access.lost = UncoveredNode(inode, /*count_silent=*/false).has_value() ||
                  (may_write && IsFirstCopyLost(inode));
  }
  const EffectiveHints hints = HintsOf(inode);
  if (hints.replicas != 1) {
    uint32_t copies = CopiesOf(file, inode, hints);
    // The actual number is known at the close; the closer asks for it then (CopiesAwaited).
    if (hints.replicas == 0)
      copies = std::max(copies, MostCopies(copies_forecast_, CountStayingNodes()));
    access.copied_eagerly = hints.copied_eagerly;
    access.close_copies = hints.close_copies == 0 ? copies : std::min(hints.close_copies, copies);
  }
  const bool may_be_inline = !access.layout.bound() && hints.may_be_inline;
  access.inline_bytes_max = may_be_inline ? InlineBytesMaxOf(inode) : 0;
  return access;
}

// ---- opening

Reply ManagerCore::State::Apply(const OpenRequest& request) {
  if (auto failure = CheckRegular(request.file)) return *std::move(failure);
  Session& session = actor();
  Inode& inode = *Find(request.file);
  // If the first copy's node is gone, another copy replaces it before anybody writes.
  if (inode.bytes && !inode.bytes->copies.empty()) {
    ReviewCopies(request.file);
    // The requester, too, may still use the previous layout. Objects are dropped once all clients
    // have let go of it.
    if (access_changed_.contains(request.file))
      SendRecall(session, request.file, RecallKind::kAccess);
  }
  const auto lost = LostAt(inode);
  if (lost && !request.write)
    return Refuse(StatusCode::kDataLoss, ErrorReason::kNodeLost,
                  fmt::format("file {} had bytes only on node {}, which has lost them or is "
                              "silent; run task '{}', which wrote the file, again",
                              request.file.value, NameOf(*lost), texts_.TextOf(inode.task)));
  if (request.write) {
    LayOutAnewIfGone(request.file, inode);
    NoteWriter(session, request.file);
    ReviewCopiesLater(request.file, inode);
    const std::string_view task = std::string_view(request.task).substr(0, kTaskBytesMax);
    if (!task.empty() && task != texts_.TextOf(inode.task)) {
      const uint32_t held = texts_.HoldIfRoom(task, inode.uid);
      texts_.Drop(inode.task);
      inode.task = held;
      dirty_.insert(request.file);
    }
  }
  OpenReply reply;
  reply.attributes = EntryWithInterest(request.file).attributes;
  reply.access = AccessTo(request.file, inode, request.write);
  reply.counts_readers = CountsReaders(request.file);
  if (const auto orphan = orphans_.find(request.file); orphan != orphans_.end()) {
    // The holder's answer to a recall says whether it still has the file open, and it reports a
    // later close. An answer that is already under way may be older than this open.
    const ClientId client = session.start.client;
    const bool uncertain = IsRecalledFrom(client, request.file);
    if (orphan->second.insert(client).second || uncertain) AskHolder(session, request.file);
  }
  return reply;
}

Reply ManagerCore::State::Apply(const ReleaseRequest& request) {
  Session& session = actor();
  if (request.reader) {
    NoteRead(request.file, *request.reader);
    return EmptyReply{};
  }
  if (request.uncommitted && session.write_opens.contains(request.file)) {
    EndUncommitted(request.file);
    SendRecall(session, request.file, RecallKind::kFile);  // It may have asked meanwhile.
  }
  CloseWrite(session, request.file);
  if (request.holds_open) return EmptyReply{};
  NoteHolder(request.file, session.start.client, false);
  if (const auto orphan = orphans_.find(request.file); orphan != orphans_.end()) {
    orphan->second.erase(session.start.client);
    orphan_checks_.insert(request.file);
  }
  return EmptyReply{};
}

void ManagerCore::State::CloseWrite(Session& session, FileId file) {
  session.write_opens.erase(file);
  fences_.NoteClosed(file, session.start.client);
  const auto opens = write_opens_.find(file);
  if (opens == write_opens_.end()) return;
  opens->second.erase(session.start.client);
  if (opens->second.empty()) write_opens_.erase(opens);
  RecheckDue(file);
  if (const Inode* inode = Find(file)) ReviewCopiesLater(file, *inode);
  if (orphans_.contains(file)) orphan_checks_.insert(file);
}

// ---- binding

// If every node gets a file of an untagged placement before its close returns, the first copy is
// best on the writer's own node: its link then carries the file once, to the first node of a chain.
// With a stripe its link would carry all parts except its own, and then the others' parts back.
bool ManagerCore::State::GoesOutToAll(const EffectiveHints& hints) const {
  if (hints.settles_placement || hints.width_asked || !hints.copied_eagerly ||
      hints.close_copies != 0)
    return false;
  const uint32_t nodes = CountStayingNodes();
  const uint32_t copies = hints.replicas != 0
                              ? hints.replicas
                              : ChooseCopies(copies_forecast_, nodes, std::nullopt).copies;
  return nodes > 1 && copies >= nodes;
}

Result<PlacementPlan> ManagerCore::State::PlaceSegment(const Inode& inode,
                                                       const EffectiveHints& hints,
                                                       PlacementRequest request) const {
  const size_t segments = inode.bytes ? inode.bytes->segments.size() : 0;
  request.seed = HashCombine(inode.placement_seed, segments);
  request.needed_bytes =
      std::clamp(request.needed_bytes, kRoomBytesMin, std::max(hints.chunk_bytes, kRoomBytesMin));
  request.stripe_width = hints.stripe_width;
  request.strict = hints.strict;
  request.exact_width = hints.strict && hints.width_asked;
  request.fallback = options_.default_placement;
  request.anchor = groups_.AnchorOf(GroupIn(hints.placement));
  if (actor_) request.writer_node = NodeOfSession(*actor_);
  if (GoesOutToAll(hints)) {
    request.strict = true;  // On the writer's node, or as any other file.
    if (auto plan = Place("local", ViewFor(actor_, false), request); plan.ok()) return plan;
    request.strict = hints.strict;
  }
  auto plan = Place(hints.placement, ViewFor(actor_, false), request);
  if (plan.ok()) return plan;
  // Unused grants of other mounts can be recalled.
  return Place(hints.placement, ViewFor(actor_, true), request);
}

Status ManagerCore::State::Bind(FileId file, Inode& inode, uint64_t first_bytes) {
  const EffectiveHints hints = HintsOf(inode);
  MOSA_ASSIGN_OR_RETURN(
      PlacementPlan plan,
      PlaceSegment(inode, hints,
                   {.begin = 0, .needed_bytes = first_bytes, .excluded = StillOrdered(file)}));
  MOSA_RETURN_IF_ERROR(CheckStrictCopies(inode, hints, plan.segment));
  FileBytes& bytes = BytesOf(inode);
  groups_.Join(GroupIn(hints.placement));
  if (plan.anchor) groups_.SetAnchor(GroupIn(hints.placement), *plan.anchor, effects_.writes);
  bytes.chunk_bytes = hints.run_bytes();
  bytes.segments = {std::move(plan.segment)};
  SetReason(bytes, plan.reason);
  FenceWriters(file, inode, {});
  TouchAccess(file, /*waits=*/false);  // Nobody can have stored anything yet.
  ReviewCopiesLater(file, inode);
  return OkStatus();
}

// Makes the file one that was never written to. Precondition: it has no bytes. Truncations reach
// the first copies only; all objects that may not be empty are dropped before the file gets bytes
// on their nodes again. Empty ones are dropped with the file.
void ManagerCore::State::Unbind(FileId file, Inode& inode, FirstObjects first_objects) {
  FileBytes& bytes = *inode.bytes;
  if (!groups_.empty()) groups_.Leave(GroupOf(inode), effects_.writes);
  const std::vector<NodeId> first = LayoutOf(inode).Nodes();
  for (const NodeId node : NamedNodes(bytes)) ObjectOn(bytes, node);
  std::vector<NodeId> uncut;
  for (const NodeObject& object : bytes.objects)
    if (first_objects == FirstObjects::kNotCut || object.holds != ObjectHolds::kOwn ||
        !std::binary_search(first.begin(), first.end(), object.node))
      uncut.push_back(object.node);
  bytes.segments.clear();
  bytes.copies.clear();
  ForgetCopies(file);
  bytes.chunk_bytes = 0;
  freezes_.erase(file);
  SetReason(bytes, "");
  FenceWriters(file, inode, {});
  NoteUncut(file, inode, uncut);
  Touch(file);
}

const NodeObject* ManagerCore::State::FindObject(const FileBytes& bytes, NodeId node) {
  const auto at = std::lower_bound(bytes.objects.begin(), bytes.objects.end(), node,
                                   [](const NodeObject& o, NodeId id) { return o.node < id; });
  return at != bytes.objects.end() && at->node == node ? &*at : nullptr;
}

// Returns the record of the file's object on `node`; adds an empty one if there is none.
NodeObject& ManagerCore::State::ObjectOn(FileBytes& bytes, NodeId node) {
  const auto at = std::lower_bound(bytes.objects.begin(), bytes.objects.end(), node,
                                   [](const NodeObject& o, NodeId id) { return o.node < id; });
  if (at != bytes.objects.end() && at->node == node) return *at;
  return *bytes.objects.insert(at, {node, false, 0});
}

// Returns true if bytes were committed there that are not copies.
bool ManagerCore::State::HasCommitted(const NodeObject& object) {
  return object.lost || (object.allocated_bytes > 0 && object.holds != ObjectHolds::kCopies);
}

// Copies of what is first on other nodes may come into the object, or stay there.
void ManagerCore::State::NoteCopies(NodeObject& object) {
  if (object.holds == ObjectHolds::kOwn)
    object.holds = HasCommitted(object) ? ObjectHolds::kBoth : ObjectHolds::kCopies;
}

Reply ManagerCore::State::Apply(const BindRequest& request) {
  if (auto failure = CheckRegular(request.file)) return *std::move(failure);
  Inode& inode = *Find(request.file);
  if (!inode.bytes || inode.bytes->segments.empty()) {
    if (AwaitsDrops(request.file, inode))
      return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                    fmt::format("nodes are dropping what file {} held: try again in a moment",
                                request.file.value));
    const Status bound = Bind(request.file, inode, request.first_bytes);
    if (!bound.ok())
      return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace, MessageOf(bound));
  }
  if (inode.bytes->is_inline) {
    // One client copies the inline content to the objects before anybody else stores there.
    if (auto failure = FreezeFor(request.file)) return *std::move(failure);
  }
  interests_.Add(actor(), request.file, inode);
  return BindReply{AccessTo(request.file, inode, true)};
}

// ---- making room elsewhere

Freeze* ManagerCore::State::FreezeOf(FileId file) {
  const auto freeze = freezes_.find(file);
  if (freeze == freezes_.end()) return nullptr;
  if (freeze->second.until >= now_) return &freeze->second;
  freezes_.erase(freeze);
  return nullptr;
}

std::optional<Failure> ManagerCore::State::FreezeFor(FileId file) {
  const ClientId asker = actor().start.client;
  const Freeze* freeze = FreezeOf(file);
  if (freeze && freeze->holder != asker)
    return Refuse(
        StatusCode::kAborted, ErrorReason::kBusy,
        fmt::format("another client is changing the layout of file {}: try again in a moment",
                    file.value));
  // A client asked for the same freeze may already have reported that its kernel has the file open.
  freezes_[file] = {asker, now_ + kFreezeMax, freeze && freeze->pinned};
  access_changed_[file] = true;
  return std::nullopt;
}

Reply ManagerCore::State::Apply(const FreezeRequest& request) {
  if (auto failure = CheckRegular(request.file)) return *std::move(failure);
  if (auto failure = FreezeFor(request.file)) return *std::move(failure);
  Inode& inode = *Find(request.file);
  interests_.Add(actor(), request.file, inode);
  return BindReply{AccessTo(request.file, inode, true)};
}

Reply ManagerCore::State::Apply(const RelocateRequest& request) {
  if (auto failure = CheckRegular(request.file)) return *std::move(failure);
  const Freeze* const held = FreezeOf(request.file);
  if (!held || held->holder != actor().start.client)
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("file {} is not frozen by this client, or its freeze expired after "
                              "{} s: freeze it and look again",
                              request.file.value, kFreezeMax.ns / 1'000'000'000));
  const Freeze freeze = *held;
  Inode& inode = *Find(request.file);
  const bool nothing = request.begin >= request.end;
  if (nothing || !inode.bytes || !inode.bytes->is_inline) freezes_.erase(request.file);
  if (nothing && freeze.cleans) BeginGeneration(request.file, inode);
  if (nothing) return BindReply{AccessTo(request.file, inode, true)};
  if (freeze.pinned)
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("file {} cannot continue on another node while another mount's "
                              "kernel has its object open: close it there, or free space",
                              request.file.value));
  Reply reply = Relocate(request, inode);
  const auto* const bind = std::get_if<BindReply>(&reply);
  if (bind != nullptr && !bind->older.empty())
    freezes_[request.file] = {freeze.holder, now_ + kFreezeMax, freeze.pinned, /*cleans=*/true};
  return reply;
}

// Returns " n1 n2", as far as a reason has room for it.
std::string ManagerCore::State::NamesOf(const std::vector<NodeId>& nodes) const {
  std::string names;
  for (const NodeId node : nodes)
    if (names.size() < kReasonBytesMax && FindNode(node)) names += " " + NameOf(node);
  return names;
}

Reply ManagerCore::State::Relocate(const RelocateRequest& request, Inode& inode) {
  const bool pages = request.begin % kSegmentUnit == 0 && request.begin < kFileBytesMax &&
                     (request.end == UINT64_MAX || request.end % kSegmentUnit == 0);
  if (!pages || !inode.bytes || inode.bytes->segments.empty())
    return Refuse(
        StatusCode::kInvalidArgument, ErrorReason::kInvalid,
        fmt::format("file {} has no bytes {} to {} that could move to another node as whole pages",
                    request.file.value, request.begin, request.end));
  FileBytes& bytes = *inode.bytes;
  if (bytes.segments.size() + 2 > kSegmentsMax)
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("file {} already has {} segments and can have no more: copy it to a "
                              "store with free space",
                              request.file.value, bytes.segments.size()));
  EffectiveHints hints = HintsOf(inode);
  if (hints.strict)
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("file {} has strict=1 and cannot continue on another node: no free "
                              "space on{}; free space there, or set strict to 0",
                              request.file.value, NamesOf(request.full)));
  hints.chunk_bytes = bytes.chunk_bytes;
  PlacementRequest wanted{
      .begin = request.begin, .needed_bytes = hints.chunk_bytes, .excluded = request.full};
  const std::vector<NodeId> ordered = StillOrdered(request.file);
  wanted.excluded.insert(wanted.excluded.end(), ordered.begin(), ordered.end());
  const size_t excluded = wanted.excluded.size();
  const std::vector<NodeId> older = NodesWithOlderBytes(inode, request.begin);
  wanted.excluded.insert(wanted.excluded.end(), older.begin(), older.end());
  auto plan = PlaceSegment(inode, hints, wanted);
  wanted.excluded.resize(excluded);
  if (!plan.ok()) plan = PlaceSegment(inode, hints, wanted);
  wanted.needed_bytes = 0;
  if (!plan.ok()) plan = PlaceSegment(inode, hints, wanted);
  if (!plan.ok() && !ordered.empty()) {
    // Only nodes with outstanding orders have room. These nodes refuse changes by an old order as
    // soon as a client stores there under the new layout.
    for (const NodeId node : ordered) EndCopyTask(request.file, node);
    wanted.excluded = request.full;
    const std::vector<NodeId> uncut = UncutNodesOf(inode);
    wanted.excluded.insert(wanted.excluded.end(), uncut.begin(), uncut.end());
    plan = PlaceSegment(inode, hints, wanted);
  }
  if (!plan.ok())
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace, MessageOf(plan.status()));
  std::vector<NodeId> unclean;
  for (const NodeId node : plan->segment.nodes)
    if (std::ranges::count(older, node) > 0 && std::ranges::count(request.cleaned, node) == 0)
      unclean.push_back(node);
  if (!unclean.empty()) return AskToClean(request.file, inode, std::move(unclean));
  Layout layout = LayoutOf(inode);
  // A node that no longer has any part of the file still has its object.
  for (const NodeId node : NamedNodes(bytes)) ObjectOn(bytes, node);
  if (plan->anchor) groups_.SetAnchor(GroupIn(hints.placement), *plan->anchor, effects_.writes);
  layout.Relocate(request.begin, request.end, std::move(plan->segment));
  const std::vector<Segment> before = std::exchange(bytes.segments, std::move(layout.segments));
  KeepCells(bytes, before);
  // Clients with a live session have let go of the previous layout, and have stored nothing in the
  // hole.
  BeginGeneration(request.file, inode);
  ReviewCopiesLater(request.file, inode);
  SetReason(bytes, fmt::format("{}; from byte {}: no room on{}", texts_.TextOf(bytes.reason),
                               request.begin, NamesOf(request.full)));
  TouchAccess(request.file, /*waits=*/false);  // Nobody has stored since the freeze.
  interests_.Add(actor(), request.file, inode);
  return BindReply{AccessTo(request.file, inode, true)};
}

// A node that has dropped its object refuses stores of that generation and older ones.
Reply ManagerCore::State::AskToClean(FileId file, Inode& inode, std::vector<NodeId> nodes) {
  BeginGeneration(file, inode);
  return BindReply{AccessTo(file, inode, true), std::move(nodes)};
}

// ---- committing

void ManagerCore::State::CommitTo(FileId file) {
  if (uncommitted_.erase(file) == 0) return;
  dirty_.insert(file);
  RecheckDue(file);
}

std::optional<Failure> ManagerCore::State::CheckCommit(const CommitRequest& request) {
  if (auto failure = CheckRegular(request.file)) return failure;
  if (abandoned_.contains(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} was removed, because its mount was silent for longer than "
                              "its lease before it had stored any of it: create it again",
                              request.file.value));
  const Inode& inode = *Find(request.file);
  if (request.size_bytes > kFileBytesMax)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                  fmt::format("a size of {} bytes exceeds the maximum of {}", request.size_bytes,
                              kFileBytesMax));
  const Freeze* freeze = FreezeOf(request.file);
  if (request.inline_moved && (!freeze || freeze->holder != actor().start.client))
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("moving the content of file {} into objects took more than {} s: "
                              "bind it and move it again",
                              request.file.value, kFreezeMax.ns / 1'000'000'000));
  if (auto failure = CheckGeneration(request, inode)) return failure;
  // A new version would outdate the copies that can replace what is lost.
  if (request.data_changed && TellsOfObjects(request) && IsFirstCopyLost(inode))
    return Refuse(StatusCode::kDataLoss, ErrorReason::kNodeLost,
                  fmt::format("a node has lost bytes of file {}, so what was written to it since "
                              "the last sync is not committed",
                              request.file.value));
  if (!request.inline_data) return std::nullopt;
  if (request.inline_data->size() > options_.inline_bytes_max)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  fmt::format("{} inline bytes exceed the maximum of {}",
                              request.inline_data->size(), options_.inline_bytes_max));
  if (inode.bytes && !inode.bytes->segments.empty())
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kInvalid,
        fmt::format("file {} has objects, so its bytes cannot be inline", request.file.value));
  // A hint may have been set after the client learned that the file may be inline.
  const bool is_inline = inode.bytes && inode.bytes->is_inline;
  if (!is_inline && !request.inline_data->empty() && !HintsOf(inode).may_be_inline)
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kInvalid,
        fmt::format("file {} has a hint that requires objects, so its bytes cannot be inline",
                    request.file.value));
  if (request.based_on_version && *request.based_on_version != inode.data_version)
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("file {} is now at version {}, not {}: apply the new bytes to that "
                              "version and try again",
                              request.file.value, inode.data_version, *request.based_on_version));
  return CheckInlineGrowth(inode, request.inline_data->size());
}

void ManagerCore::State::StoreInline(FileId file, Inode& inode, const CommitRequest& request) {
  const uint64_t valid = std::min<uint64_t>(request.inline_data->size(), inode.size_bytes);
  if (valid == 0) return DropInline(file, inode);
  FileBytes& bytes = BytesOf(inode);
  bytes.is_inline = true;
  bytes.inline_valid_bytes = valid;
  bytes.inline_node = NodeOfSession(actor());
  effects_.writes.Put(InlineDataKey(file), *request.inline_data);
}

void ManagerCore::State::DropInline(FileId file, Inode& inode) {
  if (!inode.bytes || !inode.bytes->is_inline) return;
  FileBytes& bytes = *inode.bytes;
  bytes.is_inline = false;
  bytes.inline_valid_bytes = 0;
  bytes.inline_node = kNoNode;
  effects_.writes.Delete(InlineDataKey(file));
}

Reply ManagerCore::State::Apply(const CommitRequest& request) {
  Session& session = actor();
  // The space is used whether or not the commit succeeds.
  for (const CommitRequest::NodeBytes& report : request.nodes)
    ReportConsumed(session, report.node, report.consumed_bytes);
  if (auto failure = CheckCommit(request)) {
    if (request.last_close) CloseWrite(session, request.file);
    if (request.data_changed) EndUncommitted(request.file);
    return *std::move(failure);
  }
  Inode& inode = *Find(request.file);
  const uint64_t size_before = inode.size_bytes;
  const bool only_closes =
      request.last_close && !uncommitted_.contains(request.file) && !request.data_changed &&
      !request.size_is_exact && request.size_bytes <= size_before && request.nodes.empty() &&
      !request.inline_data && !request.inline_moved && !request.modify_time && !request.access_time;
  if (only_closes) {
    CloseWrite(session, request.file);
    return AttributesReply{EntryWithInterest(request.file).attributes};
  }
  inode.size_bytes =
      request.size_is_exact ? request.size_bytes : std::max(inode.size_bytes, request.size_bytes);
  if (request.inline_data) {
    StoreInline(request.file, inode, request);
  } else if (inode.bytes && inode.bytes->is_inline) {
    if (request.inline_moved) {
      DropInline(request.file, inode);
    } else if (inode.size_bytes < inode.bytes->inline_valid_bytes) {
      inode.bytes->inline_valid_bytes = inode.size_bytes;
    }
  }
  if (request.inline_moved) freezes_.erase(request.file);
  if (inode.bytes) {
    FileBytes& bytes = *inode.bytes;
    const std::vector<NodeId> bound = LayoutOf(inode).Nodes();
    const bool is_current =
        !request.based_on_version || *request.based_on_version == inode.data_version;
    for (const CommitRequest::NodeBytes& report : request.nodes) {
      if (!std::binary_search(bound.begin(), bound.end(), report.node)) continue;
      NodeObject& object = ObjectOn(bytes, report.node);
      if (object.holds == ObjectHolds::kCopies && report.stored_nothing) continue;
      // A part that is not empty must not be taken for a hole when its node returns without it.
      const uint64_t least = report.at_least ? object.allocated_bytes : 0;
      if (is_current || report.allocated_bytes > 0)
        object.allocated_bytes = std::max(least, report.allocated_bytes);
      if (object.holds == ObjectHolds::kCopies) object.holds = ObjectHolds::kBoth;
    }
  }
  if (request.data_changed) RaiseVersion(request.file, inode, /*committed=*/!request.change_failed);
  if (request.modify_time) {
    // A file is never older than its creation, nor from the future: make and Snakemake rely on
    // this.
    inode.modify_time = std::clamp(*request.modify_time, std::min(inode.birth_time, now_), now_);
  } else if (!request.modify_time_stays &&
             (request.data_changed || inode.size_bytes != size_before)) {
    inode.modify_time = now_;
  }
  if (request.access_time) inode.access_time = std::clamp(*request.access_time, Time{0}, now_);
  inode.change_time = now_;
  CommitTo(request.file);
  ReviewCopiesLater(request.file, inode);
  if (request.last_close) CloseWrite(session, request.file);
  Touch(request.file);
  return AttributesReply{EntryWithInterest(request.file).attributes};
}

}  // namespace mosa::manager
