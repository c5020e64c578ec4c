// Reading: inline content, local objects by descriptor, and other objects by prefetching.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/impl.h"
#include "common/base/hash.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// A buffer that is not zeroed; the result keeps it alive.
struct Buffer {
  explicit Buffer(size_t size) : bytes(new std::byte[size]) {}
  std::unique_ptr<std::byte[]> bytes;
};

// A layout is recalled a few times in a file's life, not during one read.
constexpr int kReadsMax = 8;
// Each attempt follows a new answer of the manager.
constexpr int kRefusedReadsMax = 4;

// For shorter reads, mapping costs more than it saves.
constexpr size_t kMappedBytesMin = 64 << 10;

// The kernel caches what it reads in pages, and asks again for a missing page.
bool IsCached(OpenFile& handle) {
  const MutexLock lock(handle.inode->mutex);
  return handle.mode.kind == OpenMode::Kind::kCached && (handle.flags & O_DIRECT) == 0;
}

ReadResult InBuffer(const std::shared_ptr<Buffer>& buffer, uint64_t offset, size_t size) {
  return {buffer, -1, offset, size, {buffer->bytes.get(), size}, {}};
}

}  // namespace

Filesystem::Impl::LayoutMark Filesystem::Impl::MarkLayout(Inode& inode) const {
  return {inode.access_recalls, lease_.ValidEra(), node_states_.returned_empty()};
}

template <typename Value>
Outcome<Value> Filesystem::Impl::ByOneLayout(Inode& inode,
                                             const std::function<Outcome<Value>()>& read) {
  const auto mark_now = [&] {
    const MutexLock lock(inode.mutex);
    return MarkLayout(inode);
  };
  for (int attempt = 1;; ++attempt) {
    const LayoutMark mark = mark_now();
    Outcome<Value> result = read();
    // A node refused the right, or lacks an object that it should have.
    const bool refused = !result.ok() && result.failure().code == StatusCode::kAborted;
    if (refused && attempt < kRefusedReadsMax) continue;
    // Without a lease, the read began with a question to the manager, which starts another era.
    if (refused || mark == mark_now()) return result;
    if (attempt == kReadsMax)
      return Fail(StatusCode::kUnavailable, ErrorReason::kTimedOut,
                  fmt::format("the layout of file {} changed {} times while it was being read",
                              inode.file.value, kReadsMax));
  }
}

Outcome<ReadResult> Filesystem::Impl::Read(HandleId id, uint64_t offset, size_t size_bytes) {
  stats_.Add(Counter::kReads);
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid, "the file is not open");
  Inode& inode = *handle->inode;
  for (uint64_t before = inode.cuts;;) {
    auto result =
        ByOneLayout<ReadResult>(inode, [&] { return ReadOnce(*handle, offset, size_bytes); });
    const uint64_t after = inode.cuts;
    if (after == before) {
      // What the program has written and what could not be stored would be missing.
      if (handle->wrote) MOSA_RETURN_IF_FAILED(UntoldError(*handle));
      return result;
    }
    before = after;
  }
}

