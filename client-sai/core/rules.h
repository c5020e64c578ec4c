// Small decisions of a client: may the kernel write an object directly, how much room to request,
// how long to retry, how much to read ahead and from which copy. Pure functions.
#ifndef MOSA_CLIENT_SAI_CORE_RULES_H_
#define MOSA_CLIENT_SAI_CORE_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client-sai/core/outcome.h"
#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/layout.h"

namespace mosa::sai {

// Room reserved ahead of the kernel's writes, for each file that it writes directly.
inline constexpr uint64_t kPassthroughRoomBytes = uint64_t{256} << 20;

// The kernel's read-ahead for a mount. Without root a mount cannot raise it from the default of 128
// KiB.
inline constexpr uint64_t kKernelReadAheadBytes = uint64_t{2} << 20;

// True if the kernel may write an object directly. Such a file cannot continue on another node when
// its own is full, and nobody sees it grow. So its node must have ample free room beyond the
// reservation: 1 GiB, and a quarter of its limit.
bool PassthroughWriteAllowed(uint64_t node_free_bytes, uint64_t node_limit_bytes);

// The permissions after a write by a process without CAP_FSETID: set-user-id is cleared, and
// set-group-id too if the group may execute the file.
uint32_t WithoutPrivileges(uint32_t permissions);

// What to do with the kernel's cached pages of a file after a write that bypassed them. A reader
// may have filled a page during the write, with bytes from before it, or cut off at the old end.
enum class PagesAfterWrite : uint8_t {
  kKeep,    // They match the write.
  kForget,  // No open uses them now: the next open starts without them.
  kDrop,    // An open uses them: drop them before the write returns.
};
struct DirectWrite {
  bool kernel_drops_pages = false;  // The kernel drops them before each such write (Linux 6.6).
  bool opened_meanwhile = false;    // The file was opened by pages during the write.
  bool filled_meanwhile = false;    // Somebody may have written by pages during the write.
  bool open_by_pages = false;       // An open that may read pages exists now.
};
PagesAfterWrite PagesAfter(const DirectWrite& write);

// True if what a program only writes stays in the kernel's pages, so that the next program here
// does not fetch it from other hosts. `begins_empty`: its open has made the file, or cut it to
// nothing. Where other bytes exist, several hosts may be storing, and then pages cost more than
// they gain. `is_here`: the file is on one node, which is on this host: it needs no second copy in
// memory.
constexpr bool KeepsWrittenPages(bool begins_empty, bool is_here) {
  return begins_empty && !is_here;
}

// Returns how much room to request from a node when `need_bytes` are needed now and the previous
// request was for `last_wish_bytes`. Doubles from 4 MiB to 64 MiB, so a small file takes little and
// a stream seldom waits.
uint64_t GrantWish(uint64_t need_bytes, uint64_t last_wish_bytes);
// True if less than half of the last request is left: ask ahead.
bool GrantIsLow(uint64_t held_bytes, uint64_t last_wish_bytes);

// Decides after the `attempt`-th failure (from 1) to reach a node, `waited` after the first.
// Returns how long to wait before the next attempt, or nothing to give up. A node that the manager
// calls dead is not tried again.
std::optional<Duration> RetryDelay(uint32_t attempt, Duration waited, bool node_alive);

// Maximum number of bytes in one request to store data.
inline constexpr uint64_t kPieceBytesMax = uint64_t{4} << 20;

// Returns how long to wait before a full store is asked again, after `attempt` (from 0) earlier
// waits; nothing to give up. Room that other clients held unused, or that was just freed, returns
// within a second.
std::optional<Duration> NoSpaceDelay(size_t attempt);

// How long a client waits before it looks again at a file whose layout another one has frozen.
inline constexpr Duration kFrozenDelay = Milliseconds(10);
// How long one client may take to move inline bytes into objects. Well below kFreezeMax, so that no
// store of such a move comes after its freeze.
inline constexpr Duration kInlineMoveMax = Seconds(10);

// Repeats a BindRequest that was refused.
class BindRetries {
 public:
  explicit BindRetries(Time now) : begun_(now) {}
  // Returns how long to wait before it is sent again; nothing to give up.
  std::optional<Duration> DelayAfter(const Failure& refused, Time now);

 private:
  const Time begun_;
  size_t no_space_ = 0;
};

// Blocks of data read ahead are at most this long, and are cut at its multiples.
inline constexpr uint64_t kBlockBytesMax = 1 << 20;
// Maximum memory of a mount for blocks fetched from other nodes, unless it is told otherwise.
inline constexpr uint64_t kReadCacheBytesMax = uint64_t{48} << 20;

// A file is read from its nodes in parallel, by one lane for each: the lane of the block that
// contains byte `offset`. Precondition: the layout is bound.
uint64_t LaneOf(const Layout& layout, uint64_t offset);
// Concurrent fetches in each lane. With more nodes there are fewer, because connections between the
// same hosts take bandwidth from each other and wait for each other's losses.
uint32_t FetchesPerLane(const Layout& layout);
// The share of one file in a cache of blocks that `files` use: room for a block at least.
uint64_t CacheShare(uint64_t cache_bytes_max, size_t files);
// Returns how many bytes may be read ahead in a file.
uint64_t ReadWindow(const Layout& layout, uint64_t read_ahead_bytes_max, uint64_t cache_share);

// What a mount knows of a file and of its right to the bytes.
struct CachedRight {
  bool is_current = false;      // No recall or change of its own has put it out of date.
  bool has_attributes = false;  // Likewise for the attributes.
  bool serves = false;          // It allows what is wanted.
  bool bound = false;           // It names nodes, which check when the right expires.
  Time expires;
};
// True if a file can be opened, or its bytes used, without a question to the manager.
bool MayUseCached(const CachedRight& cached, bool with_attributes, Time now);

// True if an OpenRequest that was refused is sent again, after `again` repetitions: inline bytes
// may have become an object between the manager's decision and its answer.
constexpr bool OpenIsRepeated(const Failure& refused, int again) {
  return refused.code == StatusCode::kAborted && again < 3;
}

// True if asking the manager again may help; otherwise the file, or the right to it, is gone.
bool MayBeTriedAgain(const Failure& failure);

// Orders the copies of a piece for reading: local, live, dead. Equal copies are rotated by `seed`,
// so that readers spread.
struct CopyChoice {
  NodeId node;
  bool local = false;
  bool alive = true;
};
std::vector<NodeId> OrderCopies(const std::vector<CopyChoice>& copies, uint64_t seed);
// Bytes read from one copy before a reader may switch.
inline constexpr uint64_t kSpreadBytesMin = uint64_t{4} << 20;
// The seed for the bytes at `offset`: clients start with different copies, and a stream rotates
// through all of them.
uint64_t CopySeed(ClientId client, FileId file, const Layout& layout, uint64_t offset);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_RULES_H_
