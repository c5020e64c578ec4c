// Write-behind: sending buffered extents to other nodes, and handling nodes that are unreachable or
// full.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr Duration kBufferWaitMax = Seconds(1);
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

void Filesystem::Impl::NoteError(Inode& inode, Failure failure) {
  stats_.Add(Counter::kErrors);
  {
    const MutexLock lock(inode.mutex);
    inode.error = std::move(failure);
    ++inode.error_count;
    inode.allocated_version.reset();  // Bytes to be stored may be missing.
  }
  DropFailedPages(inode);
}

// Bytes that could not be stored may be in cached pages here, while others read what the nodes
// have. A page under writeback is dropped once that has failed; nothing waits for it.
void Filesystem::Impl::DropFailedPages(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    inode.pages_version.reset();
  }
  blocks_.DropFile(inode.file);
  pages_.Drop(
      inode.file, [] {}, nullptr);
}

Outcome<Done> Filesystem::Impl::BufferPiece(Inode& inode, const Piece& piece,
                                            std::span<const std::byte> data, uint64_t chunk_bytes,
                                            const Memory& memory) {
  inode.io.AssertHeld();
  uint64_t offset = piece.range.begin;
  while (!data.empty()) {
    const uint64_t end = std::min(piece.range.end, WriteBuffer::BoundaryAfter(offset, chunk_bytes));
    const auto bytes = data.first(static_cast<size_t>(end - offset));
    AwaitRoomForBuffer(inode, bytes.size());
    {
      MutexLock lock(inode.mutex);
      while (inode.buffer.OverlapsTaken({offset, end})) inode.changed.wait(lock);
      const bool begins = inode.buffer.empty();
      const uint64_t grown =
          inode.buffer.Put(offset, bytes, chunk_bytes, OfPart(memory, bytes, data));
      if (begins) buffering_.Insert(inodes_.Get(inode.file));
      buffered_.Add(grown);
    }
    // An append waits for its bytes within the same call.
    SendBuffered(inode, false,
                 inode.append_hold ? WaitBudget::OfThisThread().end : std::optional<SteadyTime>());
    offset = end;
    data = data.subspan(bytes.size());
  }
  return Done{};
}

void Filesystem::Impl::AwaitRoomForBuffer(Inode& inode, uint64_t bytes) {
  bool refused = false;
  {
    MutexLock lock(inode.mutex);
    const auto has_room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex) {
      return inode.buffer.bytes() + bytes <= options_.write_behind_file_bytes_max &&
             inode.buffer.extents() < kExtentsMax;
    };
    if (!has_room()) {
      lock.unlock();
      SendBuffered(inode, true, WaitBudget::OfThisThread().end);
      lock.lock();
      while (inode.buffer.any_taken() && !has_room()) inode.changed.wait(lock);
    }
    refused = !inode.full_nodes.empty();
  }
  if (refused) Drain(inode);
  if (buffered_.HasRoomFor(bytes)) return;
  for (const InodePtr& other : buffering_.All()) SendBuffered(*other, true);
  // Bytes that no node accepts stay until their writer returns, so do not wait for them for ever.
  buffered_.AwaitRoomFor(bytes, kBufferWaitMax);
}

