// ObjectEngine: what nodes that copy need: checksums of a range, and recent changes.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/mutex.h"
#include "common/model/checksum_blocks.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {
namespace {

// Number of checksums per hold of the object's lock.
constexpr size_t kSumsAtOnce = 16;
// After a first change, waits this long so that one wake-up covers the changes right after it.
constexpr std::chrono::milliseconds kGather{1};
// How often a waiter checks whether its answer is still wanted.
constexpr std::chrono::milliseconds kLookEvery{250};

}  // namespace

// ---- changes

void ObjectEngine::NoteWritten(Object& object, ByteRange range) {
  if (object.told) object.told = ChecksumTable::ForUnknownBytes();
  if (object.changes) object.changes->Note(range, ++last_change_);
  Wake(object.file);
}

void ObjectEngine::NoteAllChanged(Object& object) {
  if (object.changes) object.changes->NoteAll(++last_change_);
  Wake(object.file);
}

Status ObjectEngine::NoteLocalWrite(FileId file, ByteRange range) {
  auto opened = OpenToRead(file);
  if (!opened.ok()) return opened.status();
  if (opened->object == nullptr) return OkStatus();
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  NoteWritten(object, range);
  return RefreshSize(object, opened->fd.get());
}

void ObjectEngine::NoteChanged(FileId file, std::span<const ByteRange> ranges) {
  const ObjectRef object = Find(file);
  if (object == nullptr) return;
  const SystemMutexLock lock(object->mutex);
  for (const ByteRange& range : ranges) NoteWritten(*object, range);
}

void ObjectEngine::Wake(FileId file) {
  if (waiter_count_ == 0) return;
  const SystemMutexLock lock(waiters_mutex_);
  if (!waiters_.contains(file)) return;
  ++wakes_;
  woken_.notify_all();
}

bool ObjectEngine::HasChanged(FileId file, uint64_t& after_change,
                              std::span<const ByteRange> about) {
  const ObjectRef object = Find(file);
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

void ObjectEngine::AwaitChange(FileId file, uint64_t after_change, std::span<const ByteRange> about,
                               Duration wait, const std::function<bool()>& give_up) {
  if (HasChanged(file, after_change, about)) return;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds(wait.ns);
  ++waiter_count_;
  SystemMutexLock lock(waiters_mutex_);
  const auto place = waiters_.insert(file);
  bool changed = false;
  while (true) {
    const uint64_t seen = wakes_;  // A later change ends the wait below at once.
    lock.unlock();
    changed = HasChanged(file, after_change, about);
    const bool over = changed || Clock::now() >= end || give_up();
    lock.lock();
    if (over) break;
    woken_.wait_until(lock, std::min(end, Clock::now() + kLookEvery),
                      [&]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(waiters_mutex_) { return wakes_ != seen; });
  }
  waiters_.erase(place);
  lock.unlock();
  --waiter_count_;
  if (changed) std::this_thread::sleep_for(kGather);
}

BlockSums ObjectEngine::ChangesSince(FileId file, uint64_t after_change) {
  BlockSums sums;
  sums.incarnation = store_->record().incarnation;
  // A missing object has change number 0, which no object has.
  sums.all_changed = after_change != 0;
  const ObjectRef object = Find(file);
  sums.absent = true;
  if (object == nullptr) return sums;
  const SystemMutexLock lock(object->mutex);
  if (object->dropped) return sums;
  sums.absent = false;
  if (!object->changes) object->changes = std::make_unique<ChangeLog>(++last_change_);
  sums.change = object->changes->last();
  sums.all_changed = true;
  if (auto changed = object->changes->Since(after_change)) {
    sums.all_changed = false;
    sums.changed = *std::move(changed);
  }
  return sums;
}

// ---- checksums

Status ObjectEngine::SumBlocks(FileId file, ByteRange range, BlockSums& sums,
                               std::span<std::byte> scratch) {
  MOSA_CHECK(scratch.size() >= kChecksumBlockBytes && range.size() <= kSumsBytesMax);
  sums.blocks.assign(BlocksTouched(range.begin, range.size()), {});
  auto opened = OpenToRead(file);
  if (!opened.ok()) return opened.status();
  sums.quiet = true;
  if (opened->object == nullptr) return OkStatus();
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  const int fd = opened->fd.get();
  const bool had_writers = MayHaveWriters(object, fd);
  if (had_writers) MOSA_RETURN_IF_ERROR(RefreshSize(object, fd));
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
Status ObjectEngine::MarkData(Object& object, int fd, ByteRange range, BlockSums& sums) {
  const uint64_t first = BlockOf(range.begin).value;
  const uint64_t end = std::min(range.end, object.size_bytes);
  const bool dense = object.allocated_bytes == RoundUpToPage(object.size_bytes);
  for (uint64_t at = BeginOf(BlockIndex{first}); at < end;) {
    uint64_t data_end = end;
    if (!dense) {
      const Result<uint64_t> data = store_->Seek(fd, at, /*data=*/true);
      if (data.status().code() == StatusCode::kNotFound) return OkStatus();
      if (!data.ok()) return data.status();
      const Result<uint64_t> hole = store_->Seek(fd, *data, /*data=*/false);
      if (!hole.ok()) return hole.status();
      at = *data;
      data_end = std::min(end, *hole);
    }
    for (; at < data_end; at = BeginOf(BlockOf(at)) + kChecksumBlockBytes)
      sums.blocks[BlockOf(at).value - first].has_data = true;
  }
  return OkStatus();
}

Status ObjectEngine::SumBlock(Object& object, int fd, BlockIndex block, BlockSum& sum,
                              std::span<std::byte> scratch) {
  if (object.checksums.CorruptIn(block, BlockIndex{block.value + 1})) {
    sum.damaged = true;
    return OkStatus();
  }
  if (!object.lent) {
    if (object.unverified) {
      const auto known = object.checksums.Get(block, object.size_bytes);
      const KnownSum expected{block, known.value_or(0)};
      if (known) Verify(object, fd, std::span(&expected, 1), scratch);
      sum.damaged = object.checksums.CorruptIn(block, BlockIndex{block.value + 1}).has_value();
      if (sum.damaged) return OkStatus();
    }
    if (const auto known = object.checksums.Get(block, object.size_bytes)) {
      sum.crc = *known;
      return OkStatus();
    }
  }
  const auto bytes = scratch.first(ExtentOf(block, object.size_bytes));
  MOSA_ASSIGN_OR_RETURN(const size_t got, store_->Read(fd, BeginOf(block), bytes));
  sum.crc = Crc32c(bytes.data(), got);
  if (!object.lent && got == bytes.size()) {
    object.checksums.Set(block, sum.crc);
    NoteChange(object, Duration{});
  }
  return OkStatus();
}

}  // namespace mosa::node
