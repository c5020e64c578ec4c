#include "tools/wrap/inode_table.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <string_view>
#include <utility>

#include "common/base/errno_status.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/mutex.h"

namespace mosa::wrap {
namespace {

constexpr uint64_t kRootId = 1;

// Tells the file from all that ever had its inode number.
uint64_t IdentityOf(int descriptor, const struct stat& attributes) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> room{};
  auto* const handle = reinterpret_cast<file_handle*>(room.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (name_to_handle_at(descriptor, "", handle, &mount_id, AT_EMPTY_PATH) == 0) {
    const std::string_view bytes(reinterpret_cast<const char*>(handle->f_handle),
                                 handle->handle_bytes);
    return Hash64(bytes, static_cast<uint64_t>(handle->handle_type));
  }
  struct statx birth {};
  uint64_t born_ns = 0;
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &birth) == 0 &&
      (birth.stx_mask & STATX_BTIME) != 0)
    born_ns =
        static_cast<uint64_t>(birth.stx_btime.tv_sec) * 1'000'000'000 + birth.stx_btime.tv_nsec;
  return HashCombine(attributes.st_ino, born_ns);
}

std::string PathOf(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

}  // namespace

FileId FileIdOf(int descriptor, const struct stat& attributes, dev_t root_device) {
  uint64_t id = IdentityOf(descriptor, attributes);
  // Another file system below the directory; its number may be another one on another host.
  if (attributes.st_dev != root_device) id = HashCombine(id, attributes.st_dev);
  return FileId{id <= kRootId ? id + kRootId + 1 : id};
}

std::string Inode::Path() const { return PathOf(descriptor.get()); }

size_t InodeTable::KeyHash::operator()(const InodeKey& key) const {
  return HashCombine(key.file.value, HashCombine(key.number, key.device));
}

Result<std::unique_ptr<InodeTable>> InodeTable::Open(const std::string& directory) {
  std::unique_ptr<InodeTable> table(new InodeTable());
  struct stat attributes {};
  table->root_.descriptor = UniqueFd(open(directory.c_str(), O_PATH | O_CLOEXEC));
  if (!table->root_.descriptor || fstat(table->root_.descriptor.get(), &attributes) != 0)
    return ErrnoStatus(errno, fmt::format("cannot trace the directory {}", directory));
  if (!S_ISDIR(attributes.st_mode))
    return FailedPreconditionError(
        fmt::format("cannot trace {}: it is not a directory", directory));
  table->root_.key = {attributes.st_dev, attributes.st_ino, FileId{kRootId}};
  return table;
}

int InodeTable::LookUp(const Inode& parent, const char* name, Found& found) {
  return Add(UniqueFd(openat(parent.descriptor.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC)),
             found);
}

int InodeTable::LookUpOpen(int descriptor, Found& found) {
  return Add(UniqueFd(open(PathOf(descriptor).c_str(), O_PATH | O_CLOEXEC)), found);
}

int InodeTable::Add(UniqueFd descriptor, Found& found) {
  if (!descriptor || fstat(descriptor.get(), &found.attributes) != 0) {
    const int error = errno;
    if (error == EMFILE || error == ENFILE) std::call_once(exhausted_, [this] { LogExhausted(); });
    return error;
  }
  const struct stat& attributes = found.attributes;
  // The kernel allows a directory but one place, and the root has its own.
  if (attributes.st_dev == root_.key.device && attributes.st_ino == root_.key.number) return ELOOP;
  const InodeKey key{attributes.st_dev, attributes.st_ino,
                     FileIdOf(descriptor.get(), attributes, root_.key.device)};
  {
    const SystemMutexLock lock(mutex_);
    const auto known = inodes_.find(key);
    if (known != inodes_.end()) {
      found.inode = known->second.get();
      ++found.inode->lookups;
      return 0;
    }
  }
  auto fresh = std::make_unique<Inode>();
  fresh->descriptor = std::move(descriptor);
  fresh->key = key;
  const SystemMutexLock lock(mutex_);
  found.inode = inodes_.try_emplace(key, std::move(fresh)).first->second.get();
  ++found.inode->lookups;
  return 0;
}

void InodeTable::Forget(Inode& inode, uint64_t lookups) {
  if (&inode == &root_) return;
  decltype(inodes_)::node_type gone;  // Closed without the lock.
  const SystemMutexLock lock(mutex_);
  inode.lookups -= lookups;
  if (inode.lookups == 0) gone = inodes_.extract(inode.key);
}

void InodeTable::LogExhausted() const {
  LogError(
      "no descriptor is left: each of the {} files that the kernel knows has one, and more are "
      "refused; raise the limit (ulimit -n), or have the kernel forget files (root: echo 2 > "
      "/proc/sys/vm/drop_caches)",
      size());
}

size_t InodeTable::size() const {
  const SystemMutexLock lock(mutex_);
  return inodes_.size();
}

}  // namespace mosa::wrap
