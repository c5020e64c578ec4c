#include "client-sai/sai/writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/failures.h"
#include "common/base/errno_status.h"

namespace mosa::sai {
namespace {

constexpr int kCommitsMax = 20;
// A node that refuses this often, each time after a new answer of the manager, will never accept.
constexpr int kRefusalsMax = 50;

}  // namespace

Outcome<Done> Writer::Commit(Inode& inode, bool last_close, bool tells_close) {
  MOSA_RETURN_IF_FAILED(commits_.TakePrivileges(inode));
  for (int attempt = 1;; ++attempt) {
    bool outdated = false;
    const Outcome<Done> committed =
        commits_.SendOnce(inode, {.last_close = last_close, .tells_close = tells_close}, &outdated);
    if (!outdated || attempt == kCommitsMax) return committed;
    MOSA_RETURN_IF_FAILED(MergeInline(inode));
  }
}

Outcome<Done> Writer::WriteAt(Inode& inode, uint64_t offset, std::span<const std::byte> data,
                              const Memory& memory) {
  if (offset > kFileBytesMax || data.size() > kFileBytesMax - offset)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                fmt::format("a write of {} bytes at offset {} exceeds the maximum file size, {}",
                            data.size(), offset, kFileBytesMax));
  auto stored = WriteInline(inode, offset, data);
  if (!stored.ok()) return stored.failure();
  if (!*stored) MOSA_RETURN_IF_FAILED(WriteBound(inode, offset, data, memory));
  blocks_.Drop(inode.file, {offset, offset + data.size()});
  return Done{};
}

// Returns true if the bytes went into the inline content.
Outcome<bool> Writer::WriteInline(Inode& inode, uint64_t offset, std::span<const std::byte> data) {
  MutexLock lock(inode.mutex);
  auto fresh = AwaitFresh(inode, lock);
  if (!fresh.ok()) return fresh.failure();
  const DataAccess& right = *fresh->access;
  if (right.layout.bound() && !right.is_inline && !inode.content.buffer) return false;
  const uint64_t size_after =
      std::max(AttributeCache::ViewOn(inode, fresh->attributes).size_bytes, offset + data.size());
  if (!right.layout.bound() && size_after <= right.inline_bytes_max) {
    PutInline(inode, *fresh, offset, data);
    return true;
  }
  lock.unlock();
  auto bound = EnsureBound(inode, size_after);
  if (!bound.ok()) return bound.failure();
  return false;
}

Outcome<Done> Writer::WriteBound(Inode& inode, uint64_t offset, std::span<const std::byte> data,
                                 const Memory& memory) {
  const auto write = [&](const DataAccess& access, const Piece& piece,
                         std::vector<NodeId>* refused) -> Outcome<bool> {
    const auto bytes = data.subspan(static_cast<size_t>(piece.range.begin - offset),
                                    static_cast<size_t>(piece.range.size()));
    // A piece that is not the last one is followed by the next piece, so it has no spare bytes.
    const bool is_last = piece.range.end == offset + data.size();
    const Memory of_piece{memory.owner, is_last ? memory.spare_bytes : 0};
    auto written = WritePiece(inode, access, piece, bytes, of_piece, refused);
    if (!written.ok() || !*written) return written;
    const Time now = lease_.ManagerNow();
    const MutexLock lock(inode.mutex);
    inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, piece.range.end);
    inode.unsaved.modify_time = now;
    if (inode.making.unsent_times) inode.making.unsent_times->modify_time.reset();
    inode.unsaved.data_dirty = inode.unsaved.needs_commit = true;
    return true;
  };
  return StorePieces(inode, {offset, offset + data.size()}, kPieceBytesMax, write);
}

