#include "client-sai/sai/block_cache.h"

#include <utility>

#include "client-sai/api/wait_budget.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr uint64_t kLargeBytes = kBlockBytesMax / 2;
static_assert(kBlockBytesMax <= LargeBuffer::kBytes);

}  // namespace

Block::Block(ByteRange range) : range_(range), fetched_for_(CurrentSpan().span) {
  if (range.size() >= kLargeBytes) {
    large_ = LargeBuffer::Take();
    bytes_ = large_.data();
  } else {
    small_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(range.size()));
    bytes_ = small_.get();
  }
}

void Block::Finish(std::optional<Failure> failure) {
  const MutexLock lock(mutex_);
  failure_ = std::move(failure);
  is_finished_ = true;
  finished_.notify_all();
}

std::optional<Failure> Block::Wait(DurationTable* waits) const {
  {
    const MutexLock lock(mutex_);
    if (is_finished_) return failure_;
  }
  TimedRequest timed(waits, DurationTable::ClassId{0});
  timed.set_bytes(range_.size());
  timed.set_link(fetched_for_);
  MutexLock lock(mutex_);
  const std::optional<SteadyTime> limit = WaitBudget::OfThisThread().end;
  while (!is_finished_) {
    if (!limit) {
      finished_.wait(lock);
    } else if (!finished_.wait_until(lock, *limit) && !is_finished_) {
      return Failure{StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                     "the bytes that were read ahead have not arrived in time"};
    }
  }
  return failure_;
}

BlockCache::Index::Step BlockCache::Next(FileId file, ByteRange range) {
  const MutexLock lock(mutex_);
  return index_.Next(file, range);
}

std::vector<std::shared_ptr<Block>> BlockCache::Add(FileId file, ByteRange range) {
  const MutexLock lock(mutex_);
  return index_.Add(file, range, [](ByteRange of) { return std::make_shared<Block>(of); });
}

void BlockCache::DropFile(FileId file) {
  const MutexLock lock(mutex_);
  index_.DropFile(file);
}

void BlockCache::Drop(FileId file, ByteRange range) {
  const MutexLock lock(mutex_);
  index_.Drop(file, range);
}

void BlockCache::DropBlock(FileId file, const std::shared_ptr<Block>& block) {
  const MutexLock lock(mutex_);
  index_.DropBlock(file, block);
}

void BlockCache::DropAll() {
  const MutexLock lock(mutex_);
  index_.DropAll();
}

uint64_t BlockCache::ShareBytes() const {
  const MutexLock lock(mutex_);
  return index_.ShareBytes();
}

}  // namespace mosa::sai
