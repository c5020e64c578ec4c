#include "storage-node/engine/object_sums.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {
namespace {

// Number of checksums per hold of the object's lock.
constexpr size_t kSumsAtOnce = 16;

}  // namespace

Status ObjectSums::NoteLocalWrite(FileId file, ByteRange range) {
  auto opened = opener_.ToRead(file);
  if (!opened.ok()) return opened.status();
  if (opened->object == nullptr) return OkStatus();
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  ledger_.NoteWritten(object, range);
  return ledger_.RefreshSize(object, opened->fd.get());
}

void ObjectSums::NoteChanged(FileId file, std::span<const ByteRange> ranges) {
  const ObjectRef object = table_.Find(file);
  if (object == nullptr) return;
  const SystemMutexLock lock(object->mutex);
  for (const ByteRange& range : ranges) ledger_.NoteWritten(*object, range);
}

bool ObjectSums::HasChanged(FileId file, uint64_t& after_change, std::span<const ByteRange> about) {
  const ObjectRef object = table_.Find(file);
  if (object == nullptr) return after_change != 0;
  const SystemMutexLock lock(object->mutex);
  if (!object->changes) return true;
  if (object->changes->last() == after_change) return false;
  const auto changed = object->changes->Since(after_change);
  if (about.empty() || !changed || changed->empty()) return true;
  for (const ByteRange& range : *changed)
    for (const ByteRange& asked : about)
      if (asked.begin < range.end && range.begin < asked.end) return true;
  after_change = object->changes->last();
  return false;
}

void ObjectSums::AwaitChange(FileId file, uint64_t after_change, std::span<const ByteRange> about,
                             Duration wait, const std::function<bool()>& give_up) {
  waiters_.Await(
      file, wait, [&] { return HasChanged(file, after_change, about); }, give_up);
}

BlockSums ObjectSums::ChangesSince(FileId file, uint64_t after_change) {
  BlockSums sums;
  sums.incarnation = store_.record().incarnation;
  // A missing object has change number 0, which no object has.
  sums.all_changed = after_change != 0;
  const ObjectRef object = table_.Find(file);
  sums.absent = true;
  if (object == nullptr) return sums;
  const SystemMutexLock lock(object->mutex);
  if (object->dropped) return sums;
  sums.absent = false;
  if (!object->changes) object->changes = std::make_unique<ChangeLog>(ledger_.NextChange());
  sums.change = object->changes->last();
  sums.all_changed = true;
  if (auto changed = object->changes->Since(after_change)) {
    sums.all_changed = false;
    sums.changed = *std::move(changed);
  }
  return sums;
}

Status ObjectSums::SumBlocks(FileId file, ByteRange range, BlockSums& sums,
                             std::span<std::byte> scratch) {
  MOSA_CHECK(scratch.size() >= kChecksumBlockBytes && range.size() <= kSumsBytesMax);
  sums.blocks.assign(BlocksTouched(range.begin, range.size()), {});
  auto opened = opener_.ToRead(file);
  if (!opened.ok()) return opened.status();
  sums.quiet = true;
  if (opened->object == nullptr) return OkStatus();
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  const int fd = opened->fd.get();
  const bool had_writers = ledger_.MayHaveWriters(object, fd);
  if (had_writers) MOSA_RETURN_IF_ERROR(ledger_.RefreshSize(object, fd));
  const uint64_t epoch = object.forgotten_count;
  sums.object_bytes = object.size_bytes;
  MOSA_RETURN_IF_ERROR(MarkData(object, fd, range, sums));
  const uint64_t first = BlockOf(range.begin).value;
  for (size_t i = 0; i < sums.blocks.size(); ++i) {
    if (i > 0 && i % kSumsAtOnce == 0) {
      opened->lock.unlock();
      opened->lock.lock();
      if (object.dropped) break;
    }
    if (sums.blocks[i].has_data)
      MOSA_RETURN_IF_ERROR(SumBlock(object, fd, BlockIndex{first + i}, sums.blocks[i], scratch));
  }
  // The asker learns of a writer in between now, or with its next question.
  sums.quiet = !object.dropped && !had_writers && object.forgotten_count == epoch;
  return OkStatus();
}

// Marks the blocks of the range that are not holes.
Status ObjectSums::MarkData(Object& object, int fd, ByteRange range, BlockSums& sums) {
  const uint64_t first = BlockOf(range.begin).value;
  const uint64_t end = std::min(range.end, object.size_bytes);
  const bool dense = object.allocated_bytes == RoundUpToPage(object.size_bytes);
  for (uint64_t at = BeginOf(BlockIndex{first}); at < end;) {
    uint64_t data_end = end;
    if (!dense) {
      const Result<uint64_t> data = store_.Seek(fd, at, /*data=*/true);
      if (data.status().code() == StatusCode::kNotFound) return OkStatus();
      if (!data.ok()) return data.status();
      const Result<uint64_t> hole = store_.Seek(fd, *data, /*data=*/false);
      if (!hole.ok()) return hole.status();
      at = *data;
      data_end = std::min(end, *hole);
    }
    for (; at < data_end; at = BeginOf(BlockOf(at)) + kChecksumBlockBytes)
      sums.blocks[BlockOf(at).value - first].has_data = true;
  }
  return OkStatus();
}

Status ObjectSums::SumBlock(Object& object, int fd, BlockIndex block, BlockSum& sum,
                            std::span<std::byte> scratch) {
  if (object.checksums.CorruptIn(block, BlockIndex{block.value + 1})) {
    sum.damaged = true;
    return OkStatus();
  }
  if (!object.lent) {
    if (object.unverified) {
      const auto known = object.checksums.Get(block, object.size_bytes);
      const KnownSum expected{block, known.value_or(0)};
      if (known) verifier_.Verify(object, fd, std::span(&expected, 1), scratch);
      sum.damaged = object.checksums.CorruptIn(block, BlockIndex{block.value + 1}).has_value();
      if (sum.damaged) return OkStatus();
    }
    if (const auto known = object.checksums.Get(block, object.size_bytes)) {
      sum.crc = *known;
      return OkStatus();
    }
  }
  const auto bytes = scratch.first(ExtentOf(block, object.size_bytes));
  MOSA_ASSIGN_OR_RETURN(const size_t got, store_.Read(fd, BeginOf(block), bytes));
  sum.crc = Crc32c(bytes.data(), got);
  if (!object.lent && got == bytes.size()) {
    object.checksums.Set(block, sum.crc);
    ledger_.NoteChange(object, Duration{});
  }
  return OkStatus();
}

}  // namespace mosa::node
