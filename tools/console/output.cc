#include "tools/console/output.h"

#include <absl/strings/escaping.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/base/unique_fd.h"
#include "common/base/utf8.h"

namespace mosa::cli {
namespace {

std::string Dump(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void PrintJson(const nlohmann::json& value) { fmt::print("{}\n", Dump(value, 2)); }

std::string Counted(uint64_t count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  if (noun.ends_with('y')) return fmt::format("{} {}ies", count, noun.substr(0, noun.size() - 1));
  return fmt::format("{} {}s", count, noun);
}

bool Confirm(std::string_view question, const std::function<bool()>& given_up) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return true;
  tcflush(STDIN_FILENO, TCIFLUSH);  // What was typed before is no answer.
  fmt::print(stderr, "{} [y/N] ", question);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, 200) <= 0) {
    if (!given_up()) continue;
    fmt::print(stderr, "\n");
    return false;
  }
  std::array<char, 256> answer{};  // A terminal hands over one line.
  const ssize_t count = read(STDIN_FILENO, answer.data(), answer.size());
  if (count <= 0) fmt::print(stderr, "\n");
  return count > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

void PutBytes(nlohmann::json& object, const std::string& key, const std::string& bytes) {
  object[key] = bytes;
  if (!IsUtf8(bytes)) object[key + "_b64"] = absl::Base64Escape(bytes);
}

void PutBytes(nlohmann::json& object, const std::string& key,
              const std::vector<std::string>& several) {
  object[key] = several;
  if (std::all_of(several.begin(), several.end(), IsUtf8)) return;
  nlohmann::json& encoded = object[key + "_b64"] = nlohmann::json::array();
  for (const std::string& bytes : several) encoded.push_back(absl::Base64Escape(bytes));
}

void Table::Print() const {
  const bool aligned = isatty(STDOUT_FILENO) == 1;
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += aligned ? "  " : "\t";
      const bool last = i + 1 == row.size();
      text += aligned && !last ? fmt::format("{:<{}}", row[i], widths[i]) : row[i];
    }
    fmt::print("{}\n", text);
  }
}

Status WriteWhole(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  const UniqueFd file(
      open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST)
    return FailedPreconditionError(
        fmt::format("cannot write {}: {} exists, left by a process that is writing the same file "
                    "or was killed meanwhile; remove it",
                    path, part));
  if (!file)
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(errno)));
  int error = 0;
  for (size_t at = 0; at < text.size() && error == 0;) {
    const ssize_t bytes = write(file.get(), text.data() + at, text.size() - at);
    if (bytes > 0) at += static_cast<size_t>(bytes);
    if (bytes <= 0 && errno != EINTR) error = bytes == 0 ? ENOSPC : errno;
  }
  if (error == 0 && rename(part.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return OkStatus();
  unlink(part.c_str());
  return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(error)));
}

}  // namespace mosa::cli