// A program may come to wait for the store and must be answered in time. Its budget starts when the
// store begins, because bytes may wait long for a slow node before that. With a program that waits
// already it ends when that program's does. But many mounts may be storing on one node, so a store
// on a node that answers has kStoreMin.
void Filesystem::Impl::RunStore(NodeId node, std::function<void()> store,
                                std::optional<SteadyTime> end) {
  stores_.Run(
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

void Filesystem::Impl::SendBuffered(Inode& inode, bool all, std::optional<SteadyTime> end) {
  std::vector<std::shared_ptr<const Extent>> extents;
  AccessPtr access;
  {
    const MutexLock lock(inode.mutex);
    if (!inode.buffer.any_open()) return;
    access = inode.access;
    // Buffered bytes must leave even if the layout is unknown; the store then fails where it must.
    const uint64_t chunk_bytes = inode.access ? inode.access->layout.chunk_bytes : 0;
    all = all || inode.buffer.open_extents() >= kOpenExtentsMax;
    extents = inode.buffer.Take(all || chunk_bytes == 0, chunk_bytes);
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

void Filesystem::Impl::SendExtent(const InodePtr& inode,
                                  const std::shared_ptr<const Extent>& extent) {
  std::vector<NodeId> full;
  const Outcome<Done> stored = StoreExtent(*inode, *extent, &full);
  if (!stored.ok() && full.empty()) NoteError(*inode, stored.failure());
  const MutexLock lock(inode->mutex);
  if (full.empty()) {
    inode->buffer.Finish(*extent);
    NoteUnbuffered(*inode, extent->bytes().size());
  } else {
    inode->buffer.PutBack(*extent);
    inode->full_nodes.insert(inode->full_nodes.end(), full.begin(), full.end());
  }
  inode->changed.notify_all();
}

// Accounts for bytes that left the inode's buffer.
void Filesystem::Impl::NoteUnbuffered(Inode& inode, uint64_t bytes) {
  if (inode.buffer.empty()) buffering_.Erase(inode.file);
  buffered_.Remove(bytes);
}

Outcome<Done> Filesystem::Impl::StoreExtent(Inode& inode, const Extent& extent,
                                            std::vector<NodeId>* full) {
  return WithStore(inode, [&](const DataAccess& access) -> Outcome<Done> {
    for (const Piece& piece : SplitRange(access.layout, extent.range())) {
      const auto data =
          extent.bytes().subspan(static_cast<size_t>(piece.range.begin - extent.offset),
                                 static_cast<size_t>(piece.range.size()));
      for (const NodeId node : piece.nodes) {
        const Status status = WriteToNode(inode, node, piece.range.begin, data);
        if (status.code() == StatusCode::kResourceExhausted) full->push_back(node);
        if (!status.ok()) return FromStatus(status);
      }
    }
    return Done{};
  });
}

Status Filesystem::Impl::WriteToNode(Inode& inode, NodeId node, uint64_t offset,
                                     std::span<const std::byte> data) {
  const Status status = WithRetries(inode, node, true, [&](const ObjectTarget& target) {
    return nodes_.Write(target, offset, data);
  });
  if (!status.ok()) return status;
  stats_.Add(Counter::kBytesWrittenRemote, data.size());
  const MutexLock lock(inode.mutex);
  inode.stored_on.insert(node);
  return status;
}

Status Filesystem::Impl::WithRetries(Inode& inode, NodeId node, bool write,
                                     const std::function<Status(const ObjectTarget&)>& operation) {
  const Time begun = clock_.Monotonic();
  const uint64_t era = lease_.ValidEra();
  AccessPtr access;
  for (uint32_t attempt = 1;; ++attempt) {
    // Without a lease the manager no longer waits for this mount, so the layout may have changed.
    if (write && attempt > 1 && (era == 0 || lease_.ValidEra() != era))
      return AbortedError("the lease expired during the write");
    if (!access) {
      const MutexLock lock(inode.mutex);
      access = inode.access;
    }
    const SteadyTime asked = SteadyNow();
    const Status status = operation({node, inode.file, access->capability});
    const bool unreachable =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
    const std::chrono::nanoseconds enough(WaitBudget::kTransferMin.ns);
    if (!unreachable || SteadyNow() - asked >= enough) node_states_.NoteCall(node, !unreachable);
    if (status.ok()) return status;
    if (status.code() == StatusCode::kPermissionDenied || status.code() == StatusCode::kAborted) {
      // The right belongs to an older session, layout or incarnation, or has expired. The next
      // layout may place the bytes on other nodes.
      const MutexLock lock(inode.mutex);
      if (inode.access == access) inode.access_era = 0;
      return AbortedError(MessageOf(status));
    }
    if (!unreachable) return status;
    const auto delay = RetryDelay(attempt, clock_.Monotonic() - begun, node_states_.IsAlive(node));
    if (!delay || WaitBudget::IsSpent()) return status;
    SleepFor(*delay);
  }
}

AccessPtr Filesystem::Impl::RenewRight(Inode& inode, const AccessPtr& refused) {
  {
    const MutexLock lock(inode.mutex);
    if (inode.access == refused) inode.access_era = 0;
  }
  const auto renewed = EnsureAccess(inode, refused->may_write);
  return renewed.ok() ? *renewed : refused;
}

void Filesystem::Impl::DrainOverlap(Inode& inode, ByteRange range) {
  {
    const MutexLock lock(inode.mutex);
    if (!inode.buffer.Overlaps(range)) return;
  }
  Drain(inode);
}

void Filesystem::Impl::Drain(Inode& inode) {
  SpillProgress progress;
  for (;;) {
    SendBuffered(inode, true, WaitBudget::OfThisThread().end);
    std::vector<NodeId> refused;
    ByteRange first;
    {
      MutexLock lock(inode.mutex);
      while (inode.buffer.any_taken()) inode.changed.wait(lock);
      refused = std::exchange(inode.full_nodes, {});
      if (!inode.buffer.any_open()) return;
      first = inode.buffer.first_open();
    }
    if (refused.empty()) continue;
    const Outcome<Done> spilled = SpillPatiently(inode, first, refused, &progress);
    if (spilled.ok()) continue;
    NoteError(inode, spilled.failure());
    // Other extents may have been sent again meanwhile.
    MutexLock lock(inode.mutex);
    while (inode.buffer.any_taken()) inode.changed.wait(lock);
    inode.full_nodes.clear();
    NoteUnbuffered(inode, inode.buffer.Cut(0));
    return;
  }
}

}  // namespace mosa::sai
