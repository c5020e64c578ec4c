#include "proto/convert/grpc_process.h"

#include <openssl/crypto.h>

#include <cstdlib>

#include "absl/synchronization/mutex.h"

namespace mosa {

void PrepareGrpcProcess() {
  // gRPC's own lines would tell of every stranger who knocks; what matters comes back as a Status.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Distributions' builds of Abseil look for deadlocks among gRPC's locks, at 4 % of a busy
  // daemon's time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // A thread of gRPC's own may be greeting a peer when main returns: OpenSSL must not be taken from
  // under it, or the process ends by a signal instead of its exit code.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

}  // namespace mosa
