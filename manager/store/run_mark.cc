#include "manager/store/run_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/base/errno_status.h"
#include "common/base/unique_fd.h"

namespace mosa::manager {
namespace {

constexpr const char* kName = "mosa-run";
constexpr std::string_view kHead = "mosa-run 1\n";
// Constant size, so that rewriting it needs no room.
constexpr size_t kMarkBytes = 256;
constexpr size_t kBootIdBytesMax = 128;

// Removes "name 0\n" or "name 1\n" from the front.
bool TakeFlag(std::string_view& rest, std::string_view name, bool& flag) {
  if (!rest.starts_with(name) || rest.size() < name.size() + 3) return false;
  rest.remove_prefix(name.size());
  if (rest[0] != ' ' || (rest[1] != '0' && rest[1] != '1') || rest[2] != '\n') return false;
  flag = rest[1] == '1';
  rest.remove_prefix(3);
  return true;
}

}  // namespace

std::string Encode(const RunMark& mark) {
  std::string text = fmt::format("{}boot {}\nsynced {}\nended {}\nbehind {}\nend\n", kHead,
                                 mark.boot_id.substr(0, kBootIdBytesMax), mark.synced ? 1 : 0,
                                 mark.ended ? 1 : 0, mark.behind ? 1 : 0);
  text.resize(kMarkBytes, '\n');
  return text;
}

std::optional<RunMark> ParseRunMark(std::string_view bytes) {
  constexpr std::string_view kBoot = "boot ";
  if (bytes.size() != kMarkBytes || !bytes.starts_with(kHead)) return std::nullopt;
  std::string_view rest = bytes.substr(kHead.size());
  const size_t line = rest.find('\n');
  if (!rest.starts_with(kBoot) || line == std::string_view::npos) return std::nullopt;
  RunMark mark;
  mark.boot_id = rest.substr(kBoot.size(), line - kBoot.size());
  rest.remove_prefix(line + 1);
  if (mark.boot_id.size() > kBootIdBytesMax || !TakeFlag(rest, "synced", mark.synced) ||
      !TakeFlag(rest, "ended", mark.ended) || !TakeFlag(rest, "behind", mark.behind) ||
      !rest.starts_with("end\n"))
    return std::nullopt;
  return mark;
}

bool MayHaveForgotten(const std::optional<RunMark>& last, std::string_view boot_id) {
  if (!last || last->behind) return true;
  return !last->synced && !last->ended && last->boot_id != boot_id;
}

std::optional<RunMark> ReadRunMark(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kName);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, kMarkBytes + 1> bytes{};
  const ssize_t size = fd ? ::pread(fd.get(), bytes.data(), bytes.size(), 0) : -1;
  if (size < 0) return std::nullopt;
  return ParseRunMark({bytes.data(), static_cast<size_t>(size)});
}

Status WriteRunMark(const std::string& directory, const RunMark& mark) {
  const std::string path = fmt::format("{}/{}", directory, kName);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           S_IRUSR | S_IWUSR));
  const UniqueFd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string text = Encode(mark);
  errno = 0;
  if (!fd || !parent ||
      ::pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::fsync(fd.get()) != 0 || ::fsync(parent.get()) != 0)
    return ErrnoStatus(errno == 0 ? EIO : errno, fmt::format("cannot write {}", path));
  return OkStatus();
}

}  // namespace mosa::manager
