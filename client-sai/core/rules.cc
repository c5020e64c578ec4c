#include "client-sai/core/rules.h"

#include <algorithm>
#include <iterator>

#include "common/base/hash.h"
#include "common/model/session.h"

namespace mosa::sai {
namespace {

constexpr uint64_t kAmpleBytes = uint64_t{1} << 30;
constexpr uint64_t kWishFirstBytes = uint64_t{4} << 20;
constexpr uint64_t kWishMaxBytes = uint64_t{64} << 20;
constexpr Duration kDelayFirst = Milliseconds(20);
constexpr Duration kDelayMax = Milliseconds(1000);
constexpr Duration kNoSpaceDelays[] = {Milliseconds(50), Milliseconds(150), Milliseconds(400)};
// A stream waits for the slowest of its nodes. This much is in flight from each of the others
// meanwhile.
constexpr uint64_t kWindowBytesPerNode = 8 << 20;
constexpr uint32_t kFetchesAtOnce = 4;

uint32_t LanesOf(const Layout& layout) { return layout.segments.front().width; }

}  // namespace

bool PassthroughWriteAllowed(uint64_t node_free_bytes, uint64_t node_limit_bytes) {
  return node_free_bytes >= std::max(kAmpleBytes, node_limit_bytes / 4);
}

uint64_t GrantWish(uint64_t need_bytes, uint64_t last_wish_bytes) {
  const uint64_t wish =
      last_wish_bytes == 0 ? kWishFirstBytes : std::min(last_wish_bytes * 2, kWishMaxBytes);
  return std::max(wish, need_bytes);
}

uint32_t WithoutPrivileges(uint32_t permissions) {
  constexpr uint32_t kSetUser = 04000;
  constexpr uint32_t kSetGroup = 02000;
  constexpr uint32_t kGroupExecutes = 00010;
  permissions &= ~kSetUser;
  return (permissions & kGroupExecutes) != 0 ? permissions & ~kSetGroup : permissions;
}

PagesAfterWrite PagesAfter(const DirectWrite& write) {
  if (write.open_by_pages) return PagesAfterWrite::kDrop;
  if (write.opened_meanwhile || write.filled_meanwhile || !write.kernel_drops_pages)
    return PagesAfterWrite::kForget;
  return PagesAfterWrite::kKeep;
}

bool GrantIsLow(uint64_t held_bytes, uint64_t last_wish_bytes) {
  return held_bytes < last_wish_bytes / 2;
}

std::optional<Duration> RetryDelay(uint32_t attempt, Duration waited, bool node_alive) {
  if (!node_alive || waited >= kNodeDeadAfter + kNodeDeadAfter) return std::nullopt;
  Duration delay = kDelayFirst;
  for (uint32_t i = 1; i < attempt && delay < kDelayMax; ++i) delay = delay * 2;
  return std::min(delay, kDelayMax);
}

std::optional<Duration> NoSpaceDelay(size_t attempt) {
  if (attempt >= std::size(kNoSpaceDelays)) return std::nullopt;
  return kNoSpaceDelays[attempt];
}

uint64_t LaneOf(const Layout& layout, uint64_t offset) {
  // A block larger than a chunk comes from several nodes.
  if (layout.chunk_bytes >= kBlockBytesMax) return layout.PositionAt(offset);
  return offset / kBlockBytesMax % LanesOf(layout);
}

uint32_t FetchesPerLane(const Layout& layout) {
  return std::max(1U, kFetchesAtOnce / LanesOf(layout));
}

uint64_t CacheShare(uint64_t cache_bytes_max, size_t files) {
  return std::max(kBlockBytesMax, cache_bytes_max / std::max<size_t>(1, files));
}

uint64_t ReadWindow(const Layout& layout, uint64_t read_ahead_bytes_max, uint64_t cache_share) {
  return std::min({LanesOf(layout) * kWindowBytesPerNode, read_ahead_bytes_max, cache_share});
}

std::optional<Duration> BindRetries::DelayAfter(const Failure& refused, Time now) {
  // Another client gives the file objects now, or nodes still drop those that it had.
  if (refused.code == StatusCode::kAborted)
    return now - begun_ > kInlineMoveMax ? std::nullopt : std::optional(kFrozenDelay);
  return refused.reason == ErrorReason::kNoSpace ? NoSpaceDelay(no_space_++) : std::nullopt;
}

bool MayUseCached(const CachedRight& cached, bool with_attributes, Time now) {
  return cached.is_current && cached.serves &&
         (!cached.bound || now + kCapabilityMargin < cached.expires) &&
         (!with_attributes || cached.has_attributes);
}

bool MayBeTriedAgain(const Failure& failure) {
  return failure.reason == ErrorReason::kTimedOut || failure.code == StatusCode::kUnavailable ||
         failure.code == StatusCode::kAborted || failure.code == StatusCode::kDeadlineExceeded;
}

std::vector<NodeId> OrderCopies(const std::vector<CopyChoice>& copies, uint64_t seed) {
  std::vector<NodeId> order;
  const auto take = [&](auto&& wanted) {
    std::vector<NodeId> group;
    for (const CopyChoice& copy : copies)
      if (wanted(copy)) group.push_back(copy.node);
    if (group.empty()) return;
    std::rotate(group.begin(), group.begin() + static_cast<int64_t>(seed % group.size()),
                group.end());
    order.insert(order.end(), group.begin(), group.end());
  };
  take([](const CopyChoice& c) { return c.local; });
  take([](const CopyChoice& c) { return !c.local && c.alive; });
  take([](const CopyChoice& c) { return !c.local && !c.alive; });
  return order;
}

uint64_t CopySeed(ClientId client, FileId file, const Layout& layout, uint64_t offset) {
  const uint64_t stretch = offset / std::max(layout.chunk_bytes, kSpreadBytesMin);
  return Mix64(client.value ^ Mix64(file.value ^ Mix64(stretch)));
}

}  // namespace mosa::sai