Outcome<ReadResult> Filesystem::Impl::ReadOnce(OpenFile& handle, uint64_t offset,
                                               size_t size_bytes) {
  Inode& inode = *handle.inode;
  auto fresh = EnsureFresh(inode, false);
  if (!fresh.ok()) return fresh.failure();
  RefreshFromKernelWrites(inode);
  ByteRange range;
  uint64_t file_bytes = 0;
  AccessPtr access = fresh->access;
  for (bool has_waited = false;;) {
    MutexLock lock(inode.mutex);
    const bool from_buffer = inode.inline_buffer.has_value();
    // The commit of a last close, behind which the mount is no writer any more, may arrive later
    // than the question of which this right is the answer.
    if (inode.committing.data_dirty && !access->may_write && !std::exchange(has_waited, true)) {
      lock.unlock();
      const MutexLock io(inode.io);
      fresh = EnsureFresh(inode, false);
      if (!fresh.ok()) return fresh.failure();
      access = fresh->access;
      continue;
    }
    const bool outdated = from_buffer && inode.make_state == MakeState::kSent &&
                          (inode.inline_version != fresh->version || access->layout.bound());
    if (outdated || inode.own_changes != fresh->own_changes ||
        !inode.AccessServes(*access, /*write=*/false)) {
      lock.unlock();
      if (outdated) {
        const MutexLock io(inode.io);
        MOSA_RETURN_IF_FAILED(MergeInline(inode));
      }
      fresh = EnsureFresh(inode, false);
      if (!fresh.ok()) return fresh.failure();
      access = fresh->access;
      continue;
    }
    if (handle.wrote) {
      if (std::optional<Failure> late = OwnBytesAreLate(inode, *access)) return *std::move(late);
    }
    file_bytes = ViewOn(inode, fresh->attributes).size_bytes;
    if (inode.cutting_to) file_bytes = std::min(file_bytes, *inode.cutting_to);
    if (offset >= file_bytes) return ReadResult{nullptr, -1, offset, 0, {}, {}};
    range = {offset, std::min(file_bytes, offset + size_bytes)};
    const bool from_access = !from_buffer && (!access->layout.bound() || access->is_inline);
    if (from_buffer || from_access) {
      const std::string& content = from_buffer ? *inode.inline_buffer : access->inline_data;
      const uint64_t valid = from_buffer
                                 ? content.size()
                                 : std::min<uint64_t>(content.size(), access->inline_valid_bytes);
      const auto size = static_cast<size_t>(range.size());
      const auto buffer = std::make_shared<Buffer>(size);
      const size_t have =
          valid > offset ? static_cast<size_t>(std::min<uint64_t>(valid - offset, size)) : 0;
      if (have > 0) std::memcpy(buffer->bytes.get(), content.data() + offset, have);
      std::memset(buffer->bytes.get() + have, 0, size - have);
      stats_.Add(Counter::kBytesReadInline, size);
      return InBuffer(buffer, offset, size);
    }
    break;
  }
  return ReadBound(handle, AfterOwnWrites(inode, range, access), range, file_bytes);
}

// Own writes of these bytes are stored first, so that the read returns them. Returns the right to
// read by then.
AccessPtr Filesystem::Impl::AfterOwnWrites(Inode& inode, ByteRange range, AccessPtr access) {
  for (;;) {
    {
      const MutexLock lock(inode.mutex);
      if (!inode.buffer.Overlaps(range)) return access;
    }
    const MutexLock io(inode.io);
    Drain(inode);
    const MutexLock lock(inode.mutex);
    access = inode.access;
  }
}

// Holds until the file is truncated to 0 bytes. Bytes written into it could not be read either.
Failure Filesystem::Impl::LostBytes(const Inode& inode) {
  return Fail(StatusCode::kDataLoss, ErrorReason::kNodeLost,
              fmt::format("bytes of file {} are lost: the node that held them no longer has them",
                          inode.file.value));
}

Outcome<ReadResult> Filesystem::Impl::ReadBound(OpenFile& handle, const AccessPtr& access,
                                                ByteRange range, uint64_t file_bytes) {
  Inode& inode = *handle.inode;
  if (access->lost) return LostBytes(inode);
  const auto size = static_cast<size_t>(range.size());
  if (std::optional<ReadResult> local = ReadByDescriptor(handle, *access, range)) {
    stats_.Add(Counter::kBytesReadLocal, size);
    return *std::move(local);
  }
  ByteRange ahead;
  const uint64_t window_max =
      ReadWindow(access->layout, options_.read_ahead_bytes_max, blocks_.ShareBytes());
  {
    const MutexLock lock(inode.mutex);
    // Prefetched bytes would become stale at once while this mount writes.
    if (inode.write_handles == 0) ahead = handle.read_ahead.OnRead(range, file_bytes, window_max);
  }
  if (!ahead.empty()) FetchAhead(handle.inode, access, ahead);
  const std::shared_ptr<Block> first = blocks_.Find(inode.file, range.begin, range.end);
  if (first && first->range().end >= range.end && !first->Wait(options_.waits)) {
    const std::byte* bytes = first->bytes() + (range.begin - first->range().begin);
    return ReadResult{first, -1, range.begin, size, {bytes, size}, {}};
  }
  const auto buffer = std::make_shared<Buffer>(size);
  uint64_t at = range.begin;
  while (at < range.end) {
    std::byte* out = buffer->bytes.get() + (at - range.begin);
    const std::shared_ptr<Block> block = blocks_.Find(inode.file, at, range.end);
    if (block && !block->Wait(options_.waits)) {
      const uint64_t end = std::min(range.end, block->range().end);
      std::memcpy(out, block->bytes() + (at - block->range().begin), end - at);
      at = end;
      continue;
    }
    uint64_t end = range.end;
    if (!block) {
      // Up to the next block that is cached or being fetched.
      for (uint64_t probe = at + kPageBytes; probe < range.end; probe += kExtentBytesMax)
        if (blocks_.Find(inode.file, probe)) end = std::min(end, probe);
    }
    MOSA_RETURN_IF_FAILED(FetchRange(inode, *access, {at, end}, out, true));
    at = end;
  }
  return InBuffer(buffer, range.begin, size);
}

