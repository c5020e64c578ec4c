#include "client-sai/sai/spill.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "client-sai/core/rules.h"
#include "client-sai/sai/failures.h"
#include "common/base/sync.h"

namespace mosa::sai {

Outcome<bool> Spiller::Spill(Inode& inode, ByteRange range, const std::vector<NodeId>& full) {
  gate_.Close(inode);
  Outcome<bool> spilled = GoOnElsewhere(inode, range, full);
  gate_.Open(inode);
  return spilled;
}

Outcome<bool> Spiller::GoOnElsewhere(Inode& inode, ByteRange range,
                                     const std::vector<NodeId>& full) {
  auto frozen = calls_.Ask<BindReply>(FreezeRequest{inode.file});
  if (!frozen.ok()) return LookAgain(inode, frozen.failure());
  const DataAccess& before = frozen->access;
  const auto hole = HoleIn(inode, before, range, full);
  if (!hole.ok() || hole->empty()) {
    gate_.Thaw(inode);
    if (!hole.ok()) return LookAgain(inode, hole.failure());
    const MutexLock lock(inode.mutex);
    inode.right.era = 0;
    inode.known.Invalidate();
    return false;
  }
  RelocateRequest relocate{inode.file, hole->begin, hole->end, full, {}};
  Mark mark = recalls_.Now();
  auto after = calls_.Ask<BindReply>(relocate);
  while (after.ok() && !after->older.empty()) {
    rights_.Store(inode, std::move(after->access), mark);
    if (auto cleaned = CleanHole(inode, *hole, after->older); !cleaned.ok()) {
      gate_.Thaw(inode);
      return LookAgain(inode, cleaned.failure());
    }
    relocate.cleaned.insert(relocate.cleaned.end(), after->older.begin(), after->older.end());
    mark = recalls_.Now();
    after = calls_.Ask<BindReply>(relocate);
  }
  if (!after.ok()) return LookAgain(inode, after.failure());
  stats_.Add(Counter::kSpills);
  MoveRoom(inode, before.layout, after->access.layout, *hole);
  rights_.Store(inode, std::move(after->access), mark);
  blocks_.DropFile(inode.file);
  return true;
}

// Punches the hole on nodes that are to get its bytes: their objects may hold older ones.
Outcome<Done> Spiller::CleanHole(Inode& inode, ByteRange hole, const std::vector<NodeId>& nodes) {
  const uint64_t length = std::min(hole.end, kFileBytesMax) - hole.begin;
  for (const NodeId node : nodes) {
    const Status status = objects_.WithRetries(inode, node, true, [&](const ObjectTarget& target) {
      return nodes_.Allocate(target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole.begin,
                             length);
    });
    if (!status.ok() && status.code() != StatusCode::kNotFound) return FromStatus(status);
  }
  return Done{};
}

// Returns the first hole in `range` that lies on `full` nodes, in whole pages and to its full
// extent. Empty if there is none, because there is room or the layout has changed.
Outcome<ByteRange> Spiller::HoleIn(Inode& inode, const DataAccess& access, ByteRange range,
                                   const std::vector<NodeId>& full) {
  MOSA_RETURN_IF_FAILED(StoreGate::CheckBound(inode, access));
  {
    const MutexLock lock(inode.mutex);
    if (inode.kernel.passthrough_handles > 0)
      return Fail(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("node {} is full, and file {} cannot continue on another node while "
                              "the kernel has its object open: close the file or free space",
                              full.front().value, inode.file.value));
  }
  for (const Piece& piece : SplitRange(access.layout, WidenToPages(range))) {
    const bool affected = std::any_of(full.begin(), full.end(), [&](NodeId node) {
      return std::find(piece.nodes.begin(), piece.nodes.end(), node) != piece.nodes.end();
    });
    if (!affected) continue;
    auto begin = HoleBegin(inode, piece);
    if (!begin.ok()) return begin.failure();
    if (*begin < piece.range.end) return HoleFrom(inode, access.layout, *begin);
    // The client that stored there has taken the room.
    const MutexLock lock(inode.mutex);
    inode.room.pages.Add(piece.range);
  }
  return ByteRange{};
}

// Returns the first page of `piece` that no copy has, or the piece's end. Precondition: the piece
// begins at a page boundary.
Outcome<uint64_t> Spiller::HoleBegin(Inode& inode, const Piece& piece) {
  uint64_t begin = piece.range.begin;
  for (size_t agreed = 0; agreed < piece.nodes.size() && begin < piece.range.end;) {
    for (const NodeId node : piece.nodes) {
      auto hole = objects_.Seek(inode, node, begin, SeekKind::kHole);
      if (!hole.ok()) return hole.failure();
      // An object may end inside a page.
      const uint64_t at = hole->value_or(begin);
      const uint64_t page = at <= begin ? begin : WidenToPages({at - 1, at}).end;
      agreed = page == begin ? agreed + 1 : 0;
      begin = page;
    }
  }
  return std::min(begin, piece.range.end);
}

Outcome<ByteRange> Spiller::HoleFrom(Inode& inode, const Layout& layout, uint64_t begin) {
  ByteRange hole{begin, layout.SegmentEnd(begin)};
  for (const NodeId node : layout.SegmentAt(begin).nodes) {
    auto data = objects_.Seek(inode, node, begin, SeekKind::kData);
    if (!data.ok()) return data.failure();
    if (*data) hole.end = std::min(hole.end, **data / kPageBytes * kPageBytes);
  }
  // The page itself is a hole, whatever another stripe position has there.
  hole.end = std::max(hole.end, hole.begin + kPageBytes);
  return hole;
}

// Moves the room taken for buffered bytes of a relocated range. If there is not enough, the node
// reports it, and the range is relocated again.
void Spiller::MoveRoom(Inode& inode, const Layout& from, const Layout& to, ByteRange hole) {
  std::map<NodeId, uint64_t> left;
  std::map<NodeId, uint64_t> gained;
  {
    const MutexLock lock(inode.mutex);
    inode.room.version.reset();
    for (const ByteRange& taken : inode.room.pages.All()) {
      ByteRange part{std::max(taken.begin, hole.begin), std::min(taken.end, hole.end)};
      while (!part.empty()) {
        const Piece old_piece = FirstPiece(from, part);
        const Piece new_piece = FirstPiece(to, old_piece.range);
        for (const NodeId node : old_piece.nodes) left[node] += new_piece.range.size();
        for (const NodeId node : new_piece.nodes) gained[node] += new_piece.range.size();
        part.begin = new_piece.range.end;
      }
    }
  }
  for (const auto& [node, bytes] : left) grants_.PutBack(node, bytes);
  for (const auto& [node, bytes] : gained) {
    const auto room = grants_.Take(node, bytes);
    if (!room.ok() || !*room) stats_.Add(Counter::kErrors);
  }
}

// Returns false if other clients were merely faster: the caller continues with their layout.
Outcome<bool> Spiller::LookAgain(Inode& inode, const Failure& failure) {
  {
    const MutexLock lock(inode.mutex);
    inode.right.era = 0;
    inode.known.Invalidate();
  }
  if (failure.code != StatusCode::kAborted) return failure;
  return false;
}

}  // namespace mosa::sai
