// The small decisions of a client: whether the kernel may write an object by itself, how much room
// to ask for, how long to go on trying, which copy to read. Pure functions.
#ifndef MOSA_CLIENT_SAI_CORE_RULES_H_
#define MOSA_CLIENT_SAI_CORE_RULES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "client-sai/core/outcome.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Set aside for each file that the kernel writes by itself, ahead of what it has written.
inline constexpr uint64_t kPassthroughRoomBytes = uint64_t{256} << 20;

// How far the kernel is to read ahead of a program. One that may not be told so (a mount without
// root) stays at its own 128 KiB.
inline constexpr uint64_t kKernelReadAheadBytes = uint64_t{2} << 20;

// Whether the kernel may write an object by itself. Such a file cannot go on at another node when
// its own is full, and nobody sees it grow, so its node must have ample room besides what is set
// aside for it: 1 GiB, and a quarter of its limit.
bool PassthroughWriteAllowed(uint64_t node_free_bytes, uint64_t node_limit_bytes);

// The permissions that remain once somebody without CAP_FSETID has written a file: set-user-id is
// gone, and so is set-group-id if the group may execute it.
uint32_t WithoutPrivileges(uint32_t permissions);

// What happens to the pages that the kernel caches of a file after a write went past them. A reader
// may have filled one while the write was under way, with bytes from before it, or cut off at the
// old end.
enum class PagesAfterWrite : uint8_t {
  kKeep,    // They are those of the write.
  kForget,  // Nobody reads by them now: whoever opens the file next begins without them.
  kDrop,    // Somebody has the file open by them: they go before the write returns.
};
struct DirectWrite {
  bool kernel_drops_pages = false;  // The kernel drops them before each such write (Linux 6.6).
  bool opened_meanwhile = false;    // Somebody opened the file to read it by pages.
  bool open_by_pages = false;       // Somebody has it open so now.
};
PagesAfterWrite PagesAfter(const DirectWrite& write);

// How much room to ask of a node when `need_bytes` are wanted at once and `last_wish_bytes` were
// asked for the time before: doubling from 4 MiB to 64 MiB, so that a small file takes little and a
// stream seldom waits.
uint64_t GrantWish(uint64_t need_bytes, uint64_t last_wish_bytes);
// Time to ask ahead: less than half of the last wish is left.
bool GrantIsLow(uint64_t held_bytes, uint64_t last_wish_bytes);

// What to do after the `attempt`-th failure (from 1) to reach a node that was asked for `waited`
// so far: wait this long and try again, or give up (absent). A node that the manager calls dead is
// not tried again.
std::optional<Duration> RetryDelay(uint32_t attempt, Duration waited, bool node_alive);

// So much in a row is read from the same copy.
inline constexpr uint64_t kSpreadBytesMin = uint64_t{4} << 20;

// Asking the manager again may help; else the file, or the right to it, is gone.
bool MayBeTriedAgain(const Failure& failure);

// The copies of a piece in the order in which to try them: own node, live ones, dead ones; those
// that are equal begin at `seed`, so that readers spread.
struct CopyChoice {
  NodeId node;
  bool local = false;
  bool alive = true;
};
std::vector<NodeId> OrderCopies(const std::vector<CopyChoice>& copies, uint64_t seed);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_RULES_H_