// The range as a part of one local object.
std::optional<ReadResult> Filesystem::Impl::ReadByDescriptor(OpenFile& handle,
                                                             const DataAccess& access,
                                                             ByteRange range) {
  Inode& inode = *handle.inode;
  const std::vector<Piece> pieces = SplitRange(access.layout, range);
  std::vector<NodeId> holders;
  if (pieces.size() == 1) {
    holders = pieces.front().nodes;
  } else if (const auto holder = LocalHolder(access)) {
    holders.push_back(*holder);
  }
  for (const NodeId node : holders) {
    if (!nodes_.IsLocal(node)) continue;
    auto object = LocalObjectOf(inode, access, node, false);
    struct stat status {};
    if (!object.ok() || fstat((*object)->fd.get(), &status) != 0 || status.st_nlink == 0) continue;
    // Beyond the object's end the file is zero, which a descriptor cannot express.
    const auto size_bytes = static_cast<uint64_t>(status.st_size);
    if (size_bytes < range.end) continue;
    const int descriptor = (*object)->fd.get();
    ReadResult result{*object, descriptor, range.begin, static_cast<size_t>(range.size()), {}, {}};
    const bool has_holes =
        static_cast<uint64_t>(status.st_blocks) * 512 != WidenToPages({0, size_bytes}).end;
    if (result.size_bytes < kMappedBytesMin || has_holes || !IsCached(handle)) return result;
    if (auto bytes = handle.view.Map(*object, descriptor, range)) {
      result.mapped = {bytes.get(), result.size_bytes};
      result.keep = std::move(bytes);
    }
    return result;
  }
  return std::nullopt;
}

void Filesystem::Impl::OnUnreadableMapping(HandleId id) {
  if (const std::shared_ptr<OpenFile> handle = handles_.FindFile(id)) handle->view.GiveUp();
}