// False if it was not written, because the `refused` nodes have no room or the layout has changed.
Outcome<bool> Writer::WritePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                                 std::span<const std::byte> data, const Memory& memory,
                                 std::vector<NodeId>* refused) {
  const bool all_local = std::all_of(piece.nodes.begin(), piece.nodes.end(),
                                     [&](NodeId node) { return nodes_.IsLocal(node); });
  if (!all_local) {
    {
      // The layout may have changed by the time the piece is stored.
      const MutexLock lock(inode.mutex);
      inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, access.generation);
    }
    auto buffered = write_behind_.Buffer(inode, piece, data, access.layout.chunk_bytes, memory);
    if (!buffered.ok()) return buffered.failure();
    return true;
  }
  // The piece may have been on other nodes, and what was buffered for them must not be stored
  // later.
  write_behind_.DrainOverlap(inode, piece.range);
  const StoreSection store(gate_, inode);
  if (!store.access().ok()) return store.access().failure();
  const DataAccess& current = **store.access();
  if (current.layout.segments != access.layout.segments) return false;
  for (const NodeId node : piece.nodes) {
    const Outcome<Done> written = WriteLocal(inode, current, node, piece.range.begin, data);
    if (written.ok()) continue;
    if (written.failure().code == StatusCode::kAborted) return false;
    if (written.failure().reason != ErrorReason::kNoSpace) return written.failure();
    refused->push_back(node);
    return false;
  }
  return true;
}

Outcome<Done> Writer::WriteLocal(Inode& inode, const DataAccess& access, NodeId node,
                                 uint64_t offset, std::span<const std::byte> data) {
  auto object = objects_.Local(inode, access, node, true);
  if (!object.ok()) {
    // The node may be restarting, or the capability expired: this waits and retries.
    const Status status = objects_.Write(inode, node, offset, data);
    if (!status.ok() && status.code() != StatusCode::kAborted) inode.NoteChangeFailed();
    if (!status.ok()) return FromStatus(status);
    return Done{};
  }
  // The node does not see writes by descriptor, so it cannot refuse a late one. This mount may have
  // been suspended since the store began.
  if (!gate_.MayStillStore(inode))
    return Fail(StatusCode::kAborted, ErrorReason::kStale,
                fmt::format("the layout of file {} was recalled", inode.file.value));
  size_t written = 0;
  while (written < data.size()) {
    const ssize_t count = pwrite((*object)->fd.get(), data.data() + written, data.size() - written,
                                 static_cast<off_t>(offset + written));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const Status failed = ErrnoStatus(errno, fmt::format("write {} bytes at {} of object {}",
                                                           data.size(), offset, inode.file.value));
      if (written > 0) inode.NoteChangeFailed();
      return FromStatus(failed);
    }
    written += static_cast<size_t>(count);
  }
  stats_.Add(Counter::kBytesWrittenLocal, data.size());
  {
    const MutexLock lock(inode.mutex);
    inode.local.wrote = true;
    inode.local.stores_known = false;
    inode.gate.stored_on.insert(node);
  }
  if (access.copied_eagerly)
    objects_.NoteWrittenLocally(inode, access, node, {offset, offset + data.size()});
  return Done{};
}

Outcome<Done> Writer::StorePieces(Inode& inode, ByteRange range, uint64_t piece_bytes_max,
                                  const StorePiece& store) {
  WriteBehind::SpillProgress progress;
  int refusals = 0;
  while (!range.empty()) {
    auto current = gate_.EnsureThawed(inode);
    if (!current.ok()) return current.failure();
    const AccessPtr access = *std::move(current);
    MOSA_RETURN_IF_FAILED(StoreGate::CheckBound(inode, *access));
    if (access->lost) return NodeObjects::LostBytes(inode);
    const Piece piece = FirstPiece(access->layout, range, piece_bytes_max);
    std::map<NodeId, uint64_t> taken;
    std::vector<NodeId> refused;
    auto room = TakeRoom(inode, *access, piece, &taken, &refused);
    if (!room.ok()) return room.failure();
    Outcome<bool> stored = false;
    if (*room) stored = store(*access, piece, &refused);
    if (stored.ok() && *stored) {
      NoteStored(inode, piece);
      progress = {};
      refusals = 0;
      range.begin = piece.range.end;
      continue;
    }
    for (const auto& [node, bytes] : taken) grants_.PutBack(node, bytes);
    if (!stored.ok()) return stored.failure();
    if (!refused.empty()) {
      MOSA_RETURN_IF_FAILED(write_behind_.SpillPatiently(inode, piece.range, refused, &progress));
      continue;
    }
    if (++refusals == kRefusalsMax)
      return Fail(StatusCode::kUnavailable, ErrorReason::kTimedOut,
                  fmt::format("bytes {} to {} of file {} were refused {} times by nodes with a "
                              "newer layout than the manager's: try again",
                              piece.range.begin, piece.range.end, inode.file.value, refusals));
    StoreGate::Pause(refusals);
  }
  return Done{};
}

