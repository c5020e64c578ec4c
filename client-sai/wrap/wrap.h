// A directory of any file system, mounted once more through this process, which traces what
// programs do by that mount: `mosa trace wrap`.
#ifndef MOSA_CLIENT_SAI_WRAP_WRAP_H_
#define MOSA_CLIENT_SAI_WRAP_WRAP_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"

namespace mosa::sai {

struct WrapOptions {
  std::string directory;    // What is traced.
  std::string mount_point;  // An empty directory, not in it.
  std::string trace_path;   // Not there yet, and not on the mount.
};

// As the file of the trace says.
struct WrapOutcome {
  std::string trace_path;
  uint64_t records = 0;
  uint64_t dropped = 0;
  uint64_t bytes = 0;
  std::string end;  // kTraceStopped, or why the trace ended before the mount.
};

// Mounts, calls `on_ready` once all that happens is traced, and serves until somebody unmounts, or
// SIGTERM, SIGINT or SIGHUP, which it takes from this process for good. By root it serves every
// user, each as himself; by another user him alone. InvalidArgument, NotFound, FailedPrecondition,
// PermissionDenied: nothing is mounted, and no trace written.
Result<WrapOutcome> WrapDirectory(const WrapOptions& options,
                                  const std::function<void()>& on_ready);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_WRAP_WRAP_H_
