#include "tools/hosts/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/unique_fd.h"
#include "tools/console/xattr.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

// More chunks than this are counted as evenly spread.
constexpr uint64_t kChunksCountedMax = 4096;
constexpr uint64_t kPiecesReadMax = 64;

Status ErrorOf(const std::string& path, int error) {
  const std::string text = fmt::format("{}: {}", path, strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFoundError(text);
    case EIO:
      return DataLossError(text);
    case ENOSPC:
      return ResourceExhaustedError(text);
    case ENOTCONN:
    case ECONNABORTED:
    case ETIMEDOUT:
      return UnavailableError(fmt::format("{}: {}", text, WhyMountFails(error)));
    default:
      return FailedPreconditionError(text);
  }
}

// How many bytes go to one node before the next one's turn.
uint64_t StripeUnit(const nlohmann::json& layout) {
  return layout.value("chunk_size", uint64_t{0}) * layout.value("run_chunks", uint64_t{1});
}

// The bytes [begin, end) of a segment of `width` positions, by position.
std::vector<uint64_t> BytesByPosition(uint64_t begin, uint64_t end, uint64_t chunk, size_t width) {
  std::vector<uint64_t> bytes(width, 0);
  if (width == 1 || (end - begin) / chunk > kChunksCountedMax) {
    for (uint64_t& share : bytes) share = (end - begin) / width;
    return bytes;
  }
  for (uint64_t at = begin; at < end;) {
    const uint64_t next = std::min((at / chunk + 1) * chunk, end);
    bytes[(at / chunk - begin / chunk) % width] += next - at;
    at = next;
  }
  return bytes;
}

bool SaysNothing(const Status& status) { return status.code() == StatusCode::kFailedPrecondition; }

// The empty file or directory that carries hints has the time 0, which no program leaves.
bool IsMarked(const struct stat& status) {
  const bool may_be = S_ISDIR(status.st_mode) || status.st_size == 0;
  return may_be && status.st_mtim.tv_sec == 0 && status.st_mtim.tv_nsec == 0;
}

Status Mark(const std::string& path) {
  const struct timespec beginning[2] = {};
  if (utimensat(AT_FDCWD, path.c_str(), beginning, 0) != 0) return ErrorOf(path, errno);
  return OkStatus();
}

// Calls `visit` with each file and directory below `path`, which is a directory, until it fails.
Status Walk(const std::string& path, const std::function<Status(const std::string&)>& visit) {
  std::error_code error;
  for (fs::recursive_directory_iterator each(path, error), end; !error && each != end;
       each.increment(error))
    MOSA_RETURN_IF_ERROR(visit(each->path()));
  return error ? ErrorOf(path, error.value()) : OkStatus();
}

// Size, time and place of what is at `path`, without what is in it; no size unless it is a regular
// file.
Result<FileFacts> LocateOne(const std::string& path, const struct stat& status,
                            bool with_checksum) {
  FileFacts facts;
  facts.mtime_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (!S_ISREG(status.st_mode)) return facts;
  facts.size_bytes = static_cast<uint64_t>(status.st_size);
  if (with_checksum) {
    // Whether the bytes can be had is asked elsewhere.
    if (auto checksum = MosaAttribute(path, "checksum"); checksum.ok())
      facts.checksum = *std::move(checksum);
  }
  if (facts.size_bytes == 0) return facts;
  const auto layout = MosaJsonAttribute(path, "layout");
  if (!layout.ok()) {
    if (SaysNothing(layout.status())) return facts;
    return layout.status();
  }
  if (!layout->value("inline", false)) {
    facts.bytes_by_node = BytesByNode(*layout, facts.size_bytes);
    facts.chunk_bytes = layout->value("chunk_size", uint64_t{0});
    return facts;
  }
  MOSA_ASSIGN_OR_RETURN(const std::string location, MosaAttribute(path, "location"));
  for (const std::string& node : SplitNames(location)) facts.bytes_by_node[node] = facts.size_bytes;
  return facts;
}

// Returns the checksum of a directory with such files; empty if one of them has none.
std::string ChecksumOfAll(const std::map<std::string, std::string>& checksums) {
  std::string all;
  for (const auto& [path, checksum] : checksums) {
    if (checksum.empty()) return "";
    all += path + '\0' + checksum + '\0';
  }
  return fmt::format("{:016x}", Hash64(all));
}

Status SetHints(const std::string& path, const predict::HintMap& hints) {
  for (const auto& [name, value] : hints) {
    if (setxattr(path.c_str(), ("user.mosa." + name).c_str(), value.data(), value.size(), 0) == 0)
      continue;
    if (errno == EINVAL)
      return InvalidArgumentError(
          fmt::format("the mount does not take the hint {}={} (for {})", name, value, path));
    return ErrorOf(fmt::format("{} (hint {}={})", path, name, value), errno);
  }
  return OkStatus();
}

