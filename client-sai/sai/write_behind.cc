#include "client-sai/sai/write_behind.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/failures.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr Duration kBufferWaitMax = Seconds(1);
// Spills that have changed nothing for this long will never succeed.
constexpr Duration kFruitlessMax = Seconds(15);
constexpr Duration kStoreMin = Seconds(5);
// In one file. An extent takes memory however few bytes it has.
constexpr size_t kOpenExtentsMax = 4096;
// With those that are being sent.
constexpr size_t kExtentsMax = 2 * kOpenExtentsMax;

// A part that is not the last one is followed by the next part, so it has no spare bytes.
Memory OfPart(const Memory& memory, std::span<const std::byte> part,
              std::span<const std::byte> rest) {
  return {memory.owner, part.size() == rest.size() ? memory.spare_bytes : 0};
}

}  // namespace

WriteBehind::WriteBehind(const FilesystemOptions& options, InodeTable& inodes,
                         NodeStates& node_states, StoreGate& gate, NodeObjects& objects,
                         Spiller& spiller, BlockCache& blocks, KernelPages& pages, Stats& stats,
                         const Clock& clock)
    : options_(options),
      inodes_(inodes),
      node_states_(node_states),
      gate_(gate),
      objects_(objects),
      spiller_(spiller),
      blocks_(blocks),
      pages_(pages),
      stats_(stats),
      clock_(clock),
      buffered_(options.write_behind_bytes_max),
      io_(options.io_threads, options.io_threads_max),
      store_lanes_(io_) {}

Outcome<Done> WriteBehind::Buffer(Inode& inode, const Piece& piece, std::span<const std::byte> data,
                                  uint64_t chunk_bytes, const Memory& memory) {
  inode.io.AssertHeld();
  uint64_t offset = piece.range.begin;
  while (!data.empty()) {
    const uint64_t end = std::min(piece.range.end, WriteBuffer::BoundaryAfter(offset, chunk_bytes));
    const auto bytes = data.first(static_cast<size_t>(end - offset));
    AwaitRoom(inode, bytes.size());
    {
      MutexLock lock(inode.mutex);
      while (inode.behind.buffer.OverlapsTaken({offset, end})) inode.changed.wait(lock);
      const bool begins = inode.behind.buffer.empty();
      const uint64_t grown =
          inode.behind.buffer.Put(offset, bytes, chunk_bytes, OfPart(memory, bytes, data));
      if (begins) buffering_.Insert(inodes_.Get(inode.file));
      buffered_.Add(grown);
    }
    // An append waits for its bytes within the same call.
    Send(inode, false,
         inode.append_hold ? WaitBudget::OfThisThread().end : std::optional<SteadyTime>());
    offset = end;
    data = data.subspan(bytes.size());
  }
  return Done{};
}

void WriteBehind::Send(Inode& inode, bool all, std::optional<SteadyTime> end) {
  std::vector<std::shared_ptr<const Extent>> extents;
  AccessPtr access;
  {
    const MutexLock lock(inode.mutex);
    if (!inode.behind.buffer.any_open()) return;
    access = inode.right.access;
    // Buffered bytes must leave even if the layout is unknown; the store then fails where it must.
    const uint64_t chunk_bytes = inode.right.access ? inode.right.access->layout.chunk_bytes : 0;
    all = all || inode.behind.buffer.open_extents() >= kOpenExtentsMax;
    extents = inode.behind.buffer.Take(all || chunk_bytes == 0, chunk_bytes);
  }
  if (extents.empty()) return;
  const InodePtr self = inodes_.Get(inode.file);
  for (const auto& extent : extents) {
    const bool bound = access && access->layout.bound();
    RunStore(
        bound ? access->layout.NodeAt(extent->offset) : NodeId{},
        [this, self, extent] { SendExtent(self, extent); }, end);
  }
}

void WriteBehind::AwaitRoom(Inode& inode, uint64_t bytes) {
  bool refused = false;
  {
    MutexLock lock(inode.mutex);
    const auto has_room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex) {
      return inode.behind.buffer.bytes() + bytes <= options_.write_behind_file_bytes_max &&
             inode.behind.buffer.extents() < kExtentsMax;
    };
    if (!has_room()) {
      lock.unlock();
      Send(inode, true, WaitBudget::OfThisThread().end);
      lock.lock();
      while (inode.behind.buffer.any_taken() && !has_room()) inode.changed.wait(lock);
    }
    refused = !inode.behind.full_nodes.empty();
  }
  if (refused) Drain(inode);
  if (buffered_.HasRoomFor(bytes)) return;
  for (const InodePtr& other : buffering_.All()) Send(*other, true);
  // Bytes that no node accepts stay until their writer returns, so do not wait for them for ever.
  buffered_.AwaitRoomFor(bytes, kBufferWaitMax);
}

// A program may come to wait for the store and must be answered in time. Its budget starts when the
// store begins, because bytes may wait long for a slow node before that. With a program that waits
// already it ends when that program's does. But many mounts may be storing on one node, so a store
// on a node that answers has kStoreMin.
void WriteBehind::RunStore(NodeId node, std::function<void()> store,
                           std::optional<SteadyTime> end) {
  store_lanes_.Run(
      {FileId{}, node.value}, options_.io_threads, [this, node, store = std::move(store), end] {
        WaitBudget::Limit limit = WaitBudget::ForBackground();
        const Duration least = node_states_.Answers(node) ? kStoreMin : WaitBudget::kTransferMin;
        if (end)
          limit.end =
              std::clamp(*end, SteadyNow() + std::chrono::nanoseconds(least.ns), *limit.end);
        const WaitBudget budget(limit);
        store();
      });
}

