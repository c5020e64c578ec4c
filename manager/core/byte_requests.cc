#include "manager/core/byte_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr size_t kSegmentsMax = 1024;

}  // namespace

Reply ByteRequests::Apply(const OpenRequest& request) {
  if (auto failure = files_.CheckRegular(request.file)) return *std::move(failure);
  Session& session = *step_.actor;
  Inode& inode = *files_.Find(request.file);
  // If the first copy's node is gone, another copy replaces it before anybody writes.
  if (inode.bytes && !inode.bytes->copies.empty()) {
    copy_reviews_.Review(request.file);
    // The requester, too, may still use the previous layout. Objects are dropped once all clients
    // have let go of it.
    if (step_.access_changed.contains(request.file))
      recalls_.Send(session, request.file, RecallKind::kAccess);
  }
  const auto lost = copy_view_.LostAt(inode);
  if (lost && !request.write)
    return Refuse(StatusCode::kDataLoss, ErrorReason::kNodeLost,
                  fmt::format("file {} had bytes only on node {}, which has lost them or is "
                              "silent; run task '{}', which wrote the file, again",
                              request.file.value, nodes_.NameOf(*lost), texts_.TextOf(inode.task)));
  if (request.write) {
    placing_.LayOutAnewIfGone(request.file, inode);
    staging_.NoteWriter(session, request.file);
    copy_queue_.ReviewLater(request.file, inode);
    const std::string_view task = std::string_view(request.task).substr(0, kTaskBytesMax);
    if (!task.empty() && task != texts_.TextOf(inode.task)) {
      const uint32_t held = texts_.HoldIfRoom(task, inode.uid);
      texts_.Drop(inode.task);
      inode.task = held;
      step_.dirty.insert(request.file);
    }
  }
  OpenReply reply;
  reply.attributes = file_view_.EntryWithInterest(request.file).attributes;
  reply.access = file_view_.AccessTo(request.file, inode, request.write);
  reply.counts_readers = lifetimes_.CountsReaders(request.file);
  if (const auto orphan = files_.orphans.find(request.file); orphan != files_.orphans.end()) {
    // The holder's answer to a recall says whether it still has the file open, and it reports a
    // later close. An answer that is already under way may be older than this open.
    const ClientId client = session.start.client;
    const bool uncertain = recalls_.IsRecalledFrom(client, request.file);
    if (orphan->second.insert(client).second || uncertain)
      recalls_.AskHolder(session, request.file);
  }
  return reply;
}

Reply ByteRequests::Apply(const ReleaseRequest& request) {
  Session& session = *step_.actor;
  if (request.reader) {
    lifetimes_.NoteRead(request.file, *request.reader);
    return EmptyReply{};
  }
  if (request.uncommitted && session.write_opens.contains(request.file)) {
    generations_.EndUncommitted(request.file);
    generations_.NoteWriterGone(request.file);
    recalls_.Send(session, request.file, RecallKind::kFile);  // It may have asked meanwhile.
  }
  generations_.CloseWrite(session, request.file);
  if (request.holds_open) return EmptyReply{};
  lifetimes_.NoteHolder(request.file, session.start.client, false);
  if (const auto orphan = files_.orphans.find(request.file); orphan != files_.orphans.end()) {
    orphan->second.erase(session.start.client);
    step_.orphan_checks.insert(request.file);
  }
  return EmptyReply{};
}

Reply ByteRequests::Apply(const BindRequest& request) {
  if (auto failure = files_.CheckRegular(request.file)) return *std::move(failure);
  Inode& inode = *files_.Find(request.file);
  if (!inode.bytes || inode.bytes->segments.empty()) {
    if (uncut_objects_.AwaitsDrops(request.file, inode))
      return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                    fmt::format("nodes are dropping what file {} held: try again in a moment",
                                request.file.value));
    const Status bound = placing_.Bind(request.file, inode, request.first_bytes);
    if (!bound.ok())
      return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace, MessageOf(bound));
  }
  if (inode.bytes->is_inline) {
    // One client copies the inline content to the objects before anybody else stores there.
    if (auto failure = FreezeFor(request.file)) return *std::move(failure);
  }
  interests_.Add(*step_.actor, request.file, inode);
  return BindReply{file_view_.AccessTo(request.file, inode, true)};
}

