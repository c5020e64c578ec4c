// What a tracer asks of the mount that it traces.
#ifndef MOSA_CLIENT_SAI_TRACE_TRACED_MOUNT_H_
#define MOSA_CLIENT_SAI_TRACE_TRACED_MOUNT_H_

#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Thread-safe. SetPassthrough waits for nobody; the rest is asked by the tracer's own thread.
class TracedMount {
 public:
  struct NamedFile {
    FileId file;
    FileId parent;
    std::string name;
  };

  virtual ~TracedMount() = default;
  // In the time base that is common to the mounts of a run.
  virtual Time TraceTime() = 0;
  // False: no file that is opened from here on is the kernel's to read and write by itself. True:
  // as the mount likes.
  virtual void SetPassthrough(bool allowed) = 0;
  // What this mount knows of names.
  virtual std::vector<NamedFile> KnownNames() = 0;
  // Names that the kernel keeps are to come by again, so that their files have names in the trace.
  virtual void RecallNames() = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_TRACE_TRACED_MOUNT_H_
