#include "client-sai/sai/reader.h"

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
#include "client-sai/core/stream.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"
#include "common/base/crc32c.h"
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

// Longer files are sparse, and a checksum of them would take hours.
constexpr uint64_t kChecksumBytesMax = uint64_t{1} << 40;

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

template <typename Value>
Outcome<Value> Reader::ByOneLayout(Inode& inode, const std::function<Outcome<Value>()>& read) {
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

Reader::LayoutMark Reader::MarkLayout(Inode& inode) const {
  return {inode.right.recalls, lease_.ValidEra(), node_states_.returned_empty()};
}

Outcome<ReadResult> Reader::Read(HandleId id, uint64_t offset, size_t size_bytes) {
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
      if (handle->wrote) MOSA_RETURN_IF_FAILED(handle->UntoldError());
      return result;
    }
    before = after;
  }
}

Outcome<ReadResult> Reader::ReadOnce(OpenFile& handle, uint64_t offset, size_t size_bytes) {
  Inode& inode = *handle.inode;
  auto fresh = rights_.EnsureFresh(inode, false);
  if (!fresh.ok()) return fresh.failure();
  attributes_.NoteKernelWrites(inode);
  ByteRange range;
  uint64_t file_bytes = 0;
  AccessPtr access = fresh->access;
  for (bool has_waited = false;;) {
    MutexLock lock(inode.mutex);
    const bool from_buffer = inode.content.buffer.has_value();
    // The commit of a last close, behind which the mount is no writer any more, may arrive later
    // than the question of which this right is the answer.
    if (inode.committing.data_dirty && !access->may_write && !std::exchange(has_waited, true)) {
      lock.unlock();
      const IoLock io(inode);
      fresh = rights_.EnsureFresh(inode, false);
      if (!fresh.ok()) return fresh.failure();
      access = fresh->access;
      continue;
    }
    const bool outdated = from_buffer && inode.making.state == MakeState::kSent &&
                          (inode.content.version != fresh->version || access->layout.bound());
    if (outdated || inode.known.own_changes != fresh->own_changes ||
        !inode.AccessServes(*access, /*write=*/false)) {
      lock.unlock();
      if (outdated) {
        const IoLock io(inode);
        MOSA_RETURN_IF_FAILED(writer_.MergeInline(inode));
      }
      fresh = rights_.EnsureFresh(inode, false);
      if (!fresh.ok()) return fresh.failure();
      access = fresh->access;
      continue;
    }
    if (handle.wrote) {
      if (std::optional<Failure> late = StoreGate::OwnBytesAreLate(inode, *access))
        return *std::move(late);
    }
    file_bytes = AttributeCache::ViewOn(inode, fresh->attributes).size_bytes;
    if (inode.cut.to) file_bytes = std::min(file_bytes, *inode.cut.to);
    if (offset >= file_bytes) return AtEndOf(handle, fresh->attributes.stream, offset);
    range = {offset, std::min(file_bytes, offset + size_bytes)};
    const bool from_access = !from_buffer && (!access->layout.bound() || access->is_inline);
    if (from_buffer || from_access) {
      const std::string& content = from_buffer ? *inode.content.buffer : access->inline_data;
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

Outcome<ReadResult> Reader::AtEndOf(const OpenFile& handle, StreamState stream, uint64_t offset) {
  ReadResult nothing{nullptr, -1, offset, 0, {}, {}, {}};
  // Who writes would wait for itself.
  const AtEnd at_end = handle.stream && !handle.write ? ReadAtEnd(stream) : AtEnd::kEnds;
  if (at_end == AtEnd::kFails)
    return Fail(StatusCode::kDataLoss, ErrorReason::kNodeLost,
                fmt::format("file {} ends at byte {}, and its writer ended without closing it: run "
                            "the task that writes it again",
                            handle.inode->file.value, offset));
  if (at_end == AtEnd::kWaits)
    nothing.await = [this, id = handle.id, offset](StreamWaits::Done done) {
      const std::shared_ptr<OpenFile> open = handles_.FindFile(id);
      if (!open) return done(false);
      stream_waits_.Wait(open, offset, std::move(done));
      if (!handles_.FindFile(id)) stream_waits_.EndOf(id);  // It was released meanwhile.
    };
  return nothing;
}

// Own writes of these bytes are stored first, so that the read returns them. Returns the right to
// read by then.
AccessPtr Reader::AfterOwnWrites(Inode& inode, ByteRange range, AccessPtr access) {
  for (;;) {
    {
      const MutexLock lock(inode.mutex);
      if (!inode.behind.buffer.Overlaps(range)) return access;
    }
    const IoLock io(inode);
    write_behind_.Drain(inode);
    const MutexLock lock(inode.mutex);
    access = inode.right.access;
  }
}

Outcome<ReadResult> Reader::ReadBound(OpenFile& handle, const AccessPtr& access, ByteRange range,
                                      uint64_t file_bytes) {
  Inode& inode = *handle.inode;
  if (access->lost) return NodeObjects::LostBytes(inode);
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
    if (inode.uses.write_handles == 0)
      ahead = handle.read_ahead.OnRead(range, file_bytes, window_max);
  }
  if (!ahead.empty()) FetchAhead(handle.inode, access, ahead);
  BlockCache::Index::Step step = blocks_.Next(inode.file, range);
  if (step.block && step.range == range && !step.block->Wait(options_.waits)) {
    const std::byte* bytes = step.block->bytes() + (range.begin - step.block->range().begin);
    return ReadResult{step.block, -1, range.begin, size, {bytes, size}, {}};
  }
  const auto buffer = std::make_shared<Buffer>(size);
  for (uint64_t at = range.begin; at < range.end; at = step.range.end) {
    std::byte* out = buffer->bytes.get() + (at - range.begin);
    step = blocks_.Next(inode.file, {at, range.end});
    if (step.block && !step.block->Wait(options_.waits))
      std::memcpy(out, step.block->bytes() + (at - step.block->range().begin), step.range.size());
    else
      MOSA_RETURN_IF_FAILED(objects_.Fetch(inode, *access, step.range, out, true));
  }
  return InBuffer(buffer, range.begin, size);
}

// The range as a part of one local object.
std::optional<ReadResult> Reader::ReadByDescriptor(OpenFile& handle, const DataAccess& access,
                                                   ByteRange range) {
  Inode& inode = *handle.inode;
  const std::vector<Piece> pieces = SplitRange(access.layout, range);
  std::vector<NodeId> holders;
  if (pieces.size() == 1) {
    holders = pieces.front().nodes;
  } else if (const auto holder = objects_.LocalHolder(access)) {
    holders.push_back(*holder);
  }
  for (const NodeId node : holders) {
    if (!nodes_.IsLocal(node)) continue;
    auto object = objects_.Local(inode, access, node, false);
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

void Reader::FetchAhead(const InodePtr& inode, const AccessPtr& access, ByteRange range) {
  std::vector<std::shared_ptr<Block>> blocks;
  LayoutMark mark;
  {
    // After a recall, the blocks would be cached under an older layout.
    const MutexLock lock(inode->mutex);
    if (inode->right.access != access || inode->right.era != lease_.ValidEra()) return;
    blocks = blocks_.Add(inode->file, range);
    mark = MarkLayout(*inode);
  }
  const uint32_t at_once = FetchesPerLane(access->layout);
  for (const std::shared_ptr<Block>& block : blocks) {
    fetch_lanes_.Run(
        {inode->file, LaneOf(access->layout, block->range().begin)}, at_once,
        [this, inode, access, block, mark] {
          // The cache has dropped it, for example at a close, and nobody waits for it.
          if (block.use_count() == 1) return;
          const WaitBudget budget(WaitBudget::ForBackground());
          Outcome<Done> fetched =
              objects_.Fetch(*inode, *access, block->range(), block->bytes(), false);
          {
            const MutexLock lock(inode->mutex);
            if (fetched.ok() && MarkLayout(*inode) != mark)
              fetched = Fail(StatusCode::kAborted, ErrorReason::kStale,
                             "the layout was recalled during the read");
          }
          if (!fetched.ok()) blocks_.DropBlock(inode->file, block);
          block->Finish(fetched.ok() ? std::nullopt : std::optional(fetched.failure()));
        });
  }
}

Outcome<uint64_t> Reader::Seek(HandleId id, uint64_t offset, SeekKind kind) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid, "the file is not open");
  auto result =
      ByOneLayout<uint64_t>(*handle->inode, [&] { return SeekOnce(*handle->inode, offset, kind); });
  if (handle->wrote) MOSA_RETURN_IF_FAILED(handle->UntoldError());
  return result;
}

Outcome<uint64_t> Reader::SeekOnce(Inode& inode, uint64_t offset, SeekKind kind) {
  const IoLock io(inode);
  attributes_.NoteKernelWrites(inode);
  write_behind_.Drain(inode);
  auto fresh = rights_.EnsureFresh(inode, false);
  if (!fresh.ok()) return fresh.failure();
  const AccessPtr access = fresh->access;
  uint64_t file_bytes = 0;
  bool may_have_holes = false;
  {
    const MutexLock lock(inode.mutex);
    const Attributes view = AttributeCache::ViewOn(inode, fresh->attributes);
    file_bytes = view.size_bytes;
    const bool is_object = access->layout.bound() && !access->is_inline && !inode.content.buffer;
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

Outcome<std::string> Reader::Checksum(const InodePtr& inode) {
  return ByOneLayout<std::string>(*inode, [&] { return ChecksumOnce(inode); });
}

Outcome<std::string> Reader::ChecksumOnce(const InodePtr& inode) {
  {
    const IoLock io(*inode);
    attributes_.NoteKernelWrites(*inode);
    write_behind_.Drain(*inode);
  }
  auto fresh = rights_.EnsureFresh(*inode, false);
  if (!fresh.ok()) return fresh.failure();
  const DataAccess& access = *fresh->access;
  uint64_t file_bytes = 0;
  bool is_object = false;
  {
    const MutexLock lock(inode->mutex);
    file_bytes = AttributeCache::ViewOn(*inode, fresh->attributes).size_bytes;
    is_object = access.layout.bound() && !access.is_inline && !inode->content.buffer;
  }
  if (file_bytes > kChecksumBytesMax)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                fmt::format("file {} has {} bytes, and a checksum is of at most {}",
                            inode->file.value, file_bytes, kChecksumBytesMax));
  std::vector<uint32_t> crcs;
  if (is_object && access.lost) return NodeObjects::LostBytes(*inode);
  if (is_object) {
    auto known = objects_.BlockChecksums(*inode, access, file_bytes);
    if (!known.ok()) return known.failure();
    crcs = *std::move(known);
  } else {
    OpenFile handle;
    handle.inode = inode;
    for (uint64_t at = 0; at < file_bytes; at += kChecksumBlockBytes) {
      auto block = ReadOnce(handle, at, kChecksumBlockBytes);
      if (!block.ok()) return block.failure();
      if (block->bytes.size() != std::min(file_bytes - at, kChecksumBlockBytes))
        return Fail(StatusCode::kAborted, ErrorReason::kStale, "the file changed meanwhile");
      crcs.push_back(Crc32c(block->bytes.data(), block->bytes.size()));
    }
  }
  uint64_t hash = Mix64(file_bytes);
  for (const uint32_t crc : crcs) hash = HashCombine(hash, crc);
  return fmt::format("{:016x}", hash);
}

// Node by node, so that the cost depends on the amount of data in a sparse file, not on its length.
Outcome<uint64_t> Reader::SeekData(Inode& inode, const DataAccess& access, ByteRange range) {
  uint64_t first = range.end;
  std::vector<NodeId> nodes = access.layout.Nodes();
  const NodeId owner = FirstPiece(access.layout, range).nodes.front();
  std::iter_swap(nodes.begin(), std::find(nodes.begin(), nodes.end(), owner));
  for (const NodeId node : nodes) {
    for (uint64_t at = range.begin; at < first;) {
      auto found = objects_.Seek(inode, node, at, SeekKind::kData);
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

Outcome<uint64_t> Reader::SeekHole(Inode& inode, const DataAccess& access, ByteRange range) {
  uint64_t at = range.begin;
  while (at < range.end) {
    const Piece piece = FirstPiece(access.layout, {at, range.end});
    auto found = objects_.Seek(inode, piece.nodes.front(), at, SeekKind::kHole);
    if (!found.ok()) return found.failure();
    const uint64_t hole = std::max(found->value_or(at), at);
    if (hole < piece.range.end) return hole;
    at = piece.range.end;
  }
  return range.end;
}

void Reader::OnUnreadableMapping(HandleId id) {
  if (const std::shared_ptr<OpenFile> handle = handles_.FindFile(id)) handle->view.GiveUp();
}

}  // namespace mosa::sai
