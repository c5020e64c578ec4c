// What `mosa stage` does, and what other commands ask of staging before they end a store.
#ifndef MOSA_TOOLS_STAGE_STAGE_H_
#define MOSA_TOOLS_STAGE_STAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/cluster/state.h"
#include "tools/console/manager.h"
#include "tools/hosts/hosts.h"
#include "tools/stage/run.h"

namespace mosa::cli {

struct CopyRequest {
  std::vector<std::string> paths;  // Sources, then the target.
  StageRequest request;
  HostsRequest hosts;
  ManagerChoice manager;
};

// Copies into the store or out of it, and prints what was copied and what could not be.
Status RunCopy(CopyRequest options, bool as_json);

// Prints which files of lifetime=keep are nowhere but in the store; FailedPrecondition if any is.
Status ShowUnstaged(const ManagerChoice& choice, bool as_json);

// Returns how many files nobody asked to be kept, and says it. FailedPrecondition if files that are
// to be kept are nowhere but in the store, with the command that copies them out; `what` names the
// store, and `override` is what ends it nevertheless. Unavailable or Aborted if that cannot be
// said.
Result<uint64_t> CheckAllStaged(const ManagerChoice& choice, const std::string& what,
                                const std::string& override);

// Before this cluster ends: copies what is to be kept and is unstaged to `stage_out`, if that is
// not empty, then CheckAllStaged; with `dry_run` it only says what it would copy. Returns how many
// files end with the store, as far as is known: 0 for a cluster whose start has not come to its
// end. FailedPrecondition if the manager of another has ended. Precondition: an InterruptGuard
// exists.
Result<uint64_t> StageBeforeDown(const cluster::ClusterState& state, const ManagerChoice& choice,
                                 const std::string& stage_out, bool dry_run);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_STAGE_STAGE_H_
