#include "common/base/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace mosa {

Result<std::string> ReadText(const std::string& path, uintmax_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFoundError(fmt::format("cannot read {}: {}", path, strerror(errno)));
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || size > bytes_max)
    return InvalidArgumentError(
        fmt::format("cannot use {}: {}", path, error ? error.message() : "it is too long"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace mosa