std::optional<Failure> ByteRequests::FreezeFor(FileId file) {
  const ClientId asker = step_.actor->start.client;
  const Freeze* freeze = files_.FreezeOf(file);
  if (freeze && freeze->holder != asker)
    return Refuse(
        StatusCode::kAborted, ErrorReason::kBusy,
        fmt::format("another client is changing the layout of file {}: try again in a moment",
                    file.value));
  // A client asked for the same freeze may already have reported that its kernel has the file open.
  files_.freezes[file] = {asker, step_.now + kFreezeMax, freeze && freeze->pinned};
  step_.access_changed[file] = true;
  return std::nullopt;
}

Reply ByteRequests::Apply(const FreezeRequest& request) {
  if (auto failure = files_.CheckRegular(request.file)) return *std::move(failure);
  if (auto failure = FreezeFor(request.file)) return *std::move(failure);
  Inode& inode = *files_.Find(request.file);
  interests_.Add(*step_.actor, request.file, inode);
  return BindReply{file_view_.AccessTo(request.file, inode, true)};
}

Reply ByteRequests::Apply(const RelocateRequest& request) {
  if (auto failure = files_.CheckRegular(request.file)) return *std::move(failure);
  const Freeze* const held = files_.FreezeOf(request.file);
  if (!held || held->holder != step_.actor->start.client)
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("file {} is not frozen by this client, or its freeze expired after "
                              "{} s: freeze it and look again",
                              request.file.value, kFreezeMax.ns / 1'000'000'000));
  const Freeze freeze = *held;
  Inode& inode = *files_.Find(request.file);
  const bool nothing = request.begin >= request.end;
  if (nothing || !inode.bytes || !inode.bytes->is_inline) files_.freezes.erase(request.file);
  if (nothing && freeze.cleans) generations_.BeginGeneration(request.file, inode);
  if (nothing) return BindReply{file_view_.AccessTo(request.file, inode, true)};
  if (freeze.pinned)
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("file {} cannot continue on another node while another mount's "
                              "kernel has its object open: close it there, or free space",
                              request.file.value));
  Reply reply = Relocate(request, inode);
  const auto* const bind = std::get_if<BindReply>(&reply);
  if (bind != nullptr && !bind->older.empty())
    files_.freezes[request.file] = {freeze.holder, step_.now + kFreezeMax, freeze.pinned,
                                    /*cleans=*/true};
  return reply;
}

