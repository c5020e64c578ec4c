#include "manager/store/data_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/units.h"

namespace mosa::manager {
namespace {

// Names that no other program uses: the reserve is removed and the lock file is made before the
// directory's content is known.
constexpr const char* kReserveName = "mosa-reserve";
constexpr const char* kLockName = "mosa-lock";

struct Space {
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;
};

std::optional<Space> SpaceOf(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return std::nullopt;
  return Space{uint64_t{status.f_blocks} * status.f_frsize,
               uint64_t{status.f_bavail} * status.f_frsize};
}

// Locks the directory until the descriptor is closed. RocksDB's own lock comes later, when the
// reserve must already be gone.
Result<UniqueFd> Lock(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kLockName);
  UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file)
    return FailedPreconditionError(fmt::format("cannot create {}: {}", path, std::strerror(errno)));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK)
    return UnavailableError(
        fmt::format("the data directory {} is in use; another manager may be running with it: stop "
                    "it first",
                    directory));
  return FailedPreconditionError(fmt::format("cannot lock {}: {}", path, std::strerror(errno)));
}

std::string Text(uint64_t bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

}  // namespace

RoomPlan PlanRoom(uint64_t capacity_bytes) {
  RoomPlan plan;
  plan.buffer_bytes = std::clamp(capacity_bytes / 64, kMiB, 8 * kMiB);
  plan.log_bytes = std::clamp(capacity_bytes / 64, 4 * kMiB, 64 * kMiB);
  plan.reserve_bytes = plan.log_bytes + 4 * plan.buffer_bytes;
  plan.watermark_bytes = std::clamp(capacity_bytes / 6, 8 * kMiB, kGiB);
  return plan;
}

RoomView ViewRoom(const RoomPlan& plan, uint64_t capacity_bytes, uint64_t free_bytes,
                  bool has_reserve, bool was_full) {
  const uint64_t kept_bytes = plan.reserve_bytes + plan.watermark_bytes;
  const uint64_t room_bytes = free_bytes + (has_reserve ? plan.reserve_bytes : 0);
  RoomView view;
  view.used_bytes = capacity_bytes - std::min(capacity_bytes, room_bytes);
  view.limit_bytes = capacity_bytes - std::min(capacity_bytes, kept_bytes);
  view.is_full = room_bytes < kept_bytes + (was_full ? plan.watermark_bytes / 4 : 0);
  return view;
}

Result<DataDirectory> DataDirectory::Open(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return FailedPreconditionError(
        fmt::format("cannot create the data directory {}: {}", path, std::strerror(errno)));
  MOSA_ASSIGN_OR_RETURN(UniqueFd lock, Lock(path));
  ::unlink(fmt::format("{}/{}", path, kReserveName).c_str());
  const auto space = SpaceOf(path);
  if (!space)
    return FailedPreconditionError(fmt::format(
        "cannot determine the size of the file system of {}: {}", path, std::strerror(errno)));
  return DataDirectory(path, std::move(lock), space->capacity_bytes);
}

DataDirectory::DataDirectory(std::string path, UniqueFd lock, uint64_t capacity_bytes)
    : path_(std::move(path)),
      reserve_path_(fmt::format("{}/{}", path_, kReserveName)),
      lock_(std::move(lock)),
      capacity_bytes_(capacity_bytes),
      plan_(PlanRoom(capacity_bytes)) {}

RoomView DataDirectory::Look() {
  const auto space = SpaceOf(path_);
  // A file system of unknown fill level fails at the next write, if at all.
  const uint64_t free_bytes = space ? space->free_bytes : capacity_bytes_;
  RoomView view = ViewRoom(plan_, capacity_bytes_, free_bytes, has_reserve_, was_full_);
  was_full_ = view.is_full;
  if (!view.is_full && !has_reserve_) TakeReserve();
  return view;
}

void DataDirectory::TakeReserve() {
  const int file = ::open(reserve_path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  has_reserve_ = ::posix_fallocate(file, 0, static_cast<off_t>(plan_.reserve_bytes)) == 0;
  ::close(file);
  if (!has_reserve_) ::unlink(reserve_path_.c_str());
}

void DataDirectory::GiveReserveUp() {
  ::unlink(reserve_path_.c_str());
  has_reserve_ = false;
  was_full_ = true;
}

std::string DataDirectory::WhyFull(const RoomView& view) const {
  return fmt::format(
      "the file system of the manager's data directory {} has {} of {} in use, and nothing is "
      "added from {} on: remove files, or free space there",
      path_, Text(view.used_bytes), Text(capacity_bytes_), Text(view.limit_bytes));
}

}  // namespace mosa::manager
