#include "client-sai/fuse/passthrough.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "client-sai/fuse/kernel_protocol.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/mutex.h"
#include "common/base/unique_fd.h"

namespace mosa::sai {

namespace {

Result<int32_t> OpenBacking(int device, int descriptor) {
  kernel::BackingMap map{descriptor, 0, 0};
  const int id = ioctl(device, kernel::kBackingOpen, &map);
  if (id <= 0) return ErrnoStatus(errno, "the kernel refuses the backing file");
  return id;
}

void CloseBacking(int device, int32_t id) {
  auto number = static_cast<uint32_t>(id);
  // It can fail with ENOENT only for an id that is not registered, and ours is.
  MOSA_CHECK(ioctl(device, kernel::kBackingClose, &number) == 0 || errno != ENOENT);
}

bool IsLinked(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && status.st_nlink > 0;
}

bool SameObject(int one, int other) {
  struct stat a {};
  struct stat b {};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace

bool MayBeJoined(const JoinedBacking& backing, uint32_t flags) {
  switch (flags & O_ACCMODE) {
    case O_WRONLY:
      return true;  // It cannot be mapped.
    case O_RDONLY:
      return backing.is_linked || backing.has_the_bytes;
    default:
      return backing.is_current && backing.is_linked;
  }
}

Status ProbePassthrough(int device) {
  const UniqueFd memory(memfd_create("mosa-passthrough-probe", MFD_CLOEXEC));
  if (!memory) return ErrnoStatus(errno, "cannot create a file in memory");
  MOSA_ASSIGN_OR_RETURN(const int32_t id, OpenBacking(device, memory.get()));
  CloseBacking(device, id);
  return OkStatus();
}

Result<int32_t> BackingFiles::Acquire(FileId file, int descriptor, uint64_t data_version) {
  const SystemMutexLock lock(mutex_);
  const auto found = backings_.find(file);
  if (found != backings_.end()) {
    if (!SameObject(found->second.object.get(), descriptor)) {
      return FailedPreconditionError(
          "the kernel still has an earlier object of the file open, which its node has dropped");
    }
    ++found->second.opens;
    return found->second.id;
  }
  return Register(file, descriptor, data_version);
}

Result<int32_t> BackingFiles::Register(FileId file, int descriptor, uint64_t data_version) {
  UniqueFd object(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!object) return ErrnoStatus(errno, "cannot duplicate an object's descriptor");
  MOSA_ASSIGN_OR_RETURN(const int32_t id, OpenBacking(device_, descriptor));
  backings_[file] = {id, 1, std::move(object), data_version};
  return id;
}

Result<int32_t> BackingFiles::Join(FileId file, uint32_t flags, int descriptor,
                                   uint64_t data_version) {
  const SystemMutexLock lock(mutex_);
  const auto found = backings_.find(file);
  if (found == backings_.end()) {
    if ((flags & O_ACCMODE) == O_WRONLY || descriptor < 0) return 0;
    const Result<int32_t> id = Register(file, descriptor, data_version);
    if (!id.ok())
      failures_.Warning("file {} has no backing file: {}", file.value, MessageOf(id.status()));
    return id.ok() ? *id : 0;
  }
  Backing& backing = found->second;
  const JoinedBacking joined{
      .is_linked = IsLinked(backing.object.get()),
      .has_the_bytes = backing.data_version == data_version,
      .is_current = descriptor >= 0 && SameObject(backing.object.get(), descriptor)};
  if (!MayBeJoined(joined, flags)) {
    return FailedPreconditionError(
        joined.is_linked
            ? "programs on this host use an object of the file through the kernel that no longer "
              "holds all of it and that mmap would map: open the file only for writing, or again "
              "after they close it"
            : "programs on this host still use an object of the file that its node has dropped and "
              "that mmap would map: open the file again after they close it");
  }
  ++backing.opens;
  return backing.id;
}

void BackingFiles::Release(FileId file) {
  const SystemMutexLock lock(mutex_);
  const auto found = backings_.find(file);
  MOSA_CHECK(found != backings_.end());
  if (--found->second.opens > 0) return;
  CloseBacking(device_, found->second.id);
  backings_.erase(found);
}

size_t BackingFiles::size() const {
  const SystemMutexLock lock(mutex_);
  return backings_.size();
}

}  // namespace mosa::sai
