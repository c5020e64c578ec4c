// RunMark: how safely the manager's last run wrote its database.
//
// A database without fsync loses the end of its log if the machine crashes, and cannot detect that
// afterwards. So each run records the machine's boot id and whether it syncs before it writes
// anything else, and a clean end when it stops. The mark is a separate file because it must be
// known before the database's log is replayed. It is rewritten in place, so that a full disk cannot
// prevent it. A torn or foreign mark counts as "may have forgotten".
#ifndef MOSA_MANAGER_STORE_RUN_MARK_H_
#define MOSA_MANAGER_STORE_RUN_MARK_H_

#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace mosa::manager {

struct RunMark {
  std::string boot_id;
  bool synced = false;  // Every change was on disk before it was acknowledged.
  bool ended = false;   // The run ended cleanly, and everything it wrote is on disk.
  // The run began with a store that may have forgotten changes, and what was decided about them is
  // not in the database yet.
  bool behind = false;
  bool operator==(const RunMark&) const = default;
};

std::string Encode(const RunMark& mark);
// Returns nothing if the bytes are not a mark of this version.
std::optional<RunMark> ParseRunMark(std::string_view bytes);
// Returns true if a store may lack acknowledged changes. `last`: the mark found beside it, if it
// was readable.
bool MayHaveForgotten(const std::optional<RunMark>& last, std::string_view boot_id);

// Returns the mark in `directory`; nothing if there is none, or none that can be read.
std::optional<RunMark> ReadRunMark(const std::string& directory);
// Returns when the mark is on disk. Precondition: the directory exists.
Status WriteRunMark(const std::string& directory, const RunMark& mark);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_STORE_RUN_MARK_H_