Reply ByteRequests::Relocate(const RelocateRequest& request, Inode& inode) {
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
  EffectiveHints hints = hints_.HintsOf(inode);
  if (hints.strict)
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("file {} has strict=1 and cannot continue on another node: no free "
                              "space on{}; free space there, or set strict to 0",
                              request.file.value, nodes_.NamesOf(request.full)));
  hints.chunk_bytes = bytes.chunk_bytes;
  PlacementRequest wanted{
      .begin = request.begin, .needed_bytes = hints.chunk_bytes, .excluded = request.full};
  const std::vector<NodeId> ordered = copy_queue_.StillOrdered(request.file);
  wanted.excluded.insert(wanted.excluded.end(), ordered.begin(), ordered.end());
  const size_t excluded = wanted.excluded.size();
  const std::vector<NodeId> older = copy_view_.NodesWithOlderBytes(inode, request.begin);
  wanted.excluded.insert(wanted.excluded.end(), older.begin(), older.end());
  auto plan = placing_.PlaceSegment(inode, hints, wanted);
  wanted.excluded.resize(excluded);
  if (!plan.ok()) plan = placing_.PlaceSegment(inode, hints, wanted);
  wanted.needed_bytes = 0;
  if (!plan.ok()) plan = placing_.PlaceSegment(inode, hints, wanted);
  if (!plan.ok() && !ordered.empty()) {
    // Only nodes with outstanding orders have room. These nodes refuse changes by an old order as
    // soon as a client stores there under the new layout.
    for (const NodeId node : ordered) copy_queue_.EndTask(request.file, node);
    wanted.excluded = request.full;
    const std::vector<NodeId> uncut = UncutNodesOf(inode);
    wanted.excluded.insert(wanted.excluded.end(), uncut.begin(), uncut.end());
    plan = placing_.PlaceSegment(inode, hints, wanted);
  }
  if (!plan.ok())
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace, MessageOf(plan.status()));
  std::vector<NodeId> unclean;
  for (const NodeId node : plan->segment.nodes)
    if (std::ranges::count(older, node) > 0 && std::ranges::count(request.cleaned, node) == 0)
      unclean.push_back(node);
  if (!unclean.empty()) return AskToClean(request.file, inode, std::move(unclean));
  Layout layout = hints_.LayoutOf(inode);
  // A node that no longer has any part of the file still has its object.
  for (const NodeId node : NamedNodes(bytes)) ObjectOn(bytes, node);
  if (plan->anchor)
    groups_.SetAnchor(GroupIn(hints.placement), *plan->anchor, step_.effects.writes);
  layout.Relocate(request.begin, request.end, std::move(plan->segment));
  const std::vector<Segment> before = std::exchange(bytes.segments, std::move(layout.segments));
  KeepCells(bytes, before);
  // Clients with a live session have let go of the previous layout, and have stored nothing in the
  // hole.
  generations_.BeginGeneration(request.file, inode);
  copy_queue_.ReviewLater(request.file, inode);
  hints_.SetReason(bytes, fmt::format("{}; from byte {}: no room on{}", texts_.TextOf(bytes.reason),
                                      request.begin, nodes_.NamesOf(request.full)));
  step_.TouchAccess(request.file, /*waits=*/false);  // Nobody has stored since the freeze.
  interests_.Add(*step_.actor, request.file, inode);
  return BindReply{file_view_.AccessTo(request.file, inode, true)};
}

// A node that has dropped its object refuses stores of that generation and older ones.
Reply ByteRequests::AskToClean(FileId file, Inode& inode, std::vector<NodeId> nodes) {
  generations_.BeginGeneration(file, inode);
  return BindReply{file_view_.AccessTo(file, inode, true), std::move(nodes)};
}

std::optional<Failure> ByteRequests::CheckCommit(const CommitRequest& request) {
  if (auto failure = files_.CheckRegular(request.file)) return failure;
  if (files_.abandoned.contains(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} was removed, because its mount was silent for longer than "
                              "its lease before it had stored any of it: create it again",
                              request.file.value));
  const Inode& inode = *files_.Find(request.file);
  if (request.size_bytes > kFileBytesMax)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                  fmt::format("a size of {} bytes exceeds the maximum of {}", request.size_bytes,
                              kFileBytesMax));
  const Freeze* freeze = files_.FreezeOf(request.file);
  if (request.inline_moved && (!freeze || freeze->holder != step_.actor->start.client))
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("moving the content of file {} into objects took more than {} s: "
                              "bind it and move it again",
                              request.file.value, kFreezeMax.ns / 1'000'000'000));
  if (auto failure = generations_.CheckGeneration(request, inode)) return failure;
  // A new version would outdate the copies that can replace what is lost.
  if (request.data_changed && TellsOfObjects(request) && IsFirstCopyLost(inode))
    return Refuse(StatusCode::kDataLoss, ErrorReason::kNodeLost,
                  fmt::format("a node has lost bytes of file {}, so what was written to it since "
                              "the last sync is not committed",
                              request.file.value));
  if (!request.inline_data) return std::nullopt;
  if (request.inline_data->size() > cluster_.options.inline_bytes_max)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  fmt::format("{} inline bytes exceed the maximum of {}",
                              request.inline_data->size(), cluster_.options.inline_bytes_max));
  if (inode.bytes && !inode.bytes->segments.empty())
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kInvalid,
        fmt::format("file {} has objects, so its bytes cannot be inline", request.file.value));
  // A hint may have been set after the client learned that the file may be inline.
  const bool is_inline = inode.bytes && inode.bytes->is_inline;
  if (!is_inline && !request.inline_data->empty() && !hints_.HintsOf(inode).may_be_inline)
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kInvalid,
        fmt::format("file {} has a hint that requires objects, so its bytes cannot be inline",
                    request.file.value));
  if (request.based_on_version && *request.based_on_version != inode.data_version)
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("file {} is now at version {}, not {}: apply the new bytes to that "
                              "version and try again",
                              request.file.value, inode.data_version, *request.based_on_version));
  return limits_.CheckInlineGrowth(inode, request.inline_data->size());
}