// Takes room for the new pages of a piece on every node that keeps a copy. False if the `refused`
// nodes have none; then nothing is taken.
Outcome<bool> Writer::TakeRoom(Inode& inode, const DataAccess& access, const Piece& piece,
                               std::map<NodeId, uint64_t>* taken, std::vector<NodeId>* refused) {
  const ByteRange pages = WidenToPages(piece.range);
  uint64_t bytes = 0;
  {
    const MutexLock lock(inode.mutex);
    bytes = inode.room.pages.MissingBytes(pages);
  }
  for (const NodeId node : piece.nodes) {
    auto room = grants_.Take(node, bytes);
    if (room.ok() && *room) {
      (*taken)[node] = bytes;
      continue;
    }
    if (room.ok() && objects_.IsAllocated(inode, access, node, pages)) continue;
    for (const auto& [earlier, put_back] : std::exchange(*taken, {}))
      grants_.PutBack(earlier, put_back);
    if (!room.ok()) return room.failure();
    refused->push_back(node);
    return false;
  }
  return true;
}

void Writer::NoteStored(Inode& inode, const Piece& piece) {
  const MutexLock lock(inode.mutex);
  const ByteRange pages = WidenToPages(piece.range);
  const uint64_t bytes = inode.room.pages.MissingBytes(pages);
  inode.room.pages.Add(pages);
  for (const NodeId node : piece.nodes) inode.room.allocated[node] += bytes;
}

void Writer::LayInline(Inode& inode, const Fresh& fresh) {
  if (inode.content.buffer && inode.content.version == fresh.version) return;
  std::string content;
  if (fresh.access->is_inline)
    content = fresh.access->inline_data.substr(0, fresh.access->inline_valid_bytes);
  content.resize(static_cast<size_t>(AttributeCache::ViewOn(inode, fresh.attributes).size_bytes));
  for (const ByteRange& own : inode.content.ranges.All())
    std::memcpy(content.data() + own.begin, inode.content.buffer->data() + own.begin,
                static_cast<size_t>(own.size()));
  inode.content.buffer = std::move(content);
  inode.content.version = fresh.version;
}

void Writer::PutInline(Inode& inode, const Fresh& fresh, uint64_t offset,
                       std::span<const std::byte> data) {
  LayInline(inode, fresh);
  const uint64_t end = offset + data.size();
  std::string& content = *inode.content.buffer;
  if (content.size() < end) content.resize(static_cast<size_t>(end));
  std::memcpy(content.data() + offset, data.data(), data.size());
  NoteInlineWritten(inode, {offset, end});
  stats_.Add(Counter::kBytesWrittenInline, data.size());
}

void Writer::NoteInlineWritten(Inode& inode, ByteRange range) {
  inode.content.ranges.Add(range);
  inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, range.end);
  inode.unsaved.data_dirty = inode.unsaved.needs_commit = true;
  inode.unsaved.modify_time = lease_.ManagerNow();
  if (inode.making.unsent_times) inode.making.unsent_times->modify_time.reset();
}

Outcome<Fresh> Writer::AwaitFresh(Inode& inode, MutexLock& lock) {
  for (;;) {
    lock.unlock();
    auto fresh = rights_.EnsureFresh(inode, true);
    lock.lock();
    if (!fresh.ok() || (inode.making.state != MakeState::kSending &&
                        inode.known.own_changes == fresh->own_changes))
      return fresh;
  }
}

Outcome<Done> Writer::MergeInline(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    if (!inode.content.buffer || inode.making.state != MakeState::kSent) return Done{};
  }
  auto fresh = rights_.EnsureFresh(inode, false);
  if (!fresh.ok()) return fresh.failure();
  uint64_t size = 0;
  {
    const MutexLock lock(inode.mutex);
    size = AttributeCache::ViewOn(inode, fresh->attributes).size_bytes;
    if (!fresh->access->layout.bound() && size <= fresh->access->inline_bytes_max) {
      LayInline(inode, *fresh);
      return Done{};
    }
  }
  auto bound = EnsureBound(inode, size);
  if (!bound.ok()) return bound.failure();
  write_behind_.Drain(inode);
  return Done{};
}

