// Copies trees into the store or out of it, from all hosts at once.
#ifndef MOSA_TOOLS_STAGE_RUN_H_
#define MOSA_TOOLS_STAGE_RUN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client-sai/api/admin_client.h"
#include "common/base/status.h"
#include "common/model/hint_values.h"
#include "tools/hosts/hosts.h"
#include "tools/stage/tree.h"

namespace mosa::cli {

struct StageRequest {
  bool out = false;
  std::vector<std::string> sources;
  bool unstaged = false;    // Instead of sources: what is to be kept and is unstaged.
  std::string target;       // Without symbolic links as far as it exists.
  std::string mount_point;  // The store's, as seen from here.
  std::vector<HintValue> hints;
  bool compare = false;
  size_t jobs = 2;       // Processes on each host.
  std::string manifest;  // A file for what was staged, one line of JSON each; empty: none.
};

struct StageReport {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t skipped = 0;  // How many files were there already.
  uint64_t marked = 0;   // The manager remembers them as staged.
  struct Host {
    uint64_t files = 0, bytes = 0;  // Copied.
  };
  std::map<std::string, Host> hosts;
  std::vector<StageFailure> failures;
  std::vector<std::string> passed_over;  // Temporaries of interrupted runs, in sources.
};

// Not all files may be staged: the report has the failures. The status is of what ended it early:
// InvalidArgument for sources and targets that do not fit, FailedPrecondition if another run copies
// to the same target, Aborted if it was interrupted, Unavailable if the manager is gone. The report
// has what was done until then.
// Precondition: an InterruptGuard exists.
Status Stage(const StageRequest& request, const std::vector<RunHost>& hosts,
             sai::AdminClient& manager, StageReport& report);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_STAGE_RUN_H_
