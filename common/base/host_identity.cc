#include "common/base/host_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <string_view>

namespace mosa {

Result<std::string> BootId() {
  constexpr const char* kBootIdPath = "/proc/sys/kernel/random/boot_id";
  std::string boot_id;
  std::ifstream file(kBootIdPath);
  if (!std::getline(file, boot_id) || boot_id.empty()) {
    return UnavailableError(fmt::format("cannot read the boot id from {}", kBootIdPath));
  }
  return boot_id;
}

Result<std::string> HostIdentity() {
  constexpr const char* kNamespacePath = "/proc/self/ns/net";
  MOSA_ASSIGN_OR_RETURN(const std::string boot_id, BootId());
  char link[64];  // "net:[4026531840]"
  const ssize_t size = ::readlink(kNamespacePath, link, sizeof link);
  if (size <= 0) return UnavailableError(fmt::format("cannot read the link {}", kNamespacePath));
  const std::string_view name(link, static_cast<size_t>(size));
  const size_t open = name.find('[');
  const size_t close = name.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return UnavailableError(fmt::format("{} reads '{}', not net:[inode]", kNamespacePath, name));
  }
  return fmt::format("{}:{}", boot_id, name.substr(open + 1, close - open - 1));
}

}  // namespace mosa
