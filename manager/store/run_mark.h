// RunMark: what the manager's last run left beside the database about how safely it wrote.
//
// A database that is not synced loses the end of its log with the machine, and cannot tell
// afterwards. So each run notes on which boot of the machine it runs and whether it syncs, before
// it writes anything else, and at its end that it has ended in order. The mark is a file of its own
// because it must be known before the database's log is replayed. It is rewritten in place, so that
// a full disk cannot prevent it; a torn or foreign mark counts as "may have forgotten".
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
  bool ended = false;   // The run ended in order, and all it wrote is on disk.
  bool behind = false;  // The run began with a store that may have forgotten something, and what
                        // was decided about that is not yet in the database.
  bool operator==(const RunMark&) const = default;
};

std::string Encode(const RunMark& mark);
// Nothing if the bytes are no mark of this version.
std::optional<RunMark> ParseRunMark(std::string_view bytes);
// True if a store may lack changes that were acknowledged. `last`: the mark that was found beside
// it, if it could be read.
bool MayHaveForgotten(const std::optional<RunMark>& last, std::string_view boot_id);

// The mark in `directory`; nothing if there is none, or none that can be read.
std::optional<RunMark> ReadRunMark(const std::string& directory);
// Returns when the mark is on disk. The directory must exist.
Status WriteRunMark(const std::string& directory, const RunMark& mark);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_STORE_RUN_MARK_H_