// The hints that a run has given to a directory, one per line, in an attribute that is not a hint.
constexpr const char* kGivenAttribute = "user.mosa-run.hints";
constexpr size_t kGivenBytesMax = 4096;

predict::HintMap GivenHints(const std::string& path) {
  std::string text(kGivenBytesMax, '\0');
  const ssize_t size = getxattr(path.c_str(), kGivenAttribute, text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
  predict::HintMap hints;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) hints.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return hints;
}

Status RememberHints(const std::string& path, const predict::HintMap& hints) {
  std::string text;
  for (const auto& [name, value] : hints) text += fmt::format("{}={}\n", name, value);
  if (text.empty() && (removexattr(path.c_str(), kGivenAttribute) == 0 || errno == ENODATA))
    return OkStatus();
  if (!text.empty() && setxattr(path.c_str(), kGivenAttribute, text.data(), text.size(), 0) == 0)
    return OkStatus();
  return ErrorOf(path, errno);
}

}  // namespace

std::map<std::string, uint64_t> BytesByNode(const nlohmann::json& layout, uint64_t size_bytes) {
  std::map<std::string, uint64_t> held;
  const uint64_t chunk = StripeUnit(layout);
  const auto segments = layout.value("segments", nlohmann::json::array());
  if (chunk == 0) return held;
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint64_t begin = segments[i].value("begin", uint64_t{0});
    const auto nodes = segments[i].value("nodes", std::vector<std::string>());
    const auto width = segments[i].value("width", size_t{0});
    const uint64_t next =
        i + 1 < segments.size() ? segments[i + 1].value("begin", uint64_t{0}) : size_bytes;
    const uint64_t end = std::min(next, size_bytes);
    if (begin >= end || width == 0 || nodes.size() < width) continue;
    const auto bytes = BytesByPosition(begin, end, chunk, width);
    // Every copy of a position is one stripe width further on. A position with fewer copies than
    // others names one of them again.
    std::set<std::pair<size_t, std::string>> counted;
    for (size_t at = 0; at < nodes.size(); ++at)
      if (counted.emplace(at % width, nodes[at]).second) held[nodes[at]] += bytes[at % width];
  }
  return held;
}

bool HasSameBytes(const FileFacts& a, const FileFacts& b) {
  if (a.size_bytes != b.size_bytes) return false;
  if (!a.checksum.empty() && !b.checksum.empty()) return a.checksum == b.checksum;
  return a.mtime_ns == b.mtime_ns;
}

Result<FileFacts> Locate(const std::string& path, bool with_checksum) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ErrorOf(path, errno);
  MOSA_ASSIGN_OR_RETURN(FileFacts facts, LocateOne(path, status, with_checksum));
  if (!S_ISDIR(status.st_mode) || !path.ends_with('/')) return facts;
  std::map<std::string, std::string> checksums;  // By path; for what is no file, what it is.
  std::error_code error;
  MOSA_RETURN_IF_ERROR(Walk(path, [&](const std::string& inside) -> Status {
    if (lstat(inside.c_str(), &status) != 0)
      return errno == ENOENT ? OkStatus() : ErrorOf(inside, errno);
    MOSA_ASSIGN_OR_RETURN(FileFacts one, LocateOne(inside, status, with_checksum));
    facts.size_bytes += one.size_bytes;
    facts.mtime_ns = std::max(facts.mtime_ns, one.mtime_ns);
    for (const auto& [node, bytes] : one.bytes_by_node) facts.bytes_by_node[node] += bytes;
    std::string& checksum = checksums[inside.substr(path.size())];
    if (S_ISREG(status.st_mode))
      checksum = std::move(one.checksum);
    else if (S_ISLNK(status.st_mode))
      checksum = "to " + fs::read_symlink(inside, error).string();
    else
      checksum = fmt::format("type {:o}", status.st_mode & S_IFMT);
    return OkStatus();
  }));
  if (with_checksum) facts.checksum = ChecksumOfAll(checksums);
  return facts;
}

