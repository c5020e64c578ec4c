#include "common/base/unique_fd.h"

#include <unistd.h>

namespace mosa {

void UniqueFd::reset() {
  // Linux closes the descriptor even if close(2) reports an error, so it must not be closed again.
  if (fd_ >= 0) ::close(release());
}

}  // namespace mosa
