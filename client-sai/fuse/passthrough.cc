#include "client-sai/fuse/passthrough.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>

#include "client-sai/fuse/kernel_protocol.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/unique_fd.h"

namespace mosa::sai {

namespace {

Result<int32_t> OpenBacking(int device, int descriptor) {
  kernel::BackingMap map{descriptor, 0, 0};
  const int id = ioctl(device, kernel::kBackingOpen, &map);
  if (id <= 0) return ErrnoStatus(errno, "the kernel does not take a backing file");
  return id;
}

void CloseBacking(int device, int32_t id) {
  auto number = static_cast<uint32_t>(id);
  // It can only fail for an id that is not registered, which ours is.
  MOSA_CHECK(ioctl(device, kernel::kBackingClose, &number) == 0 || errno != ENOENT);
}

}  // namespace

Status ProbePassthrough(int device) {
  const UniqueFd memory(memfd_create("mosa-passthrough-probe", MFD_CLOEXEC));
  if (!memory) return ErrnoStatus(errno, "cannot make a file in memory");
  MOSA_ASSIGN_OR_RETURN(const int32_t id, OpenBacking(device, memory.get()));
  CloseBacking(device, id);
  return OkStatus();
}

Result<int32_t> BackingFiles::Acquire(FileId file, int descriptor) {
  const std::lock_guard lock(mutex_);
  const auto found = backings_.find(file);
  if (found != backings_.end()) {
    ++found->second.opens;
    return found->second.id;
  }
  MOSA_ASSIGN_OR_RETURN(const int32_t id, OpenBacking(device_, descriptor));
  backings_[file] = {id, 1};
  return id;
}

int32_t BackingFiles::AcquireIfAny(FileId file) {
  const std::lock_guard lock(mutex_);
  const auto found = backings_.find(file);
  if (found == backings_.end()) return 0;
  ++found->second.opens;
  return found->second.id;
}

void BackingFiles::Release(FileId file) {
  const std::lock_guard lock(mutex_);
  const auto found = backings_.find(file);
  MOSA_CHECK(found != backings_.end());
  if (--found->second.opens > 0) return;
  CloseBacking(device_, found->second.id);
  backings_.erase(found);
}

size_t BackingFiles::size() const {
  const std::lock_guard lock(mutex_);
  return backings_.size();
}

}  // namespace mosa::sai
