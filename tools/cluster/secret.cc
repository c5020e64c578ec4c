#include "tools/cluster/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/unique_fd.h"
#include "proto/convert/credentials.h"

namespace mosa::cluster {

Status CreateSecretFile(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, GenerateSecret());
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    if (errno == EEXIST) {
      return AlreadyExistsError(
          fmt::format("{} exists: remove it first, or name another file", path));
    }
    return FailedPreconditionError(fmt::format("cannot make {}: {}", path, strerror(errno)));
  }
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    unlink(path.c_str());
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(error)));
  }
  return OkStatus();
}

}  // namespace mosa::cluster
