#include "tools/mosa/xattr.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace mosa::cli {

Result<std::string> MosaAttribute(const std::string& path, const std::string& name) {
  const std::string full = "user.mosa." + name;
  std::string value;
  ssize_t length = 0;
  // The value may grow between the two calls.
  do {
    length = lgetxattr(path.c_str(), full.c_str(), nullptr, 0);
    if (length < 0) break;
    value.resize(static_cast<size_t>(length) + 256);
    length = lgetxattr(path.c_str(), full.c_str(), value.data(), value.size());
  } while (length < 0 && errno == ERANGE);
  if (length >= 0) {
    value.resize(static_cast<size_t>(length));
    return value;
  }
  const int error = errno;
  const std::string text = fmt::format("{}: {}", path, strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFoundError(text);
    case ENODATA:
    case EOPNOTSUPP:
      return FailedPreconditionError(
          fmt::format("{} has no {}: it is not a regular file on a Mosa mount", path, full));
    case EACCES:
    case EPERM:
      return PermissionDeniedError(text);
    case EIO:
      return DataLossError(text);
    case ENOTCONN:
    case ETIMEDOUT:
      return UnavailableError(fmt::format("{}: its mount is dead", text));
    default:
      return FailedPreconditionError(text);
  }
}

Result<nlohmann::json> MosaJsonAttribute(const std::string& path, const std::string& name) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, MosaAttribute(path, name));
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return InternalError(fmt::format("user.mosa.{} of {} is not JSON: {}", name, path, text));
  }
  return value;
}

Result<MountedPath> FindMount(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  // The last component stays itself: a symbolic link on the mount is a file of its own.
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  const fs::path name = absolute.has_filename() ? absolute.filename() : fs::path();
  fs::path at = fs::canonical(absolute.parent_path(), error);
  if (error) return NotFoundError(fmt::format("{}: {}", path, error.message()));
  if (!name.empty()) at /= name;
  struct stat self {};
  if (lstat(at.c_str(), &self) != 0) {
    return NotFoundError(fmt::format("{}: {}", path, strerror(errno)));
  }
  fs::path root = at;
  while (root.has_relative_path()) {
    struct stat parent {};
    if (lstat(root.parent_path().c_str(), &parent) != 0 || parent.st_dev != self.st_dev) break;
    root = root.parent_path();
  }
  const fs::path inside = at.lexically_relative(root);
  return MountedPath{root.string(), inside == "." ? "/" : "/" + inside.string()};
}

std::vector<std::string> SplitNames(const std::string& location) {
  std::vector<std::string> names;
  for (size_t at = 0; at < location.size();) {
    const size_t comma = std::min(location.find(',', at), location.size());
    if (comma > at) names.push_back(location.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

}  // namespace mosa::cli