Status CheckReadable(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return ErrorOf(path, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return ErrorOf(path, errno);
  if (S_ISDIR(status.st_mode)) {
    return Walk(path, [](const std::string& inside) -> Status {
      struct stat found {};
      if (lstat(inside.c_str(), &found) != 0) return ErrorOf(inside, errno);
      return S_ISREG(found.st_mode) ? CheckReadable(inside) : OkStatus();
    });
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0) return OkStatus();
  // What the kernel keeps of it says nothing of its nodes.
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  std::vector<uint64_t> offsets = {0};
  if (const auto layout = MosaJsonAttribute(path, "layout"); layout.ok()) {
    const uint64_t chunk = std::max<uint64_t>(1, StripeUnit(*layout));
    for (const auto& segment : layout->value("segments", nlohmann::json::array())) {
      const uint64_t begin = segment.value("begin", uint64_t{0});
      const uint64_t width = std::min(segment.value("width", uint64_t{1}), kPiecesReadMax);
      for (uint64_t k = 0; k < width; ++k)
        offsets.push_back(k == 0 ? begin : (begin / chunk + k) * chunk);
    }
  }
  for (const uint64_t offset : offsets) {
    char byte = 0;
    if (offset < size && pread(file.get(), &byte, 1, static_cast<off_t>(offset)) < 0)
      return ErrorOf(path, errno);
  }
  return OkStatus();
}

Result<bool> SettleDirectory(const std::string& path, const predict::HintMap& hints) {
  std::error_code error;
  const bool is_new = fs::create_directories(path, error);
  if (error) return ErrorOf(path, error.value());
  const auto carries = [&](const auto& hint) {
    if (is_new) return false;
    const auto value = MosaAttribute(path, hint.first);
    return value.ok() && *value == hint.second;
  };
  predict::HintMap ours = is_new ? predict::HintMap() : GivenHints(path);
  bool changed = false;
  for (const auto& hint : predict::HintMap(ours)) {
    const auto wanted = hints.find(hint.first);
    if (wanted != hints.end() && wanted->second == hint.second) continue;
    // A value that somebody has set since is not ours to remove.
    if (carries(hint) && removexattr(path.c_str(), ("user.mosa." + hint.first).c_str()) != 0)
      return ErrorOf(path, errno);
    ours.erase(hint.first);
    changed = true;
  }
  const bool carried = std::all_of(hints.begin(), hints.end(), carries);
  const bool free = is_new || changed || (fs::is_empty(path, error) && !error);
  if (carried || !free) {
    if (changed) MOSA_RETURN_IF_ERROR(RememberHints(path, ours));
    return carried;
  }
  // Before the hints themselves, so that the next run knows of them however this one ends.
  MOSA_RETURN_IF_ERROR(RememberHints(path, hints));
  MOSA_RETURN_IF_ERROR(SetHints(path, hints));
  return true;
}

Status PrepareOutput(const std::string& directory, const std::string& path,
                     const predict::HintMap& hints) {
  const bool is_directory = path.ends_with('/');
  const fs::path full = fs::path(directory) / path.substr(0, path.size() - (is_directory ? 1 : 0));
  const std::string parent = full.parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return ErrorOf(parent, error.value());
  if (is_directory) {
    fs::remove_all(full, error);
    if (error) return ErrorOf(full, error.value());
    if (hints.empty()) return OkStatus();
    if (mkdir(full.c_str(), 0777) != 0) return ErrorOf(full, errno);
    MOSA_RETURN_IF_ERROR(SetHints(full, hints));
    return Mark(full);
  }
  if (unlink(full.c_str()) != 0 && errno != ENOENT) {
    if (errno != EISDIR) return ErrorOf(full, errno);
    return FailedPreconditionError(fmt::format(
        "'{0}' is a directory: remove it, or name the output '{0}/' if the task fills a directory",
        path));
  }
  if (hints.empty()) return OkStatus();
  // Closed first: an open file that the kernel writes by itself takes no more hints.
  UniqueFd file(open(full.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return ErrorOf(full, errno);
  file.reset();
  MOSA_RETURN_IF_ERROR(SetHints(full, hints));
  return Mark(full);
}

Status GiveHints(const std::string& path, const predict::HintMap& hints) {
  if (!path.ends_with('/')) return SetHints(path, hints);
  return Walk(path, [&](const std::string& inside) -> Status {
    struct stat status {};
    if (lstat(inside.c_str(), &status) != 0) return ErrorOf(inside, errno);
    return S_ISREG(status.st_mode) ? SetHints(inside, hints) : OkStatus();
  });
}

Status CheckWritten(const std::string& directory, const std::string& path) {
  const bool is_directory = path.ends_with('/');
  const std::string full =
      fs::path(directory) / path.substr(0, path.size() - (is_directory ? 1 : 0));
  struct stat status {};
  if (stat(full.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return FailedPreconditionError(fmt::format("it did not write '{}'", path));
    return ErrorOf(full, errno);
  }
  if (is_directory && !S_ISDIR(status.st_mode))
    return FailedPreconditionError(fmt::format("it made '{}', but not as a directory", path));
  if (!is_directory && S_ISDIR(status.st_mode))
    return FailedPreconditionError(
        fmt::format("it made '{0}' as a directory: name the output '{0}/' if that is meant", path));
  if (!is_directory && !S_ISREG(status.st_mode))
    return FailedPreconditionError(fmt::format("it made '{}', which is not a regular file", path));
  std::error_code error;
  if (IsMarked(status) && (!is_directory || fs::is_empty(full, error)))
    return FailedPreconditionError(fmt::format("it did not write '{}'", path));
  return OkStatus();
}

Status TryHints(const std::string& directory, const predict::HintMap& hints) {
  const std::string path = fmt::format("{}/.mosa-run-{}", directory, getpid());
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return ErrorOf(path, errno);
  file.reset();
  const Status set = SetHints(path, hints);
  unlink(path.c_str());
  return set;
}

}  // namespace mosa::cli