bool Filesystem::Impl::ReadLocal(Inode& inode, const DataAccess& access, NodeId node,
                                 ByteRange range, std::byte* out) {
  auto object = LocalObjectOf(inode, access, node, false);
  struct stat status {};
  if (!object.ok() || fstat((*object)->fd.get(), &status) != 0 || status.st_nlink == 0)
    return false;
  const auto size = static_cast<size_t>(range.size());
  size_t have = 0;
  while (have < size) {
    const ssize_t count =
        pread((*object)->fd.get(), out + have, size - have, static_cast<off_t>(range.begin + have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    have += static_cast<size_t>(count);
  }
  std::memset(out + have, 0, size - have);
  return true;
}

void Filesystem::Impl::FetchAhead(const InodePtr& inode, const AccessPtr& access, ByteRange range) {
  std::vector<std::shared_ptr<Block>> blocks;
  LayoutMark mark;
  {
    // After a recall, the blocks would be cached under an older layout.
    const MutexLock lock(inode->mutex);
    if (inode->access != access || inode->access_era != lease_.ValidEra()) return;
    blocks = blocks_.Add(inode->file, range);
    mark = MarkLayout(*inode);
  }
  const uint32_t at_once = FetchesPerLane(access->layout);
  for (const std::shared_ptr<Block>& block : blocks) {
    fetches_.Run({inode->file, LaneOf(access->layout, block->range().begin)}, at_once,
                 [this, inode, access, block, mark] {
                   // The cache has dropped it, for example at a close, and nobody waits for it.
                   if (block.use_count() == 1) return;
                   const WaitBudget budget(WaitBudget::ForBackground());
                   Outcome<Done> fetched =
                       FetchRange(*inode, *access, block->range(), block->bytes(), false);
                   {
                     const MutexLock lock(inode->mutex);
                     if (fetched.ok() && MarkLayout(*inode) != mark)
                       fetched = Fail(StatusCode::kAborted, ErrorReason::kStale,
                                      "the layout was recalled during the read");
                   }
                   if (!fetched.ok()) blocks_.DropBlock(inode->file, *block);
                   block->Finish(fetched.ok() ? std::nullopt : std::optional(fetched.failure()));
                 });
  }
}

Outcome<Done> Filesystem::Impl::FetchRange(Inode& inode, const DataAccess& access, ByteRange range,
                                           std::byte* out, bool parallel) {
  const std::vector<Piece> pieces = SplitRange(access.layout, range, kExtentBytesMax);
  std::vector<Outcome<Done>> results(pieces.size(), Outcome<Done>(Done{}));
  const auto fetch = [&](size_t i) {
    results[i] = FetchPiece(inode, access, pieces[i], out + (pieces[i].range.begin - range.begin));
  };
  if (parallel && pieces.size() > 1) {
    Countdown others(pieces.size() - 1);
    for (size_t i = 1; i < pieces.size(); ++i) {
      reads_.Run([&, i, limit = WaitBudget::OfThisThread()] {
        const WaitBudget budget(limit);
        fetch(i);
        others.Arrive();
      });
    }
    fetch(0);
    others.Wait();
  } else {
    for (size_t i = 0; i < pieces.size(); ++i) fetch(i);
  }
  for (const Outcome<Done>& result : results) MOSA_RETURN_IF_FAILED(result);
  return Done{};
}

Outcome<Done> Filesystem::Impl::FetchPiece(Inode& inode, const DataAccess& access,
                                           const Piece& piece, std::byte* out) {
  const auto size = static_cast<size_t>(piece.range.size());
  std::vector<CopyChoice> copies;
  for (const NodeId node : piece.nodes)
    copies.push_back({node, nodes_.IsLocal(node), node_states_.IsAlive(node)});
  // Clients start with different copies, and a stream rotates through all of them.
  const uint64_t stretch = piece.range.begin / std::max(access.layout.chunk_bytes, kSpreadBytesMin);
  const std::vector<NodeId> order =
      OrderCopies(copies, Mix64(client_.value ^ Mix64(inode.file.value ^ Mix64(stretch))));
  Status status = OkStatus();
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_last = i + 1 == order.size();
    if (is_last && !nodes_.IsLocal(order[i]) && !node_states_.IsAlive(order[i]) &&
        order.size() == 1)
      return Fail(
          StatusCode::kUnavailable, ErrorReason::kNodeLost,
          fmt::format("node {} is silent and holds the only copy of bytes {} to {} of file {}",
                      order[i].value, piece.range.begin, piece.range.end, inode.file.value));
    if (nodes_.IsLocal(order[i]) && ReadLocal(inode, access, order[i], piece.range, out)) {
      stats_.Add(Counter::kBytesReadLocal, size);
      return Done{};
    }
    const auto read = [&](const ObjectTarget& target) {
      return nodes_.Read(target, piece.range.begin, {out, size});
    };
    // While another copy exists, do not wait for a node to return.
    status = is_last ? WithRetries(inode, order[i], false, read)
                     : read({order[i], inode.file, access.capability});
    if (status.code() == StatusCode::kNotFound && IsKnownEmpty(access, order[i])) {
      std::memset(out, 0, size);
      return Done{};
    }
    if (status.ok()) {
      stats_.Add(nodes_.IsLocal(order[i]) ? Counter::kBytesReadLocal : Counter::kBytesReadRemote,
                 size);
      return Done{};
    }
  }
  if (status.code() == StatusCode::kNotFound) return ObjectMissing(inode, order.back());
  return FromStatus(status);
}

bool Filesystem::Impl::IsKnownEmpty(const DataAccess& access, NodeId node) {
  return std::binary_search(access.empty_nodes.begin(), access.empty_nodes.end(), node);
}

Failure Filesystem::Impl::ObjectMissing(Inode& inode, NodeId node) {
  {
    const MutexLock lock(inode.mutex);
    inode.access_era = 0;
  }
  return Fail(StatusCode::kAborted, ErrorReason::kNodeLost,
              fmt::format("node {} has no object of file {} although bytes were committed there, "
                          "so they are lost: rerun the task that wrote them",
                          node.value, inode.file.value));
}

Outcome<uint64_t> Filesystem::Impl::Seek(HandleId id, uint64_t offset, SeekKind kind) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid, "the file is not open");
  auto result =
      ByOneLayout<uint64_t>(*handle->inode, [&] { return SeekOnce(*handle->inode, offset, kind); });
  if (handle->wrote) MOSA_RETURN_IF_FAILED(UntoldError(*handle));
  return result;
}

