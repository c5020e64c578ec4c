// Spilling: a file whose nodes are full goes on elsewhere. The manager plans, the bytes of the
// chunk that is partly filled are copied, and only then is the layout changed and the old place
// freed: at every moment the layout names nodes that have the bytes. Callers hold the inode's io.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client-sai/sai/impl.h"

namespace mosa::sai {
namespace {

constexpr int kPlansMax = 8;
// A write does not wait for more to be copied.
constexpr uint64_t kMovedBytesMax = uint64_t{1} << 40;
// Another client moves bytes of the same file.
constexpr Duration kMoverDelay = Milliseconds(20);

// The first part of `range` that two layouts each have on the same nodes throughout.
struct Part {
  ByteRange range;
  std::vector<NodeId> left;  // Nodes that only `from` has it on.
  std::vector<NodeId> gained;
};

Part FirstPart(const Layout& from, const Layout& to, ByteRange range,
               uint64_t bytes_max = UINT64_MAX) {
  const Piece old_piece = FirstPiece(from, range, bytes_max);
  const Piece new_piece = FirstPiece(to, old_piece.range);
  const auto without = [](const std::vector<NodeId>& nodes, const std::vector<NodeId>& others) {
    std::vector<NodeId> result;
    for (const NodeId node : nodes)
      if (std::find(others.begin(), others.end(), node) == others.end()) result.push_back(node);
    return result;
  };
  return {new_piece.range, without(old_piece.nodes, new_piece.nodes),
          without(new_piece.nodes, old_piece.nodes)};
}

}  // namespace

Outcome<Done> Filesystem::Impl::Spill(Inode& inode, ChunkIndex chunk, std::vector<NodeId> full) {
  {
    // What arrives at a node after its bytes were copied would be lost.
    std::unique_lock lock(inode.mutex);
    inode.moving = true;
    inode.changed.wait(lock, [&] { return !inode.buffer.any_taken(); });
  }
  Outcome<Done> moved = MoveEnd(inode, chunk, std::move(full));
  const std::lock_guard lock(inode.mutex);
  inode.moving = false;
  return moved;
}

Outcome<Done> Filesystem::Impl::MoveEnd(Inode& inode, ChunkIndex chunk, std::vector<NodeId> full) {
  auto fresh = EnsureFresh(inode, true);
  if (!fresh.ok()) return fresh.failure();
  const DataAccess& before = *fresh->access;
  MOSA_RETURN_IF_FAILED(CheckBound(inode, before));
  const std::vector<NodeId>& present = before.layout.SegmentOf(chunk).nodes;
  const bool affected = std::any_of(full.begin(), full.end(), [&](NodeId node) {
    return std::find(present.begin(), present.end(), node) != present.end();
  });
  if (!affected) return Done{};  // It has gone on elsewhere meanwhile.
  const uint64_t begin = chunk.value * before.layout.chunk_bytes;
  ByteRange range{begin, begin};
  {
    const std::lock_guard lock(inode.mutex);
    range.end = std::max(begin, ViewOn(inode, fresh->attributes).size_bytes);
    if (inode.passthrough_handles > 0 || range.size() > kMovedBytesMax)
      return Fail(
          StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
          fmt::format("node {} is full, and the {} bytes of file {} from {} on cannot move: "
                      "the kernel has its object open, or they are too many",
                      full.front().value, range.size(), inode.file.value, begin));
  }
  ExtendLayoutRequest request{inode.file, chunk, {}, before.layout.segments.back(), std::nullopt};
  for (int attempt = 0; attempt < kPlansMax; ++attempt) {
    request.full = full;
    auto plan = Ask<BindReply>(request);
    if (!plan.ok()) return LookAgain(inode, plan.failure());
    const Layout& to = plan->access.layout;
    std::map<NodeId, uint64_t> taken;
    auto room = TakeRoomForMove(before.layout, to, range, &taken, &full);
    if (!room.ok()) return room.failure();
    if (!*room) continue;
    stats_.Add(Counter::kSpills);
    const Outcome<Done> copied = CopyMoved(inode, before, to, range);
    if (!copied.ok()) {
      PunchMoved(inode, plan->access, before.layout, range);
      for (const auto& [node, bytes] : taken) grants_.PutBack(node, bytes);
      return copied.failure();
    }
    request.to = to.segments.back();
    const Mark mark = MarkNow();
    auto moved = Ask<BindReply>(request);
    // It may have been done all the same: what was copied stays.
    if (!moved.ok()) return LookAgain(inode, moved.failure());
    StoreAccess(inode, moved->access, mark);
    {
      const std::lock_guard lock(inode.mutex);
      inode.allocated_known = false;
    }
    blocks_.DropFile(inode.file);
    PunchMoved(inode, before, moved->access.layout, range);
    return Done{};
  }
  return Fail(
      StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
      fmt::format("no node has room for chunk {} of file {}", chunk.value, inode.file.value));
}

Outcome<Done> Filesystem::Impl::CheckBound(const Inode& inode, const DataAccess& access) {
  if (access.layout.bound()) return Done{};
  return Fail(
      StatusCode::kAborted, ErrorReason::kBusy,
      fmt::format("file {} was emptied by another client while it was written", inode.file.value));
}

// The manager has not moved the file, or may have. If only others were faster, the caller goes on
// with what they have made of it.
Outcome<Done> Filesystem::Impl::LookAgain(Inode& inode, const Failure& failure) {
  {
    const std::lock_guard lock(inode.mutex);
    inode.access_era = inode.attributes_era = 0;
  }
  if (failure.code != StatusCode::kAborted) return failure;
  std::this_thread::sleep_for(std::chrono::nanoseconds(kMoverDelay.ns));
  auto access = EnsureAccess(inode, true);
  if (!access.ok()) return access.failure();
  return CheckBound(inode, **access);
}

Outcome<bool> Filesystem::Impl::TakeRoomForMove(const Layout& from, const Layout& to,
                                                ByteRange range, std::map<NodeId, uint64_t>* taken,
                                                std::vector<NodeId>* full) {
  std::map<NodeId, uint64_t> needed;
  while (!range.empty()) {
    const Part part = FirstPart(from, to, range);
    for (const NodeId node : part.gained) needed[node] += WidenToPages(part.range).size();
    range.begin = part.range.end;
  }
  const size_t full_before = full->size();
  Outcome<bool> result = true;
  for (const auto& [node, bytes] : needed) {
    auto room = grants_.Take(node, bytes);
    if (!room.ok()) {
      result = room.failure();
    } else if (*room) {
      (*taken)[node] = bytes;
    } else {
      full->push_back(node);
    }
  }
  if (result.ok() && full->size() == full_before) return true;
  for (const auto& [node, bytes] : *taken) grants_.PutBack(node, bytes);
  if (result.ok()) return false;
  return result;
}

// Copies what `from` has of `range` to the nodes on which only `to` has it.
Outcome<Done> Filesystem::Impl::CopyMoved(Inode& inode, const DataAccess& from, const Layout& to,
                                          ByteRange range) {
  std::string bytes;
  while (!range.empty()) {
    const Part part = FirstPart(from.layout, to, range, kExtentBytesMax);
    range.begin = part.range.end;
    if (part.gained.empty()) continue;
    bytes.resize(static_cast<size_t>(part.range.size()));
    const Piece piece = FirstPiece(from.layout, part.range);
    MOSA_RETURN_IF_FAILED(
        FetchPiece(inode, from, piece, reinterpret_cast<std::byte*>(bytes.data())));
    if (bytes.find_first_not_of('\0') == std::string::npos) continue;
    for (const NodeId node : part.gained) {
      const Status status =
          WriteToNode(inode, node, part.range.begin, std::as_bytes(std::span(bytes)));
      if (!status.ok()) return FromStatus(status);
    }
  }
  return Done{};
}

// Frees `range` on the nodes on which only `from` has it. What stays behind is room lost, not bytes
// lost.
void Filesystem::Impl::PunchMoved(Inode& inode, const DataAccess& from, const Layout& to,
                                  ByteRange range) {
  while (!range.empty()) {
    const Part part = FirstPart(from.layout, to, range);
    range.begin = part.range.end;
    for (const NodeId node : part.left) {
      const Status punched = nodes_.Allocate({node, inode.file, from.capability},
                                             FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                             part.range.begin, part.range.size());
      if (!punched.ok()) stats_.Add(Counter::kErrors);
    }
  }
}

}  // namespace mosa::sai
