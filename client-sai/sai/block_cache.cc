#include "client-sai/sai/block_cache.h"

#include <algorithm>
#include <iterator>

#include "client-sai/api/wait_budget.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr size_t kConsumedBlocksPerFile = 2;
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

uint64_t BlockCache::ShareBytes() const {
  const MutexLock lock(mutex_);
  return CacheShare(bytes_max_, files_.size());
}

std::shared_ptr<Block> BlockCache::Find(FileId file, uint64_t offset, uint64_t read_end) {
  const MutexLock lock(mutex_);
  auto it = blocks_.upper_bound({file, offset});
  if (it == blocks_.begin()) return nullptr;
  --it;
  if (it->first.first != file || it->second.block->range().end <= offset) return nullptr;
  Slot& slot = it->second;
  const std::shared_ptr<Block> block = slot.block;
  std::list<Key>& from = slot.consumed ? consumed_ : by_age_;
  slot.consumed = slot.consumed || read_end >= block->range().end;
  std::list<Key>& to = slot.consumed ? consumed_ : by_age_;
  to.splice(to.end(), from, slot.age);
  while (consumed_.size() > kConsumedBlocksPerFile * files_.size())
    Erase(blocks_.find(consumed_.front()));
  return block;
}

std::vector<std::shared_ptr<Block>> BlockCache::Add(FileId file, ByteRange range) {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Block>> added;
  uint64_t at = range.begin;
  while (at < range.end) {
    auto next = blocks_.upper_bound({file, at});
    if (next != blocks_.begin()) {
      const auto before = std::prev(next);
      if (before->first.first == file && before->second.block->range().end > at) {
        at = before->second.block->range().end;
        continue;
      }
    }
    uint64_t end = std::min(range.end, (at / kBlockBytesMax + 1) * kBlockBytesMax);
    if (next != blocks_.end() && next->first.first == file) end = std::min(end, next->first.second);
    auto block = std::make_shared<Block>(ByteRange{at, end});
    by_age_.push_back({file, at});
    blocks_[{file, at}] = {block, std::prev(by_age_.end()), false};
    bytes_ += end - at;
    ++files_[file];
    added.push_back(std::move(block));
    at = end;
  }
  while (bytes_ > bytes_max_ && blocks_.size() > added.size())
    Erase(blocks_.find(consumed_.empty() ? by_age_.front() : consumed_.front()));
  return added;
}

BlockCache::Map::iterator BlockCache::Erase(Map::iterator it) {
  bytes_ -= it->second.block->range().size();
  (it->second.consumed ? consumed_ : by_age_).erase(it->second.age);
  const auto file = files_.find(it->first.first);
  if (--file->second == 0) files_.erase(file);
  return blocks_.erase(it);
}

void BlockCache::DropFile(FileId file) { DropRange(file, {0, UINT64_MAX}); }

void BlockCache::DropRange(FileId file, ByteRange range) {
  const MutexLock lock(mutex_);
  auto it = blocks_.upper_bound({file, range.begin});
  if (it != blocks_.begin() && std::prev(it)->first.first == file) --it;
  while (it != blocks_.end() && it->first.first == file && it->first.second < range.end)
    it = it->second.block->range().end > range.begin ? Erase(it) : std::next(it);
}

void BlockCache::DropBlock(FileId file, const Block& block) {
  const MutexLock lock(mutex_);
  const auto it = blocks_.find({file, block.range().begin});
  if (it != blocks_.end() && it->second.block.get() == &block) Erase(it);
}

void BlockCache::DropAll() {
  const MutexLock lock(mutex_);
  blocks_.clear();
  files_.clear();
  by_age_.clear();
  consumed_.clear();
  bytes_ = 0;
}

}  // namespace mosa::sai
