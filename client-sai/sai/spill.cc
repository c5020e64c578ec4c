// Storing by a layout that holds, and making room: what a file's nodes have no room for goes on
// elsewhere. No stored byte moves: the layout is frozen, so that nobody stores by it, the hole that
// was to be filled is looked up on the nodes, and the manager puts it on others.
#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client-sai/sai/impl.h"

namespace mosa::sai {
namespace {

// Another client has frozen the file.
constexpr Duration kFrozenDelay = Milliseconds(10);

void SleepWhileFrozen() { std::this_thread::sleep_for(std::chrono::nanoseconds(kFrozenDelay.ns)); }

}  // namespace

// ---- storing

Outcome<AccessPtr> Filesystem::Impl::EnsureThawed(Inode& inode) {
  for (;;) {
    auto access = EnsureAccess(inode, true);
    if (!access.ok() || !(*access)->frozen) return access;
    SleepWhileFrozen();
    const std::lock_guard lock(inode.mutex);
    inode.access_era = 0;
  }
}

Outcome<AccessPtr> Filesystem::Impl::BeginStore(Inode& inode) {
  for (;;) {
    auto access = EnsureThawed(inode);
    if (!access.ok()) return access;
    MOSA_RETURN_IF_FAILED(CheckBound(inode, **access));
    std::unique_lock lock(inode.mutex);
    inode.changed.wait(lock, [&] { return !inode.fenced && inode.unconfirmed.empty(); });
    // What was recalled meanwhile may not be stored by any more.
    if (inode.access != *access || inode.access_era == 0 || inode.access_era != lease_.ValidEra())
      continue;
    ++inode.stores;
    return access;
  }
}

void Filesystem::Impl::EndStore(Inode& inode) {
  std::vector<UnconfirmedRecall> confirmed;
  {
    const std::lock_guard lock(inode.mutex);
    if (--inode.stores > 0) return;
    confirmed = std::exchange(inode.unconfirmed, {});
    inode.changed.notify_all();
  }
  for (const UnconfirmedRecall& recall : confirmed) ConfirmRecall(inode, recall);
}

Outcome<Done> Filesystem::Impl::CheckBound(const Inode& inode, const DataAccess& access) {
  if (access.layout.bound()) return Done{};
  return Fail(
      StatusCode::kAborted, ErrorReason::kBusy,
      fmt::format("file {} was emptied by another client while it was written", inode.file.value));
}

// ---- making room

Outcome<Done> Filesystem::Impl::Spill(Inode& inode, ByteRange range,
                                      const std::vector<NodeId>& full) {
  {
    std::unique_lock lock(inode.mutex);
    inode.fenced = true;
    inode.changed.wait(lock, [&] { return inode.stores == 0; });
  }
  Outcome<Done> spilled = GoOnElsewhere(inode, range, full);
  const std::lock_guard lock(inode.mutex);
  inode.fenced = false;
  inode.changed.notify_all();
  return spilled;
}

Outcome<Done> Filesystem::Impl::GoOnElsewhere(Inode& inode, ByteRange range,
                                              const std::vector<NodeId>& full) {
  auto frozen = Ask<BindReply>(FreezeRequest{inode.file});
  if (!frozen.ok()) return LookAgain(inode, frozen.failure());
  const DataAccess& before = frozen->access;
  RelocateRequest request{inode.file, 0, 0, full};
  const auto hole = HoleIn(inode, before, range, full);
  if (hole.ok()) {
    request.begin = hole->begin;
    request.end = hole->end;
  }
  const Mark mark = MarkNow();
  auto after = Ask<BindReply>(request);
  if (!hole.ok()) return hole.failure();
  if (!after.ok()) return LookAgain(inode, after.failure());
  if (hole->empty()) return Done{};
  stats_.Add(Counter::kSpills);
  MoveRoom(inode, before.layout, after->access.layout, *hole);
  StoreAccess(inode, std::move(after->access), mark);
  blocks_.DropFile(inode.file);
  return Done{};
}

// If only others were faster, the caller goes on with what they have made of it.
Outcome<Done> Filesystem::Impl::LookAgain(Inode& inode, const Failure& failure) {
  {
    const std::lock_guard lock(inode.mutex);
    inode.access_era = inode.attributes_era = 0;
  }
  if (failure.code != StatusCode::kAborted) return failure;
  SleepWhileFrozen();
  return Done{};
}

// The first hole in `range`, in whole pages, and as far as it goes beyond. Empty: the range has its
// room, or is not on full nodes any more.
Outcome<ByteRange> Filesystem::Impl::HoleIn(Inode& inode, const DataAccess& access, ByteRange range,
                                            const std::vector<NodeId>& full) {
  MOSA_RETURN_IF_FAILED(CheckBound(inode, access));
  {
    const std::lock_guard lock(inode.mutex);
    if (inode.passthrough_handles > 0)
      return Fail(
          StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
          fmt::format("node {} is full, and file {} cannot go on elsewhere while the kernel "
                      "has its object open: close it, or free room",
                      full.front().value, inode.file.value));
  }
  const Piece piece = FirstPiece(access.layout, WidenToPages(range));
  const bool affected = std::any_of(full.begin(), full.end(), [&](NodeId node) {
    return std::find(piece.nodes.begin(), piece.nodes.end(), node) != piece.nodes.end();
  });
  if (!affected) return ByteRange{};
  ByteRange hole{piece.range.begin, access.layout.SegmentEnd(piece.range.begin)};
  for (const NodeId node : piece.nodes) {
    auto begin = SeekObject(inode, node, hole.begin, SeekKind::kHole);
    if (!begin.ok()) return begin.failure();
    // An object may end inside a page.
    if (*begin) hole.begin = WidenToPages({hole.begin, std::max(hole.begin, **begin)}).end;
  }
  if (hole.begin >= piece.range.end) return ByteRange{};
  for (const NodeId node : access.layout.SegmentAt(hole.begin).nodes) {
    auto end = SeekObject(inode, node, hole.begin, SeekKind::kData);
    if (!end.ok()) return end.failure();
    if (*end) hole.end = std::min(hole.end, **end);
  }
  return hole;
}

// What is buffered for a relocated range takes its room along. If there is not enough, the node
// will say so, and it is relocated again.
void Filesystem::Impl::MoveRoom(Inode& inode, const Layout& from, const Layout& to,
                                ByteRange hole) {
  std::map<NodeId, uint64_t> left;
  std::map<NodeId, uint64_t> gained;
  {
    const std::lock_guard lock(inode.mutex);
    inode.allocated_known = false;
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
  for (const auto& [node, bytes] : gained)
    if (!grants_.Take(node, bytes).ok()) stats_.Add(Counter::kErrors);
}

}  // namespace mosa::sai
