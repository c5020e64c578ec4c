// A directory of any file system, mounted once more through this process, which traces what
// programs do by that mount: `mosa trace wrap`.
#ifndef MOSA_TOOLS_WRAP_WRAP_H_
#define MOSA_TOOLS_WRAP_WRAP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::wrap {

struct WrapOptions {
  std::string directory;    // What is traced.
  std::string mount_point;  // An empty directory, not in it.
  std::string trace_path;   // Not there yet, and not on the mount.
  // Run in the mount, which lasts as long as it; if empty the mount lasts until it is ended.
  std::vector<std::string> command = {};
};

// As the file of the trace says.
struct WrapOutcome {
  std::string trace_path;
  uint64_t records = 0;
  uint64_t dropped = 0;
  uint64_t bytes = 0;
  std::string end;    // kTraceStopped, or why the trace ended before the mount.
  int exit_code = 0;  // The command's, as a shell says it.
};

// Mounts, calls `on_ready` once all that happens is traced, and serves until the command ends.
// Without one, until somebody unmounts, or SIGTERM, SIGINT or SIGHUP. These signals it takes from
// this process for good; a command gets the terminal's by itself, and the others are passed on.
//
// By another user than root it serves him alone, with his rights. By root it serves every user:
// the kernel asks modes and POSIX access lists whether a program may, and what is made is its
// user's; all else is done in root's name, which the file system below must respect (NFS:
// no_root_squash). InvalidArgument, NotFound, FailedPrecondition, PermissionDenied: nothing is
// mounted, and no trace written. Called before the process has threads.
Result<WrapOutcome> WrapDirectory(const WrapOptions& options,
                                  const std::function<void()>& on_ready);

}  // namespace mosa::wrap

#endif  // MOSA_TOOLS_WRAP_WRAP_H_
