// Adapts a mount of a cluster to its tracer (client-sai/trace).
#ifndef MOSA_CLIENT_SAI_SAI_TRACING_H_
#define MOSA_CLIENT_SAI_SAI_TRACING_H_

#include <vector>

#include "client-sai/sai/filesystem.h"
#include "client-sai/trace/traced_mount.h"

namespace mosa::sai {

// Borrows its constructor's arguments. Thread-safe.
class TracedFilesystem final : public TracedMount {
 public:
  TracedFilesystem(Filesystem& filesystem, KernelNotifier& notifier)
      : filesystem_(filesystem), notifier_(notifier) {}

  Time TraceTime() override;
  void SetPassthrough(bool allowed) override;
  std::vector<NamedFile> KnownNames() override;
  void RecallNames() override;

 private:
  Filesystem& filesystem_;
  KernelNotifier& notifier_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_TRACING_H_
