// Storing under a valid layout, and spilling: bytes without room on a file's nodes continue on
// other nodes. No stored byte moves. The layout is frozen, so that nobody stores by it; the hole
// that was to be filled is located on the nodes; and the manager assigns it to other nodes.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// A store that is refused this often, each time with a new right, will never succeed.
constexpr int kStoresMax = 50;

void SleepWhileFrozen() { SleepFor(kFrozenDelay); }

}  // namespace

// ---- storing

Outcome<AccessPtr> Filesystem::Impl::EnsureThawed(Inode& inode) {
  const Time begun = clock_.Monotonic();
  const Duration patience = WaitBudget::Patience();
  for (;;) {
    auto access = EnsureAccess(inode, true);
    if (!access.ok()) return access;
    if (!(*access)->frozen) {
      const MutexLock lock(inode.mutex);
      if (inode.access == *access) return access;
    }
    if (clock_.Monotonic() - begun > patience) return FrozenTooLong(inode, patience);
    SleepWhileFrozen();  // Frozen, or the answer was overtaken by a later change.
    const MutexLock lock(inode.mutex);
    inode.access_era = 0;
  }
}

Failure Filesystem::Impl::FrozenTooLong(const Inode& inode, Duration waited) {
  return Fail(
      StatusCode::kUnavailable, ErrorReason::kTimedOut,
      fmt::format(
          "another client has kept the layout of file {} frozen for more than {} ms: try again",
          inode.file.value, waited.ns / 1'000'000));
}

std::optional<Failure> Filesystem::Impl::OwnBytesAreLate(const Inode& inode,
                                                         const DataAccess& access) {
  const uint64_t stored_by = OlderGeneration(inode.unsaved.stored_by, inode.committing.stored_by);
  if (stored_by == 0 || stored_by >= access.kept_since) return std::nullopt;
  if (access.lost) return LostBytes(inode);
  return Fail(
      StatusCode::kFailedPrecondition, ErrorReason::kStale,
      fmt::format("other mounts may have written file {} while this mount could not reach the "
                  "manager: bytes written here since the last sync are not stored",
                  inode.file.value));
}

Outcome<AccessPtr> Filesystem::Impl::BeginStore(Inode& inode, IfLost if_lost) {
  for (;;) {
    auto access = EnsureThawed(inode);
    if (!access.ok()) return access;
    MOSA_RETURN_IF_FAILED(CheckBound(inode, **access));
    if ((*access)->lost && if_lost == IfLost::kFail) return LostBytes(inode);
    MutexLock lock(inode.mutex);
    while (inode.fenced || !inode.unconfirmed.empty()) inode.changed.wait(lock);
    // A layout that was recalled meanwhile may no longer be used.
    if (inode.access != *access || inode.access_era == 0 || inode.access_era != lease_.ValidEra())
      continue;
    if (inode.append_right && inode.append_right->era != inode.access_era) {
      lock.unlock();
      MOSA_RETURN_IF_FAILED(RenewAppendRight(inode));
      continue;
    }
    if (std::optional<Failure> late = OwnBytesAreLate(inode, **access)) return *std::move(late);
    ++inode.stores;
    inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, (*access)->generation);
    return access;
  }
}

bool Filesystem::Impl::MayStillStore(Inode& inode) {
  const MutexLock lock(inode.mutex);
  return inode.access_era != 0 && inode.access_era == lease_.ValidEra();
}

void Filesystem::Impl::EndStore(Inode& inode) {
  std::vector<UnconfirmedRecall> confirmed;
  {
    const MutexLock lock(inode.mutex);
    if (--inode.stores > 0) return;
    confirmed = std::exchange(inode.unconfirmed, {});
    inode.changed.notify_all();
  }
  for (const UnconfirmedRecall& recall : confirmed) ConfirmRecall(inode.file, recall);
}

Outcome<Done> Filesystem::Impl::WithStore(
    Inode& inode, const std::function<Outcome<Done>(const DataAccess&)>& store, IfLost if_lost) {
  for (int attempt = 1;; ++attempt) {
    {
      const StoreSection section(*this, inode, if_lost);
      if (!section.access().ok()) return section.access().failure();
      Outcome<Done> stored = store(**section.access());
      if (stored.ok() || stored.failure().code != StatusCode::kAborted || attempt == kStoresMax)
        return stored;
      if (WaitBudget::IsSpent())
        return Fail(StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                    fmt::format("bytes of file {} could not be stored in time: {}",
                                inode.file.value, stored.failure().message));
    }
    PauseBeforeStore(attempt);
  }
}

// The first attempts do not wait: usually the layout has changed, and the manager knows the new
// one.
void Filesystem::Impl::PauseBeforeStore(int attempt) {
  if (attempt < 3) return;
  SleepFor(Milliseconds(std::min(10 * attempt, 100)));
}

Outcome<Done> Filesystem::Impl::CheckBound(const Inode& inode, const DataAccess& access) {
  if (access.layout.bound()) return Done{};
  return Fail(
      StatusCode::kAborted, ErrorReason::kBusy,
      fmt::format("another client emptied file {} while it was being written", inode.file.value));
}

// ---- making room

Outcome<bool> Filesystem::Impl::Spill(Inode& inode, ByteRange range,
                                      const std::vector<NodeId>& full) {
  {
    MutexLock lock(inode.mutex);
    inode.fenced = true;
    while (inode.stores > 0) inode.changed.wait(lock);
  }
  Outcome<bool> spilled = GoOnElsewhere(inode, range, full);
  const MutexLock lock(inode.mutex);
  inode.fenced = false;
  inode.changed.notify_all();
  return spilled;
}

