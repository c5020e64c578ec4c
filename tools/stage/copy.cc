#include "tools/stage/copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "common/base/crc32c.h"
#include "common/base/errno_status.h"
#include "common/base/unique_fd.h"

namespace mosa::cli {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

struct Extent {
  uint64_t begin = 0, limit = 0;
};

using Buffer = std::unique_ptr<std::byte[]>;
Buffer MakeBuffer() { return std::make_unique<std::byte[]>(kPieceBytes); }

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool Unchanged(const struct stat& before, const struct stat& after) {
  return before.st_size == after.st_size && SameTime(before.st_mtim, after.st_mtim) &&
         SameTime(before.st_ctim, after.st_ctim);
}

bool SameOwner(const struct stat& a, const struct stat& b) {
  return a.st_uid == b.st_uid && a.st_gid == b.st_gid;
}

// What `file` may have of the mode of `source`: with another owner these bits give other rights.
mode_t ModeFor(const struct stat& file, const struct stat& source) {
  return source.st_mode & (SameOwner(file, source) ? 07777 : 01777);
}

struct Times {
  timespec times[2];  // For access and change.
  explicit Times(const struct stat& source) : times{source.st_ctim, source.st_mtim} {}
};

// By its times.
bool IsCopyOf(const struct stat& file, const struct stat& source) {
  return SameTime(file.st_mtim, source.st_mtim) && SameTime(file.st_atim, source.st_ctim);
}

// The file system maps root to nobody, or the container does not have the user.
bool OwnersAreNotOurs() { return errno == EPERM || errno == EINVAL; }

uint32_t ExtendZeros(uint32_t crc, uint64_t count) {
  static const std::byte zeros[65536] = {};
  while (count > 0) {
    const uint64_t piece = std::min<uint64_t>(count, sizeof zeros);
    crc = ExtendCrc32c(crc, zeros, piece);
    count -= piece;
  }
  return crc;
}

// Where the file has bytes; all of it where the file system does not say.
std::vector<Extent> DataOf(int fd, uint64_t size) {
  std::vector<Extent> extents;
  for (uint64_t at = 0; at < size;) {
    const off_t begin = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return extents;
    if (begin < 0) return {{0, size}};
    const off_t limit = lseek(fd, begin, SEEK_HOLE);
    if (limit <= begin) return {{0, size}};
    extents.push_back({static_cast<uint64_t>(begin), std::min(size, static_cast<uint64_t>(limit))});
    at = static_cast<uint64_t>(limit);
  }
  return extents;
}

// Reads the extents, and writes them to `out` if there is one; the checksum of the whole file.
Result<uint32_t> Transfer(const CopyJob& job, const std::string& from, int in, int out,
                          const std::vector<Extent>& extents, uint64_t size, std::byte* buffer) {
  uint32_t crc = 0;
  uint64_t at = 0;
  for (const Extent& extent : extents) {
    crc = ExtendZeros(crc, extent.begin - at);
    for (at = extent.begin; at < extent.limit;) {
      const ssize_t got =
          pread(in, buffer, std::min(kPieceBytes, extent.limit - at), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Cannot("read", from);
      if (got == 0)
        return AbortedError(
            fmt::format("{} became shorter while it was read: stage it again", from));
      for (ssize_t put = 0; out >= 0 && put < got;) {
        const ssize_t written =
            pwrite(out, buffer + put, static_cast<size_t>(got - put), static_cast<off_t>(at) + put);
        if (written < 0 && errno != EINTR) return Cannot("write", job.target);
        put += std::max<ssize_t>(0, written);
      }
      crc = ExtendCrc32c(crc, buffer, static_cast<size_t>(got));
      at += static_cast<uint64_t>(got);
    }
  }
  return ExtendZeros(crc, size - at);
}

// The bytes of `path` are those that gave `crc`, as whoever opens it next will find them.
Status ReadBack(const CopyJob& job, const struct stat& source, const std::vector<Extent>& extents,
                uint32_t crc, std::byte* buffer) {
  const UniqueFd fd(open(job.temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat written {};
  if (!fd || fstat(fd.get(), &written) != 0) return Cannot("read back", job.target);
  // So that the bytes come from where they are kept, and not out of this machine's cache.
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const auto size = static_cast<uint64_t>(source.st_size);
  MOSA_ASSIGN_OR_RETURN(const uint32_t again,
                        Transfer(job, job.target, fd.get(), -1, extents, size, buffer));
  if (written.st_size != source.st_size || again != crc)
    return DataLossError(fmt::format(
        "{} reads back as {} bytes with checksum {:08x}, its source has {} with {:08x}: the file "
        "system below it has damaged it",
        job.target, written.st_size, again, source.st_size, crc));
  // Closing and reading may have changed them.
  if (fstat(fd.get(), &written) == 0 && IsCopyOf(written, source)) return OkStatus();
  if (futimens(fd.get(), Times(source).times) != 0) return Cannot("set the times of", job.target);
  return OkStatus();
}

Status SetHints(const CopyJob& job, const std::string& path) {
  for (const HintValue& hint : job.hints) {
    const std::string name = "user.mosa." + hint.name;
    if (lsetxattr(path.c_str(), name.c_str(), hint.value.data(), hint.value.size(), 0) != 0)
      return Cannot(fmt::format("set {}={} of", hint.name, hint.value), job.target);
  }
  return OkStatus();
}

Result<uint32_t> WriteTemporary(const CopyJob& job, int in, const struct stat& source) {
  UniqueFd out(
      open(job.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!out) return Cannot("create", job.target);
  MOSA_RETURN_IF_ERROR(SetHints(job, job.temporary));
  const auto size = static_cast<uint64_t>(source.st_size);
  const std::vector<Extent> extents = DataOf(in, size);
  const Buffer buffer = MakeBuffer();
  MOSA_ASSIGN_OR_RETURN(const uint32_t crc,
                        Transfer(job, job.source, in, out.get(), extents, size, buffer.get()));
  const bool hole_at_end = size > 0 && (extents.empty() || extents.back().limit < size);
  if (hole_at_end && ftruncate(out.get(), source.st_size) != 0) return Cannot("write", job.target);
  MOSA_RETURN_IF_ERROR(TakeOver(out.get(), job.target, source));
  if (job.sync && fsync(out.get()) != 0) return Cannot("write", job.target);
  if (close(out.release()) != 0) return Cannot("write", job.target);
  MOSA_RETURN_IF_ERROR(ReadBack(job, source, extents, crc, buffer.get()));
  return crc;
}

// Puts the finished temporary in the target's place, or takes it away.
Status Finish(const CopyJob& job, Status made) {
  if (made.ok() && rename(job.temporary.c_str(), job.target.c_str()) != 0)
    made = Cannot("create", job.target);
  if (!made.ok()) unlink(job.temporary.c_str());
  return made;
}

Result<uint32_t> ChecksumOf(const CopyJob& job, const std::string& path, int fd, uint64_t size) {
  const Buffer buffer = MakeBuffer();
  return Transfer(job, path, fd, -1, DataOf(fd, size), size, buffer.get());
}

// A copy that is there already, with what it lacks of the source's mode, times and hints. One that
// cannot take the hints any more is none.
Result<std::optional<CopyResult>> TakeWhatIsThere(const CopyJob& job, int in,
                                                  const struct stat& source) {
  std::optional<CopyResult> none;
  const UniqueFd there(open(job.target.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat target {};
  if (!there || fstat(there.get(), &target) != 0 || !S_ISREG(target.st_mode)) return none;
  const bool same_time = SameTime(target.st_mtim, source.st_mtim);
  if (target.st_size != source.st_size || !(same_time || job.compare)) return none;
  CopyResult result{.size_bytes = static_cast<uint64_t>(source.st_size),
                    .skipped = true,
                    .crc32c = {},
                    .inode = source.st_ino};
  const bool same_state = IsCopyOf(target, source);
  if (job.compare || !same_state) {
    MOSA_ASSIGN_OR_RETURN(const uint32_t wanted,
                          ChecksumOf(job, job.source, in, result.size_bytes));
    const auto had = ChecksumOf(job, job.target, there.get(), result.size_bytes);
    if (!had.ok() || *had != wanted) return none;
    if (job.sync && fsync(there.get()) != 0) return Cannot("write", job.target);
    result.crc32c = wanted;
  }
  if (!SetHints(job, job.target).ok()) return none;
  const bool equal = same_time && (target.st_mode & 07777) == ModeFor(target, source) &&
                     (geteuid() != 0 || SameOwner(target, source));
  if (equal && same_state && !result.crc32c) return std::optional(result);
  const Status taken = TakeOver(there.get(), job.target, source);
  // Somebody else's copy lacks only what would spare the next run a comparison.
  if (!taken.ok() && !(equal && taken.code() == StatusCode::kPermissionDenied)) return taken;
  return std::optional(result);
}

Result<CopyResult> CopyRegular(const CopyJob& job) {
  const UniqueFd in(open(job.source.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat before {
  }, after{};
  if (!in || fstat(in.get(), &before) != 0) return Cannot("read", job.source);
  const auto unchanged = [&]() -> Status {
    if (fstat(in.get(), &after) != 0) return Cannot("read", job.source);
    if (S_ISREG(before.st_mode) && Unchanged(before, after)) return OkStatus();
    return AbortedError(
        fmt::format("{} was changed while it was copied: stage it again", job.source));
  };
  MOSA_RETURN_IF_ERROR(unchanged());
  MOSA_ASSIGN_OR_RETURN(const auto there, TakeWhatIsThere(job, in.get(), before));
  if (there) {
    MOSA_RETURN_IF_ERROR(unchanged());
    return *there;
  }
  auto crc = WriteTemporary(job, in.get(), before);
  MOSA_RETURN_IF_ERROR(Finish(job, crc.ok() ? unchanged() : crc.status()));
  return CopyResult{.size_bytes = static_cast<uint64_t>(before.st_size),
                    .skipped = false,
                    .crc32c = *crc,
                    .inode = before.st_ino};
}

Result<std::string> ReadLink(const std::string& path, const struct stat& status) {
  std::string text(static_cast<size_t>(status.st_size) + 1, '\0');
  const ssize_t length = readlink(path.c_str(), text.data(), text.size());
  if (length < 0) return Cannot("read", path);
  text.resize(static_cast<size_t>(length));
  return text;
}

Result<CopyResult> CopyLink(const CopyJob& job, const struct stat& source) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadLink(job.source, source));
  struct stat target {};
  if (lstat(job.target.c_str(), &target) == 0 && S_ISLNK(target.st_mode) &&
      SameTime(target.st_mtim, source.st_mtim)) {
    const auto there = ReadLink(job.target, target);
    if (there.ok() && *there == text) return CopyResult{.skipped = true, .crc32c = {}};
  }
  Status made;
  const timespec times[] = {source.st_atim, source.st_mtim};
  if (symlink(text.c_str(), job.temporary.c_str()) != 0 ||
      (geteuid() == 0 && lchown(job.temporary.c_str(), source.st_uid, source.st_gid) != 0 &&
       !OwnersAreNotOurs()) ||
      utimensat(AT_FDCWD, job.temporary.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    made = Cannot("create", job.target);
  MOSA_RETURN_IF_ERROR(Finish(job, std::move(made)));
  return CopyResult{};
}

}  // namespace

Status Cannot(const std::string& what, const std::string& path) {
  Status status = ErrnoStatus(errno, fmt::format("cannot {} {}", what, path));
  if (status.code() != StatusCode::kInternal) return status;
  // Whatever is wrong with a path, it is not this program.
  return FailedPreconditionError(MessageOf(status));
}

nlohmann::json ToJson(const CopyJob& job) {
  nlohmann::json hints = nlohmann::json::array();
  for (const HintValue& hint : job.hints) hints.push_back({hint.name, hint.value});
  return {{"source", job.source}, {"target", job.target}, {"temporary", job.temporary},
          {"hints", hints},       {"sync", job.sync},     {"compare", job.compare}};
}

CopyJob CopyJobFrom(const nlohmann::json& json) {
  CopyJob job{.source = json.at("source"),
              .target = json.at("target"),
              .temporary = json.at("temporary"),
              .hints = {},
              .sync = json.at("sync"),
              .compare = json.at("compare")};
  for (const auto& hint : json.at("hints")) job.hints.push_back({hint.at(0), hint.at(1)});
  return job;
}

Result<CopyResult> CopyFile(const CopyJob& job) {
  struct stat source {};
  if (lstat(job.source.c_str(), &source) != 0) return Cannot("read", job.source);
  struct stat target {};
  if (lstat(job.target.c_str(), &target) == 0 && S_ISDIR(target.st_mode))
    return FailedPreconditionError(
        fmt::format("{} is a directory, but {} is not: remove it or name another target",
                    job.target, job.source));
  if (S_ISLNK(source.st_mode)) return CopyLink(job, source);
  if (S_ISREG(source.st_mode)) return CopyRegular(job);
  return FailedPreconditionError(fmt::format(
      "{} is a pipe, socket or device: only files, directories and symbolic links are staged",
      job.source));
}

Status TakeOver(int fd, const std::string& path, const struct stat& source) {
  // Only root can give files away.
  if (geteuid() == 0 && fchown(fd, source.st_uid, source.st_gid) != 0 && !OwnersAreNotOurs())
    return Cannot("set the owner of", path);
  struct stat taken {};
  if (fstat(fd, &taken) != 0 || fchmod(fd, ModeFor(taken, source)) != 0)
    return Cannot("set the mode of", path);
  if (futimens(fd, Times(source).times) != 0) return Cannot("set the times of", path);
  return OkStatus();
}

Status SyncDirectories(const std::vector<std::string>& directories) {
  for (const std::string& path : directories) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // A user who may make a directory in one need not be allowed to read it.
    if (!fd && errno == EACCES) continue;
    if (!fd) return Cannot("open", path);
    // Some file systems have nothing to sync of a directory.
    if (fsync(fd.get()) != 0 && errno != EINVAL && errno != EOPNOTSUPP) return Cannot("sync", path);
  }
  return OkStatus();
}

}  // namespace mosa::cli
