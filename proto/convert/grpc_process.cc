#include "proto/convert/grpc_process.h"

#include <cstdlib>

#include "absl/synchronization/mutex.h"

namespace mosa {

void PrepareGrpcProcess() {
  // gRPC's own lines would tell of every stranger who knocks; what matters comes back as a Status.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Distributions' builds of Abseil look for deadlocks among gRPC's locks, at 4 % of a busy
  // daemon's time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace mosa
