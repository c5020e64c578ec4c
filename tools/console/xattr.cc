#include "tools/console/xattr.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/model/hint_values.h"

namespace mosa::cli {

namespace {

constexpr size_t kShortBytes = 1024;

Status StatusOfErrno(int error, const std::string& path, const std::string& attribute) {
  const std::string text = fmt::format("{}: {}", path, strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFoundError(text);
    case ENODATA:
    case EOPNOTSUPP:
      return FailedPreconditionError(
          fmt::format("{} has no {}: it is not a regular file on a Mosa mount", path, attribute));
    case EACCES:
    case EPERM:
      return PermissionDeniedError(text);
    case EIO:
      return DataLossError(text);
    case ENOTCONN:
    case ETIMEDOUT:
      return UnavailableError(fmt::format("{}: {}", text, WhyMountFails(error)));
    default:
      return FailedPreconditionError(text);
  }
}

}  // namespace

const char* WhyMountFails(int error) {
  return error == ETIMEDOUT ? "the manager or a storage node does not answer its mount; see 'mosa "
                              "cluster status'"
                            : "its mount is dead";
}

Result<std::string> MosaAttribute(const std::string& path, const std::string& name) {
  const std::string full = "user.mosa." + name;
  // Most are short; the value may grow between the call that returns its length and the next one.
  std::string value(kShortBytes, '\0');
  ssize_t length = lgetxattr(path.c_str(), full.c_str(), value.data(), value.size());
  while (length < 0 && errno == ERANGE) {
    length = lgetxattr(path.c_str(), full.c_str(), nullptr, 0);
    if (length < 0) break;
    value.resize(static_cast<size_t>(length) + 256);
    length = lgetxattr(path.c_str(), full.c_str(), value.data(), value.size());
  }
  if (length >= 0) {
    value.resize(static_cast<size_t>(length));
    return value;
  }
  return StatusOfErrno(errno, path, full);
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
  // Keeps the last component: a symbolic link on the mount is a file of its own.
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

Result<MountedPath> FindMountOfNew(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  fs::path missing;
  while (at.has_relative_path() && !fs::exists(fs::symlink_status(at, error))) {
    missing = missing.empty() ? at.filename() : at.filename() / missing;
    at = at.parent_path();
  }
  // Looks for the missing part behind symbolic links.
  if (!missing.empty()) at = fs::canonical(at, error);
  MOSA_ASSIGN_OR_RETURN(MountedPath mounted, FindMount(at));
  if (!missing.empty()) mounted.path = (fs::path(mounted.path) / missing).string();
  return mounted;
}

Status SetMosaAttribute(const std::string& path, const std::string& name,
                        const std::string& value) {
  const std::string full = "user.mosa." + name;
  if (lsetxattr(path.c_str(), full.c_str(), value.data(), value.size(), 0) == 0) return OkStatus();
  const int error = errno;
  const std::string what = fmt::format("{}: cannot set {}={}", path, name, value);
  switch (error) {
    case EINVAL: {
      const auto parsed = ParseHint(name, /*alias=*/false, value);
      return InvalidArgumentError(
          what + ": " +
          (parsed.ok() ? "the mount does not know this hint or value, perhaps because it is older"
                       : MessageOf(parsed.status())));
    }
    case ENOTEMPTY:
      return FailedPreconditionError(
          what + ": the file has bytes already; set it on the empty file or its directory");
    case EBUSY:
      return FailedPreconditionError(
          what +
          ": it is too late, or a program has the file open for writing; close it, and set the "
          "hint on the empty file or its directory");
    case EPERM:
      return PermissionDeniedError(what + ": it can only be read");
    default:
      return StatusOfErrno(error, path, full);
  }
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
