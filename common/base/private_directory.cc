#include "common/base/private_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "fmt/format.h"

namespace mosa {

namespace {

constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

UniqueFd Walk(std::string_view path) {
  UniqueFd here(::open("/", kFlags));
  while (here && !path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string name(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!name.empty()) here = UniqueFd(::openat(here.get(), name.c_str(), kFlags));
  }
  return here;
}

}  // namespace

Result<UniqueFd> OpenWithoutLinks(const std::string& path) {
  if (!path.starts_with('/'))
    return FailedPreconditionError(fmt::format("'{}' is not an absolute path", path));
  UniqueFd fd = Walk(path);
  if (fd) return fd;
  const int error = errno;
  if (error == ENOENT) return NotFoundError(fmt::format("there is no directory {}", path));
  const bool is_link = error == ELOOP || error == ENOTDIR;
  return FailedPreconditionError(
      fmt::format("cannot open the directory {}: {}", path,
                  is_link ? "a part of it is a symbolic link or not a directory; give its real path"
                          : std::strerror(error)));
}

Result<UniqueFd> OpenPrivateDirectory(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(UniqueFd fd, OpenWithoutLinks(path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return FailedPreconditionError(
        fmt::format("cannot inspect the directory {}: {}", path, std::strerror(errno)));
  }
  const bool is_ours = status.st_uid == 0 || status.st_uid == ::geteuid();
  if (!is_ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return PermissionDeniedError(
        fmt::format("the directory {} belongs to user {} and has mode {:04o}, but must belong to "
                    "root or user {} and be writable for nobody else",
                    path, status.st_uid, status.st_mode & 07777, ::geteuid()));
  }
  return fd;
}

}  // namespace mosa
