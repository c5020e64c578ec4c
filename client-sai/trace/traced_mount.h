// The interface of a mount to its tracer.
#ifndef MOSA_CLIENT_SAI_TRACE_TRACED_MOUNT_H_
#define MOSA_CLIENT_SAI_TRACE_TRACED_MOUNT_H_

#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Thread-safe. SetPassthrough never blocks; only the tracer's own thread calls the other methods.
class TracedMount {
 public:
  struct NamedFile {
    FileId file;
    FileId parent;
    std::string name;
  };

  virtual ~TracedMount() = default;
  // The time base shared by the mounts of a run.
  virtual Time TraceTime() = 0;
  // False: the kernel may not read and write files opened from now on directly. True: the mount
  // decides.
  virtual void SetPassthrough(bool allowed) = 0;
  // The names that this mount knows.
  virtual std::vector<NamedFile> KnownNames() = 0;
  // Makes the kernel ask for cached names again, so that their files have names in the trace.
  virtual void RecallNames() = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_TRACE_TRACED_MOUNT_H_