Outcome<uint64_t> Filesystem::Impl::SeekOnce(Inode& inode, uint64_t offset, SeekKind kind) {
  const MutexLock io(inode.io);
  RefreshFromKernelWrites(inode);
  Drain(inode);
  auto fresh = EnsureFresh(inode, false);
  if (!fresh.ok()) return fresh.failure();
  const AccessPtr access = fresh->access;
  uint64_t file_bytes = 0;
  bool may_have_holes = false;
  {
    const MutexLock lock(inode.mutex);
    const Attributes view = ViewOn(inode, fresh->attributes);
    file_bytes = view.size_bytes;
    const bool is_object = access->layout.bound() && !access->is_inline && !inode.inline_buffer;
    may_have_holes = is_object && (inode.unsaved.needs_commit || view.allocated_bytes < file_bytes);
  }
  if (offset >= file_bytes)
    return Fail(
        StatusCode::kNotFound, ErrorReason::kNoEntry,
        fmt::format("offset {} is at or beyond the end of the file, {}", offset, file_bytes));
  if (!may_have_holes) return kind == SeekKind::kData ? offset : file_bytes;
  const ByteRange range{offset, file_bytes};
  return kind == SeekKind::kData ? SeekData(inode, *access, range)
                                 : SeekHole(inode, *access, range);
}

// Returns the object's next data or hole; absent if there is none, or no object.
Outcome<std::optional<uint64_t>> Filesystem::Impl::SeekObject(Inode& inode, NodeId node,
                                                              uint64_t offset, SeekKind kind) {
  std::optional<uint64_t> found;
  const Status status = WithRetries(inode, node, false, [&](const ObjectTarget& target) -> Status {
    const auto answer = nodes_.Seek(target, offset, kind == SeekKind::kData);
    if (answer.ok()) found = *answer;
    return answer.status().code() == StatusCode::kOutOfRange ? OkStatus() : answer.status();
  });
  if (status.code() == StatusCode::kNotFound) {
    AccessPtr access;
    {
      const MutexLock lock(inode.mutex);
      access = inode.access;
    }
    if (IsKnownEmpty(*access, node)) return found;
    return ObjectMissing(inode, node);
  }
  if (!status.ok()) return FromStatus(status);
  return found;
}

// Node by node, so that the cost depends on the amount of data in a sparse file, not on its length.
Outcome<uint64_t> Filesystem::Impl::SeekData(Inode& inode, const DataAccess& access,
                                             ByteRange range) {
  uint64_t first = range.end;
  std::vector<NodeId> nodes = access.layout.Nodes();
  const NodeId owner = FirstPiece(access.layout, range).nodes.front();
  std::iter_swap(nodes.begin(), std::find(nodes.begin(), nodes.end(), owner));
  for (const NodeId node : nodes) {
    for (uint64_t at = range.begin; at < first;) {
      auto found = SeekObject(inode, node, at, SeekKind::kData);
      if (!found.ok()) return found.failure();
      if (!*found || **found >= first) break;
      const Piece piece = FirstPiece(access.layout, {**found, range.end});
      if (piece.nodes.front() == node) {
        first = **found;
        break;
      }
      at = piece.range.end;  // Data left there by an earlier layout.
    }
  }
  if (first < range.end) return first;
  return Fail(StatusCode::kNotFound, ErrorReason::kNoEntry,
              fmt::format("no data at or after offset {}", range.begin));
}

Outcome<uint64_t> Filesystem::Impl::SeekHole(Inode& inode, const DataAccess& access,
                                             ByteRange range) {
  uint64_t at = range.begin;
  while (at < range.end) {
    const Piece piece = FirstPiece(access.layout, {at, range.end});
    auto found = SeekObject(inode, piece.nodes.front(), at, SeekKind::kHole);
    if (!found.ok()) return found.failure();
    const uint64_t hole = std::max(found->value_or(at), at);
    if (hole < piece.range.end) return hole;
    at = piece.range.end;
  }
  return range.end;
}

}  // namespace mosa::sai
