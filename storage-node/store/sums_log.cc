#include "storage-node/store/sums_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>

#include "common/base/errno_status.h"
#include "common/base/mutex.h"

namespace mosa::node {
namespace {

std::string NameOf(uint64_t number) { return fmt::format("{:016x}", number); }

std::optional<uint64_t> ParseName(std::string_view name) {
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number, 16);
  if (error != std::errc{} || stop != name.data() + name.size() || NameOf(number) != name)
    return std::nullopt;
  return number;
}

Result<std::string> ReadWhole(int directory, const std::string& name) {
  const UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return ErrnoStatus(errno, fmt::format("cannot read the checksums in {}", name));
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got =
        ::pread(fd.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read the checksums in {}", name));
    if (got == 0) bytes.resize(at);
    at += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<SumsLog>> SumsLog::Open(int parent_fd, const std::string& name,
                                               bool keep_before_damage) {
  if (::mkdirat(parent_fd, name.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, fmt::format("cannot create the checksum directory {}", name));
  UniqueFd directory(
      ::openat(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory)
    return ErrnoStatus(errno, fmt::format("cannot open the checksum directory {}", name));
  std::unique_ptr<SumsLog> log(new SumsLog(std::move(directory)));
  const SystemMutexLock lock(log->mutex_);
  MOSA_RETURN_IF_ERROR(log->Read(keep_before_damage));
  MOSA_RETURN_IF_ERROR(log->OpenNext());
  return log;
}

Status SumsLog::Read(bool keep_before_damage) {
  const int fd = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const directory = fd < 0 ? nullptr : ::fdopendir(fd);
  if (directory == nullptr) {
    const int error = errno;
    UniqueFd unowned(fd);
    return ErrnoStatus(error, "cannot list the checksum directory");
  }
  while (const dirent* entry = ::readdir(directory))
    if (const auto number = ParseName(entry->d_name)) files_.insert(*number);
  ::closedir(directory);
  found_any_ = !files_.empty();
  for (const uint64_t number : files_) {
    const Result<std::string> bytes = ReadWhole(directory_.get(), NameOf(number));
    // A torn end is the record that the process could not finish.
    if (bytes.ok() && ReadSums(*bytes, found_) != SumsLogEnd::kDamaged) continue;
    found_damage_ = true;
  }
  if (found_damage_ && !keep_before_damage) found_.records.clear();
  return OkStatus();
}

Status SumsLog::OpenNext() {
  const uint64_t number = files_.empty() ? 1 : *files_.rbegin() + 1;
  UniqueFd next(::openat(directory_.get(), NameOf(number).c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!next) return ErrnoStatus(errno, "cannot create a checksum file");
  files_.insert(number);
  last_ = std::move(next);
  last_bytes_ = 0;
  return OkStatus();
}

Status SumsLog::Append(std::string_view record) {
  const SystemMutexLock lock(mutex_);
  if (given_up_) return OkStatus();
  const ssize_t written = ::write(last_.get(), record.data(), record.size());
  if (written == static_cast<ssize_t>(record.size())) {
    last_bytes_ += record.size();
    return OkStatus();
  }
  const int error = written < 0 ? errno : ENOSPC;
  GiveUp();
  return ErrnoStatus(error,
                     "cannot keep checksums beside the objects: from now on they last only as long "
                     "as this process");
}

void SumsLog::GiveUp() {
  given_up_ = true;
  for (const uint64_t number : files_) ::unlinkat(directory_.get(), NameOf(number).c_str(), 0);
  files_.clear();
}

Status SumsLog::Sync() {
  const SystemMutexLock lock(mutex_);
  if (given_up_) return OkStatus();
  if (::fdatasync(last_.get()) != 0 || ::fsync(directory_.get()) != 0)
    return ErrnoStatus(errno, "cannot sync the checksums");
  return OkStatus();
}

Status SumsLog::BeginNext() {
  const SystemMutexLock lock(mutex_);
  return given_up_ ? OkStatus() : OpenNext();
}

Status SumsLog::FinishNext() {
  const SystemMutexLock lock(mutex_);
  if (given_up_) return OkStatus();
  while (files_.size() > 1) {
    if (::unlinkat(directory_.get(), NameOf(*files_.begin()).c_str(), 0) != 0 && errno != ENOENT)
      return ErrnoStatus(errno, "cannot remove a checksum file");
    files_.erase(files_.begin());
  }
  return OkStatus();
}

uint64_t SumsLog::bytes() const {
  const SystemMutexLock lock(mutex_);
  return last_bytes_;
}

bool SumsLog::given_up() const {
  const SystemMutexLock lock(mutex_);
  return given_up_;
}

}  // namespace mosa::node
