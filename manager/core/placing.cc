#include "manager/core/placing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/hash.h"
#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

// How long a file stays frozen for a user who sets a hint by path, and who may have gone away.
constexpr Duration kAdminFreezeMax = Seconds(5);

Failure TooLate(std::string_view hint, FileId file, std::string_view why) {
  return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kBusy,
                fmt::format("hint '{}' comes too late: file {} already has its place, and {}", hint,
                            file.value, why));
}

}  // namespace

Result<PlacementPlan> Placing::PlaceSegment(const Inode& inode, const EffectiveHints& hints,
                                            PlacementRequest request) const {
  const size_t segments = inode.bytes ? inode.bytes->segments.size() : 0;
  request.seed = HashCombine(inode.placement_seed, segments);
  request.needed_bytes =
      std::clamp(request.needed_bytes, kRoomBytesMin, std::max(hints.chunk_bytes, kRoomBytesMin));
  request.stripe_width = hints.stripe_width;
  request.strict = hints.strict;
  request.exact_width = hints.strict && hints.width_asked;
  request.fallback = cluster_.options.default_placement;
  request.anchor = groups_.AnchorOf(GroupIn(hints.placement));
  if (step_.actor) request.writer_node = nodes_.NodeOfSession(*step_.actor);
  if (copy_planner_.GoesOutToAll(hints)) {
    request.strict = true;  // On the writer's node, or as any other file.
    if (auto plan = Place("local", nodes_.ViewFor(step_.actor, false), request); plan.ok())
      return plan;
    request.strict = hints.strict;
  }
  auto plan = Place(hints.placement, nodes_.ViewFor(step_.actor, false), request);
  if (plan.ok()) return plan;
  // Unused grants of other mounts can be recalled.
  return Place(hints.placement, nodes_.ViewFor(step_.actor, true), request);
}

Status Placing::Bind(FileId file, Inode& inode, uint64_t first_bytes) {
  const EffectiveHints hints = hints_.HintsOf(inode);
  MOSA_ASSIGN_OR_RETURN(
      PlacementPlan plan,
      PlaceSegment(
          inode, hints,
          {.begin = 0, .needed_bytes = first_bytes, .excluded = copy_queue_.StillOrdered(file)}));
  MOSA_RETURN_IF_ERROR(copy_planner_.CheckStrictCopies(inode, hints, plan.segment));
  FileBytes& bytes = BytesOf(inode);
  groups_.Join(GroupIn(hints.placement));
  if (plan.anchor) groups_.SetAnchor(GroupIn(hints.placement), *plan.anchor, step_.effects.writes);
  bytes.chunk_bytes = hints.run_bytes();
  bytes.segments = {std::move(plan.segment)};
  hints_.SetReason(bytes, plan.reason);
  generations_.FenceWriters(file, inode, {});
  step_.TouchAccess(file, /*waits=*/false);  // Nobody can have stored anything yet.
  copy_queue_.ReviewLater(file, inode);
  return OkStatus();
}

// Makes the file one that was never written to. Precondition: it has no bytes. Truncations reach
// the first copies only; all objects that may not be empty are dropped before the file gets bytes
// on their nodes again. Empty ones are dropped with the file.
void Placing::Unbind(FileId file, Inode& inode, FirstObjects first_objects) {
  FileBytes& bytes = *inode.bytes;
  if (!groups_.empty()) groups_.Leave(hints_.GroupOf(inode), step_.effects.writes);
  const std::vector<NodeId> first = hints_.LayoutOf(inode).Nodes();
  for (const NodeId node : NamedNodes(bytes)) ObjectOn(bytes, node);
  std::vector<NodeId> uncut;
  for (const NodeObject& object : bytes.objects)
    if (first_objects == FirstObjects::kNotCut || object.holds != ObjectHolds::kOwn ||
        !std::binary_search(first.begin(), first.end(), object.node))
      uncut.push_back(object.node);
  bytes.segments.clear();
  bytes.copies.clear();
  copy_queue_.Forget(file);
  bytes.chunk_bytes = 0;
  files_.freezes.erase(file);
  hints_.SetReason(bytes, "");
  generations_.FenceWriters(file, inode, {});
  uncut_objects_.Note(file, inode, uncut);
  step_.Touch(file);
}

void Placing::StoreInline(FileId file, Inode& inode, const CommitRequest& request) {
  const uint64_t valid = std::min<uint64_t>(request.inline_data->size(), inode.size_bytes);
  if (valid == 0) return DropInline(file, inode);
  FileBytes& bytes = BytesOf(inode);
  bytes.is_inline = true;
  bytes.inline_valid_bytes = valid;
  bytes.inline_node = nodes_.NodeOfSession(*step_.actor);
  step_.effects.writes.Put(InlineDataKey(file), *request.inline_data);
}