void WriteBehind::SendExtent(const InodePtr& inode, const std::shared_ptr<const Extent>& extent) {
  std::vector<NodeId> full;
  const Outcome<Done> stored = StoreExtent(*inode, *extent, &full);
  if (!stored.ok() && full.empty()) NoteError(*inode, stored.failure());
  const MutexLock lock(inode->mutex);
  if (full.empty()) {
    inode->behind.buffer.Finish(*extent);
    NoteUnbuffered(*inode, extent->bytes().size());
  } else {
    inode->behind.buffer.PutBack(*extent);
    inode->behind.full_nodes.insert(inode->behind.full_nodes.end(), full.begin(), full.end());
  }
  inode->changed.notify_all();
}

Outcome<Done> WriteBehind::StoreExtent(Inode& inode, const Extent& extent,
                                       std::vector<NodeId>* full) {
  return gate_.Run(inode, [&](const DataAccess& access) -> Outcome<Done> {
    for (const Piece& piece : SplitRange(access.layout, extent.range())) {
      const auto data =
          extent.bytes().subspan(static_cast<size_t>(piece.range.begin - extent.offset),
                                 static_cast<size_t>(piece.range.size()));
      for (const NodeId node : piece.nodes) {
        const Status status = objects_.Write(inode, node, piece.range.begin, data);
        if (status.code() == StatusCode::kResourceExhausted) full->push_back(node);
        if (!status.ok()) return FromStatus(status);
      }
    }
    return Done{};
  });
}

void WriteBehind::NoteUnbuffered(Inode& inode, uint64_t bytes) {
  if (inode.behind.buffer.empty()) buffering_.Erase(inode.file);
  buffered_.Remove(bytes);
}

void WriteBehind::DrainOverlap(Inode& inode, ByteRange range) {
  {
    const MutexLock lock(inode.mutex);
    if (!inode.behind.buffer.Overlaps(range)) return;
  }
  Drain(inode);
}

void WriteBehind::Drain(Inode& inode) {
  SpillProgress progress;
  for (;;) {
    Send(inode, true, WaitBudget::OfThisThread().end);
    std::vector<NodeId> refused;
    ByteRange first;
    {
      MutexLock lock(inode.mutex);
      while (inode.behind.buffer.any_taken()) inode.changed.wait(lock);
      refused = std::exchange(inode.behind.full_nodes, {});
      if (!inode.behind.buffer.any_open()) return;
      first = inode.behind.buffer.first_open();
    }
    if (refused.empty()) continue;
    const Outcome<Done> spilled = SpillPatiently(inode, first, refused, &progress);
    if (spilled.ok()) continue;
    NoteError(inode, spilled.failure());
    // Other extents may have been sent again meanwhile.
    MutexLock lock(inode.mutex);
    while (inode.behind.buffer.any_taken()) inode.changed.wait(lock);
    inode.behind.full_nodes.clear();
    NoteUnbuffered(inode, inode.behind.buffer.Cut(0));
    return;
  }
}

Outcome<Done> WriteBehind::SpillPatiently(Inode& inode, ByteRange range,
                                          const std::vector<NodeId>& refused,
                                          SpillProgress* progress) {
  // Bytes that have room here take it, before the manager counts it as free for others.
  Send(inode, true, WaitBudget::OfThisThread().end);
  std::vector<NodeId>& full = progress->full;
  full.insert(full.end(), refused.begin(), refused.end());
  std::sort(full.begin(), full.end());
  full.erase(std::unique(full.begin(), full.end()), full.end());
  auto spilled = spiller_.Spill(inode, range, full);
  if (!spilled.ok()) {
    const std::optional<Duration> delay = NoSpaceDelay(progress->attempt++);
    if (spilled.failure().reason != ErrorReason::kNoSpace || !delay) return spilled.failure();
    SleepFor(*delay);
    full.clear();
    return Done{};
  }
  if (*spilled) {
    progress->fruitless_since.reset();
    return Done{};
  }
  const Time now = clock_.Monotonic();
  if (!progress->fruitless_since) progress->fruitless_since = now;
  if (now - *progress->fruitless_since > kFruitlessMax)
    return Fail(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                fmt::format("node {} has no free space for bytes {} to {} of file {}, and no other "
                            "node took them within {} s",
                            full.front().value, range.begin, range.end, inode.file.value,
                            kFruitlessMax.ns / 1'000'000'000));
  SleepFor(kFrozenDelay);
  return Done{};
}

void WriteBehind::NoteError(Inode& inode, Failure failure) {
  stats_.Add(Counter::kErrors);
  {
    const MutexLock lock(inode.mutex);
    inode.behind.error = std::move(failure);
    ++inode.behind.error_count;
    inode.room.version.reset();  // Bytes to be stored may be missing.
  }
  DropFailedPages(inode);
}

void WriteBehind::DropFailedPages(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    inode.kernel.pages_version.reset();
  }
  blocks_.DropFile(inode.file);
  pages_.Drop(
      inode.file, [] {}, nullptr);
}

}  // namespace mosa::sai