Outcome<bool> Filesystem::Impl::GoOnElsewhere(Inode& inode, ByteRange range,
                                              const std::vector<NodeId>& full) {
  auto frozen = calls_.Ask<BindReply>(FreezeRequest{inode.file});
  if (!frozen.ok()) return LookAgain(inode, frozen.failure());
  const DataAccess& before = frozen->access;
  const auto hole = HoleIn(inode, before, range, full);
  if (!hole.ok() || hole->empty()) {
    Thaw(inode);
    if (!hole.ok()) return LookAgain(inode, hole.failure());
    const MutexLock lock(inode.mutex);
    inode.access_era = inode.attributes_era = 0;
    return false;
  }
  RelocateRequest relocate{inode.file, hole->begin, hole->end, full, {}};
  Mark mark = MarkNow();
  auto after = calls_.Ask<BindReply>(relocate);
  while (after.ok() && !after->older.empty()) {
    StoreAccess(inode, std::move(after->access), mark);
    if (auto cleaned = CleanHole(inode, *hole, after->older); !cleaned.ok()) {
      Thaw(inode);
      return LookAgain(inode, cleaned.failure());
    }
    relocate.cleaned.insert(relocate.cleaned.end(), after->older.begin(), after->older.end());
    mark = MarkNow();
    after = calls_.Ask<BindReply>(relocate);
  }
  if (!after.ok()) return LookAgain(inode, after.failure());
  stats_.Add(Counter::kSpills);
  MoveRoom(inode, before.layout, after->access.layout, *hole);
  StoreAccess(inode, std::move(after->access), mark);
  blocks_.DropFile(inode.file);
  return true;
}

// Punches the hole on nodes that are to get its bytes: their objects may hold older ones.
Outcome<Done> Filesystem::Impl::CleanHole(Inode& inode, ByteRange hole,
                                          const std::vector<NodeId>& nodes) {
  const uint64_t length = std::min(hole.end, kFileBytesMax) - hole.begin;
  for (const NodeId node : nodes) {
    const Status status = WithRetries(inode, node, true, [&](const ObjectTarget& target) {
      return nodes_.Allocate(target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole.begin,
                             length);
    });
    if (!status.ok() && status.code() != StatusCode::kNotFound) return FromStatus(status);
  }
  return Done{};
}

// Ends the freeze, unless this mount is still moving inline content into objects.
void Filesystem::Impl::Thaw(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    if (inode.moves_inline) return;
  }
  // If this fails, the freeze ends by timeout.
  if (!calls_.Ask<BindReply>(RelocateRequest{inode.file, 0, 0, {}}).ok())
    stats_.Add(Counter::kErrors);
}

// Returns false if other clients were merely faster: the caller continues with their layout.
Outcome<bool> Filesystem::Impl::LookAgain(Inode& inode, const Failure& failure) {
  {
    const MutexLock lock(inode.mutex);
    inode.access_era = inode.attributes_era = 0;
  }
  if (failure.code != StatusCode::kAborted) return failure;
  return false;
}

// Returns the first hole in `range` that lies on `full` nodes, in whole pages and to its full
// extent. Empty if there is none, because there is room or the layout has changed.
Outcome<ByteRange> Filesystem::Impl::HoleIn(Inode& inode, const DataAccess& access, ByteRange range,
                                            const std::vector<NodeId>& full) {
  MOSA_RETURN_IF_FAILED(CheckBound(inode, access));
  {
    const MutexLock lock(inode.mutex);
    if (inode.passthrough_handles > 0)
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
    inode.pages.Add(piece.range);
  }
  return ByteRange{};
}

// Returns the first page of `piece` that no copy has, or the piece's end. Precondition: the piece
// begins at a page boundary.
Outcome<uint64_t> Filesystem::Impl::HoleBegin(Inode& inode, const Piece& piece) {
  uint64_t begin = piece.range.begin;
  for (size_t agreed = 0; agreed < piece.nodes.size() && begin < piece.range.end;) {
    for (const NodeId node : piece.nodes) {
      auto hole = SeekObject(inode, node, begin, SeekKind::kHole);
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

Outcome<ByteRange> Filesystem::Impl::HoleFrom(Inode& inode, const Layout& layout, uint64_t begin) {
  ByteRange hole{begin, layout.SegmentEnd(begin)};
  for (const NodeId node : layout.SegmentAt(begin).nodes) {
    auto data = SeekObject(inode, node, begin, SeekKind::kData);
    if (!data.ok()) return data.failure();
    if (*data) hole.end = std::min(hole.end, **data / kPageBytes * kPageBytes);
  }
  // The page itself is a hole, whatever another stripe position has there.
  hole.end = std::max(hole.end, hole.begin + kPageBytes);
  return hole;
}

// Moves the room taken for buffered bytes of a relocated range. If there is not enough, the node
// reports it, and the range is relocated again.
void Filesystem::Impl::MoveRoom(Inode& inode, const Layout& from, const Layout& to,
                                ByteRange hole) {
  std::map<NodeId, uint64_t> left;
  std::map<NodeId, uint64_t> gained;
  {
    const MutexLock lock(inode.mutex);
    inode.allocated_version.reset();
    for (const ByteRange& taken : inode.pages.All()) {
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

}  // namespace mosa::sai