void Placing::DropInline(FileId file, Inode& inode) {
  if (!inode.bytes || !inode.bytes->is_inline) return;
  FileBytes& bytes = *inode.bytes;
  bytes.is_inline = false;
  bytes.inline_valid_bytes = 0;
  bytes.inline_node = kNoNode;
  step_.effects.writes.Delete(InlineDataKey(file));
}

// Returns why the request cannot lay its file out anew, if it asks for that.
std::optional<Failure> Placing::MayLayOutAnew(const SetAttributesRequest& request,
                                              const Inode& inode) {
  if (!request.lay_out_anew) return std::nullopt;
  if (request.size_bytes != 0U)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  fmt::format("file {} can be laid out anew only when it is cut to nothing",
                              request.file.value));
  if (!inode.bytes || inode.bytes->segments.empty()) return std::nullopt;
  if (inode.bytes->is_inline || inode.bytes->generation != request.generation)
    return Refuse(
        StatusCode::kAborted, ErrorReason::kStale,
        fmt::format("the bytes of file {} have moved: truncate it again", request.file.value));
  auto failure = MayUnbind(request.file, inode);
  if (!failure || failure->code == StatusCode::kAborted) return failure;
  return Refuse(
      StatusCode::kUnavailable, ErrorReason::kNodeLost,
      fmt::format("file {} keeps its size of {} bytes, because one of its nodes is silent "
                  "and {}: try again when the node answers, or close the file there",
                  request.file.value, inode.size_bytes, failure->message));
}

// An empty file needs no node that is gone. Its next byte goes elsewhere.
void Placing::LayOutAnewIfGone(FileId file, Inode& inode) {
  if (!inode.bytes || inode.size_bytes > 0 || inode.bytes->is_inline ||
      sessions_.write_opens.contains(file) || files_.FreezeOf(file))
    return;
  const std::vector<NodeId> first = hints_.LayoutOf(inode).Nodes();
  if (std::all_of(first.begin(), first.end(), [this](NodeId id) { return nodes_.IsReachable(id); }))
    return;
  Unbind(file, inode, FirstObjects::kNotCut);
}

// A hint never moves bytes: only a file without bytes can still be laid out again.
std::optional<Failure> Placing::PrepareLayoutHint(FileId file, Inode& inode, std::string_view hint,
                                                  bool pinned) {
  if (inode.type != FileType::kRegular || !IsLayoutHint(hint)) return std::nullopt;
  if (inode.size_bytes > 0)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotEmpty,
                  fmt::format("hint '{}' comes too late: file {} already has {} bytes; set it on "
                              "the empty file or its directory",
                              hint, file.value, inode.size_bytes));
  if (!inode.bytes || inode.bytes->segments.empty()) return std::nullopt;
  // Bytes that others stored there without committing would be lost.
  if (pinned || sessions_.IsOpenForWritingElsewhere(file))
    return TooLate(hint, file,
                   pinned ? "the kernel has its object open (passthrough)"
                          : "another mount has it open for writing");
  if (auto failure = MayUnbind(file, inode)) {
    if (failure->code == StatusCode::kAborted) return failure;
    return TooLate(hint, file, "the kernel of another mount has its object open (passthrough)");
  }
  Unbind(file, inode, FirstObjects::kCut);
  return std::nullopt;
}

bool Placing::IsKnownElsewhere(FileId file, const Inode& inode) const {
  const ClientId asker = step_.actor ? step_.actor->start.client : ClientId();
  return !interests_.Of(file, inode, asker).empty() || recalls_.IsRecalledFromOthers(asker, file);
}

// A reader's kernel with the object open would continue to use what no longer is the file's object.
// So clients that know the file are asked first, by a freeze: the requester's own, or for commands
// of users one without holder.
std::optional<Failure> Placing::MayUnbind(FileId file, const Inode& inode) {
  const ClientId asker = step_.actor ? step_.actor->start.client : ClientId();
  const Freeze* const freeze = files_.FreezeOf(file);
  const bool own = freeze && freeze->holder == asker;
  const bool answering = own && !step_.actor && recalls_.IsRecalled(file);
  if (own ? answering : freeze || IsKnownElsewhere(file, inode)) {
    if (!freeze && !step_.actor) {
      files_.freezes[file] = {asker, step_.now + kAdminFreezeMax};
      step_.access_changed[file] = true;
    }
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("other mounts cache the layout of file {}: freeze it and try again",
                              file.value));
  }
  const bool pinned_elsewhere = own && freeze->pinned;
  files_.freezes.erase(file);
  if (!pinned_elsewhere) return std::nullopt;
  return Refuse(
      StatusCode::kUnavailable, ErrorReason::kBusy,
      fmt::format("the kernel of another mount has the object of file {} open", file.value));
}

}  // namespace mosa::manager
