#include "client-sai/core/copy_wait.h"

#include <algorithm>

namespace mosa::sai {
namespace {

constexpr Duration kWriterReleasesWithin = Seconds(2);
constexpr Duration kExtension = Seconds(3);
constexpr Duration kLongCopyStallMax = Seconds(8);
constexpr uint32_t kSetbacksMax = 2;

}  // namespace

bool CopyWait::EndsWith(const AwaitCopiesReply& reply, Time now) {
  const std::pair<uint32_t, uint64_t> progress{reply.copies_valid, reply.copied_bytes};
  if (progress_ && progress < *progress_) ++setbacks_;
  if (progress > best_) setbacks_ = 0;
  best_ = std::max(best_, progress);
  const bool moved = progress_ && progress != *progress_ && setbacks_ <= kSetbacksMax;
  progress_ = progress;
  const Time extended_end = patience_end_ + kExtension;
  Time stall_end = now + kLongCopyStallMax;
  if (now < extended_end) stall_end = std::max(std::min(stall_end, extended_end), now + kExtension);
  if (moved) until_ = std::max(until_, stall_end);
  if (!reply.open_for_writing) written_since_.reset();
  if (reply.open_for_writing && !written_since_) written_since_ = now;
  return reply.copies_valid >= reply.copies_wanted || !reply.more || IsOverdue(now) ||
         (written_since_ && now - *written_since_ >= kWriterReleasesWithin);
}

}  // namespace mosa::sai
