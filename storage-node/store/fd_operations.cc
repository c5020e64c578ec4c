#include "storage-node/store/fd_operations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "common/base/errno_status.h"

namespace mosa::node {

Result<size_t> FdObjectStore::Read(int fd, uint64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) break;
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, fmt::format("cannot read {} bytes at offset {} of the object",
                                            out.size(), offset));
    }
  }
  return done;
}

Status FdObjectStore::Write(int fd, uint64_t offset, std::span<const std::byte> data) {
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t n =
        ::pwrite(fd, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, fmt::format("cannot write {} bytes at offset {} of the object",
                                            data.size(), offset));
    }
  }
  return OkStatus();
}

Status FdObjectStore::Truncate(int fd, uint64_t size_bytes) {
  if (::ftruncate(fd, static_cast<off_t>(size_bytes)) != 0)
    return ErrnoStatus(errno, fmt::format("cannot truncate the object to {} bytes", size_bytes));
  return OkStatus();
}

Status FdObjectStore::Allocate(int fd, int mode, uint64_t offset, uint64_t length) {
  int result = -1;
  do {
    result = ::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length));
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return ErrnoStatus(errno, fmt::format("fallocate mode {:#x} of {} bytes at offset {} failed",
                                          mode, length, offset));
  }
  return OkStatus();
}

Result<uint64_t> FdObjectStore::Seek(int fd, uint64_t offset, bool data) {
  const off_t at = ::lseek(fd, static_cast<off_t>(offset), data ? SEEK_DATA : SEEK_HOLE);
  if (at < 0) {
    return ErrnoStatus(errno, fmt::format("no {} at or after offset {} of the object",
                                          data ? "data" : "hole", offset));
  }
  return static_cast<uint64_t>(at);
}

Result<ObjectStat> FdObjectStore::Stat(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return ErrnoStatus(errno, "cannot stat the object");
  return ObjectStat{
      .size_bytes = static_cast<uint64_t>(status.st_size),
      .allocated_bytes = static_cast<uint64_t>(status.st_blocks) * 512,
      .modify_time = {status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec}};
}

Result<bool> FdObjectStore::HasWriters(int fd) {
  // The kernel refuses a read lease while anyone can write. If a program opens the file while we
  // hold the lease, the kernel signals us and blocks that program until we release it. SIGURG is
  // ignored by default, unlike SIGIO.
  ::fcntl(fd, F_SETSIG, SIGURG);
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
    ::fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
  }
  if (errno == EAGAIN || errno == EBUSY) return true;
  if (errno == EINVAL || errno == EOPNOTSUPP || errno == EACCES) return false;
  return ErrnoStatus(errno,
                     "cannot ask the kernel whether a program has the object open for writing");
}

Result<size_t> FdObjectStore::Send(int fd, int socket, uint64_t offset, size_t length) {
  off_t at = static_cast<off_t>(offset);
  const ssize_t n = ::sendfile(socket, fd, &at, length);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return ErrnoStatus(
      errno, fmt::format("cannot send {} bytes at offset {} of the object", length, offset));
}

int OpenFlags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kWrite:
    case OpenMode::kCreate:
      return O_RDWR;
  }
  return O_RDONLY;
}

}  // namespace mosa::node