// Gives the file objects and moves its inline content into them. Meanwhile nobody else stores bytes
// of the file; the manager is told as soon as it is done.
Outcome<AccessPtr> Writer::EnsureBound(Inode& inode, uint64_t size_bytes) {
  auto access = gate_.EnsureThawed(inode);
  if (!access.ok()) return access.failure();
  const Time begun = clock_.Monotonic();
  if (!(*access)->layout.bound() || (*access)->is_inline) access = Bind(inode, size_bytes);
  if (!access.ok()) return access.failure();
  const bool manager_has_content = (*access)->is_inline;
  {
    const MutexLock lock(inode.mutex);
    inode.content.moves = manager_has_content;
  }
  Outcome<Done> moved = PutInlineIntoObjects(inode, **access);
  if (moved.ok() && clock_.Monotonic() - begun > kInlineMoveMax)
    moved = Fail(StatusCode::kUnavailable, ErrorReason::kTimedOut,
                 fmt::format("moving the content of file {} to its nodes took too long: try again",
                             inode.file.value));
  if (moved.ok() && manager_has_content) moved = Commit(inode, false);
  {
    const MutexLock lock(inode.mutex);
    inode.content.moves = false;
  }
  if (!moved.ok() && manager_has_content) gate_.Thaw(inode);
  if (!moved.ok()) return moved.failure();
  const MutexLock lock(inode.mutex);
  return inode.right.access;
}

Outcome<AccessPtr> Writer::Bind(Inode& inode, uint64_t size_bytes) {
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(inode, /*bare=*/true, size_bytes));
  {
    // It was bound when it was made, or its hints caused that.
    const MutexLock lock(inode.mutex);
    if (inode.right.access->layout.bound() && !inode.right.access->is_inline &&
        inode.right.era != 0)
      return inode.right.access;
  }
  for (BindRetries retries(clock_.Monotonic());;) {
    const Mark mark = recalls_.Now();
    auto reply = calls_.Ask<BindReply>(BindRequest{inode.file, size_bytes});
    if (reply.ok()) return rights_.Store(inode, std::move(reply->access), mark, 0);
    const std::optional<Duration> delay = retries.DelayAfter(reply.failure(), clock_.Monotonic());
    if (!delay && reply.failure().code == StatusCode::kAborted)
      return StoreGate::FrozenTooLong(inode, kInlineMoveMax);
    if (!delay) return reply.failure();
    SleepFor(*delay);
  }
}

// Selects the part of a bound file's inline content that must go to its objects: all of it, with
// this mount's own bytes on top, or only those bytes if another mount has moved the rest. Once the
// file is bound, inline content can no longer change.
void Writer::MoveInlineToObjects(Inode& inode, const DataAccess& access, std::string* content,
                                 std::vector<ByteRange>* ranges) {
  const MutexLock lock(inode.mutex);
  const std::vector<ByteRange> own = inode.content.ranges.All();
  if (access.is_inline) *content = access.inline_data.substr(0, access.inline_valid_bytes);
  if (!own.empty()) content->resize(std::max<size_t>(content->size(), own.back().end));
  for (const ByteRange& range : own)
    std::memcpy(content->data() + range.begin, inode.content.buffer->data() + range.begin,
                static_cast<size_t>(range.size()));
  *ranges = own;
  if (access.is_inline && !content->empty()) *ranges = {{0, content->size()}};
  if (!ranges->empty()) inode.unsaved.needs_commit = true;
}

// A failure leaves the inline content where it is.
Outcome<Done> Writer::PutInlineIntoObjects(Inode& inode, const DataAccess& access) {
  const bool wait = access.is_inline;
  std::string content;
  std::vector<ByteRange> ranges;
  uint64_t errors_before = 0;
  MoveInlineToObjects(inode, access, &content, &ranges);
  {
    const MutexLock lock(inode.mutex);
    errors_before = inode.behind.error_count;
  }
  for (const ByteRange& range : ranges)
    MOSA_RETURN_IF_FAILED(WriteBound(
        inode, range.begin,
        std::as_bytes(std::span(content)).subspan(range.begin, static_cast<size_t>(range.size())),
        {}));
  if (wait) write_behind_.Drain(inode);
  const MutexLock lock(inode.mutex);
  if (wait && inode.behind.error_count != errors_before) return inode.behind.error;
  inode.content.buffer.reset();
  inode.content.ranges.Clear();
  ++inode.known.own_changes;
  rights_.NoteInlineMoved(inode);
  return Done{};
}

}  // namespace mosa::sai
