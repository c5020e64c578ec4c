#include "tools/cluster/mounts.h"

#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/cluster/process.h"

namespace mosa::cluster {
namespace {

// mountinfo writes blanks and backslashes of a path as \040 and the like.
std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

std::vector<std::string> MountsBelow(const std::string& directory) {
  std::vector<std::string> points;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 5; ++i) fields >> field;
    const std::string point = Unescape(field);
    if (point == directory || point.starts_with(directory + "/")) points.push_back(point);
  }
  std::reverse(points.begin(), points.end());
  return points;
}

Status MountTmpfs(const std::string& path, int64_t size_bytes) {
  const std::string options = fmt::format("size={},mode=0700", size_bytes);
  if (mount("mosa", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return FailedPreconditionError(fmt::format("cannot mount a tmpfs of {} bytes on {}: {}",
                                               size_bytes, path, strerror(errno)));
  }
  return OkStatus();
}

Status Unmount(const std::string& path) {
  if (geteuid() != 0) return RunCommand({"fusermount3", "-u", "-z", path}).status();
  if (umount2(path.c_str(), UMOUNT_NOFOLLOW) == 0) return OkStatus();
  if (umount2(path.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) == 0) return OkStatus();
  return FailedPreconditionError(fmt::format("cannot unmount {}: {}", path, strerror(errno)));
}

Status RemoveDirectory(const std::string& directory) {
  const auto mounts = MountsBelow(directory);
  if (!mounts.empty()) {
    return FailedPreconditionError(
        fmt::format("{} is still mounted, so {} was not removed", mounts.front(), directory));
  }
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error) {
    return FailedPreconditionError(fmt::format("cannot remove {}: {}", directory, error.message()));
  }
  return OkStatus();
}

}  // namespace mosa::cluster
