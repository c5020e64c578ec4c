#include "client-sai/sai/file_ids.h"

#include <utility>
#include <variant>
#include <vector>

namespace mosa::sai {
namespace {

constexpr uint64_t kFileIdsLow = 256;

}  // namespace

void FileIds::Reset(const FileIdRangeReply& first) {
  const MutexLock lock(mutex_);
  ranges_.clear();
  if (first.count > 0) ranges_.push_back(first);
}

Outcome<FileId> FileIds::Take() {
  MutexLock lock(mutex_);
  uint64_t left = 0;
  for (const FileIdRangeReply& range : ranges_) left += range.count;
  const bool asks = left < kFileIdsLow && left > 0 && !std::exchange(is_asking_, true);
  if (left == 0) {
    lock.unlock();
    auto range = calls_.Ask<FileIdRangeReply>(FileIdRangeRequest{});
    if (!range.ok()) return range.failure();
    lock.lock();
    ranges_.push_back(*range);
  }
  FileIdRangeReply& range = ranges_.front();
  const FileId id = range.first;
  ++range.first.value;
  if (--range.count == 0) ranges_.pop_front();
  lock.unlock();
  if (asks) AskForMore();
  return id;
}

void FileIds::AskForMore() {
  manager_.Send({FileIdRangeRequest{}}, [this](const std::vector<Reply>& replies) {
    const MutexLock lock(mutex_);
    is_asking_ = false;
    if (replies.empty()) return;
    if (const auto* range = std::get_if<FileIdRangeReply>(&replies.back()))
      ranges_.push_back(*range);
  });
}

}  // namespace mosa::sai