Reply ByteRequests::Apply(const CommitRequest& request) {
  Session& session = *step_.actor;
  // The space is used whether or not the commit succeeds.
  for (const CommitRequest::NodeBytes& report : request.nodes)
    grants_.ReportConsumed(session, report.node, report.consumed_bytes);
  if (auto failure = CheckCommit(request)) {
    if (request.last_close) generations_.CloseWrite(session, request.file);
    if (request.data_changed) generations_.EndUncommitted(request.file);
    return *std::move(failure);
  }
  Inode& inode = *files_.Find(request.file);
  const uint64_t size_before = inode.size_bytes;
  const bool only_closes =
      request.last_close && !files_.uncommitted.contains(request.file) && !request.data_changed &&
      !request.size_is_exact && request.size_bytes <= size_before && request.nodes.empty() &&
      !request.inline_data && !request.inline_moved && !request.modify_time && !request.access_time;
  if (only_closes) {
    generations_.CloseWrite(session, request.file);
    return AttributesReply{file_view_.EntryWithInterest(request.file).attributes};
  }
  inode.size_bytes =
      request.size_is_exact ? request.size_bytes : std::max(inode.size_bytes, request.size_bytes);
  if (request.inline_data) {
    placing_.StoreInline(request.file, inode, request);
  } else if (inode.bytes && inode.bytes->is_inline) {
    if (request.inline_moved) {
      placing_.DropInline(request.file, inode);
    } else if (inode.size_bytes < inode.bytes->inline_valid_bytes) {
      inode.bytes->inline_valid_bytes = inode.size_bytes;
    }
  }
  if (request.inline_moved) files_.freezes.erase(request.file);
  if (inode.bytes) {
    FileBytes& bytes = *inode.bytes;
    const std::vector<NodeId> bound = hints_.LayoutOf(inode).Nodes();
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
  if (request.data_changed)
    generations_.RaiseVersion(request.file, inode, /*committed=*/!request.change_failed);
  if (request.modify_time) {
    // A file is never older than its creation, nor from the future: make and Snakemake rely on
    // this.
    inode.modify_time =
        std::clamp(*request.modify_time, std::min(inode.birth_time, step_.now), step_.now);
  } else if (!request.modify_time_stays &&
             (request.data_changed || inode.size_bytes != size_before)) {
    inode.modify_time = step_.now;
  }
  if (request.access_time) inode.access_time = std::clamp(*request.access_time, Time{0}, step_.now);
  inode.change_time = step_.now;
  generations_.CommitTo(request.file);
  copy_queue_.ReviewLater(request.file, inode);
  if (request.last_close) generations_.CloseWrite(session, request.file);
  step_.Touch(request.file);
  return AttributesReply{file_view_.EntryWithInterest(request.file).attributes};
}

}  // namespace mosa::manager
