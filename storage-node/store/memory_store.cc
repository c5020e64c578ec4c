#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/mutex.h"
#include "storage-node/store/fd_operations.h"

namespace mosa::node {
namespace {

// Objects are memfds, so they have holes, sizes and descriptors to pass, as files on a RAM disk do.
class MemoryStore final : public FdObjectStore {
 public:
  explicit MemoryStore(StoreRecord record) : record_(std::move(record)) {}

  StoreRecord record() const override {
    const SystemMutexLock lock(mutex_);
    return record_;
  }

  Status SetCluster(const std::string& cluster_name) override {
    const SystemMutexLock lock(mutex_);
    if (!record_.cluster_name.empty() && record_.cluster_name != cluster_name) {
      return FailedPreconditionError(fmt::format("the objects belong to cluster '{}', not to '{}'",
                                                 record_.cluster_name, cluster_name));
    }
    record_.cluster_name = cluster_name;
    return OkStatus();
  }

  Result<std::vector<StoredObject>> List() override {
    const SystemMutexLock lock(mutex_);
    return ListOf(objects_);
  }
  Result<std::vector<StoredObject>> ListAside() override {
    const SystemMutexLock lock(mutex_);
    return ListOf(aside_);
  }

  Result<UniqueFd> Open(FileId file, OpenMode mode) override {
    const SystemMutexLock lock(mutex_);
    auto found = objects_.find(file);
    if (found == objects_.end()) {
      if (mode == OpenMode::kRead || mode == OpenMode::kWrite)
        return NotFoundError(fmt::format("there is no object of file {}", file.value));
      UniqueFd made(::memfd_create("mosa-object", MFD_CLOEXEC));
      // The mode of all objects: receivers of descriptors check it.
      if (!made || ::fchmod(made.get(), S_IRUSR | S_IWUSR) != 0)
        return ErrnoStatus(errno, fmt::format("cannot create the object of file {}", file.value));
      found = objects_.emplace(file, std::move(made)).first;
    }
    return Reopened(found->second.get(), file, mode);
  }

  Status Drop(FileId file) override {
    const SystemMutexLock lock(mutex_);
    objects_.erase(file);
    return OkStatus();
  }

  Status SetAside(FileId file) override {
    const SystemMutexLock lock(mutex_);
    if (aside_.contains(file))
      return FailedPreconditionError(fmt::format("file {} is already put aside", file.value));
    if (auto object = objects_.extract(file)) aside_.insert(std::move(object));
    return OkStatus();
  }
  Status RestoreAside(FileId file) override {
    const SystemMutexLock lock(mutex_);
    if (!aside_.contains(file))
      return NotFoundError(fmt::format("file {} is not put aside", file.value));
    if (objects_.contains(file))
      return FailedPreconditionError(fmt::format("there is an object of file {}", file.value));
    objects_.insert(aside_.extract(file));
    return OkStatus();
  }
  Status DiscardAside(FileId file) override {
    const SystemMutexLock lock(mutex_);
    aside_.erase(file);
    return OkStatus();
  }
  Result<UniqueFd> OpenAside(FileId file) override {
    const SystemMutexLock lock(mutex_);
    const auto found = aside_.find(file);
    if (found == aside_.end())
      return NotFoundError(fmt::format("file {} is not put aside", file.value));
    return Reopened(found->second.get(), file, OpenMode::kRead);
  }

 private:
  using Objects = std::map<FileId, UniqueFd>;

  Result<std::vector<StoredObject>> ListOf(const Objects& listed) {
    std::vector<StoredObject> objects;
    for (const auto& [file, fd] : listed) {
      MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, Stat(fd.get()));
      objects.push_back({file, stat.size_bytes, stat.allocated_bytes, stat.modify_time});
    }
    return objects;
  }

  static Result<UniqueFd> Reopened(int object, FileId file, OpenMode mode) {
    const std::string path = fmt::format("/proc/self/fd/{}", object);
    UniqueFd fd(::open(path.c_str(), OpenFlags(mode) | O_CLOEXEC));
    if (!fd)
      return ErrnoStatus(errno, fmt::format("cannot open the object of file {}", file.value));
    return fd;
  }

  mutable SystemMutex mutex_;
  StoreRecord record_ ABSL_GUARDED_BY(mutex_);
  Objects objects_ ABSL_GUARDED_BY(mutex_);
  Objects aside_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<ObjectStore> NewMemoryStore(const std::string& node_name) {
  StoreRecord record;
  record.node_name = node_name;
  MOSA_CHECK(::getrandom(&record.incarnation, sizeof record.incarnation, 0) ==
             sizeof record.incarnation);
  return std::make_unique<MemoryStore>(std::move(record));
}

}  // namespace mosa::node
