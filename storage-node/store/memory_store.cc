#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "storage-node/store/fd_operations.h"

namespace mosa::node {
namespace {

// Objects are memfds, so that they have holes, sizes, descriptors to pass and all else that files
// on a RAM disk have.
class MemoryStore final : public FdObjectStore {
 public:
  explicit MemoryStore(StoreRecord record) : record_(std::move(record)) {}

  StoreRecord record() const override {
    const std::lock_guard lock(mutex_);
    return record_;
  }

  Status SetCluster(const std::string& cluster_name) override {
    const std::lock_guard lock(mutex_);
    if (!record_.cluster_name.empty() && record_.cluster_name != cluster_name) {
      return FailedPreconditionError(fmt::format("the objects belong to cluster '{}', not to '{}'",
                                                 record_.cluster_name, cluster_name));
    }
    record_.cluster_name = cluster_name;
    return OkStatus();
  }

  Result<std::vector<StoredObject>> List() override {
    const std::lock_guard lock(mutex_);
    std::vector<StoredObject> objects;
    for (const auto& [file, fd] : objects_) {
      MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, Stat(fd.get()));
      objects.push_back({file, stat.size_bytes, stat.allocated_bytes});
    }
    return objects;
  }

  Result<UniqueFd> Open(FileId file, OpenMode mode) override {
    const std::lock_guard lock(mutex_);
    auto found = objects_.find(file);
    if (found == objects_.end()) {
      if (mode == OpenMode::kRead || mode == OpenMode::kWrite)
        return NotFoundError(fmt::format("there is no object of file {}", file.value));
      UniqueFd made(::memfd_create("mosa-object", MFD_CLOEXEC));
      // The mode of all objects: who takes descriptors looks at it.
      if (!made || ::fchmod(made.get(), S_IRUSR | S_IWUSR) != 0)
        return ErrnoStatus(errno, fmt::format("cannot make the object of file {}", file.value));
      found = objects_.emplace(file, std::move(made)).first;
    }
    const std::string path = fmt::format("/proc/self/fd/{}", found->second.get());
    UniqueFd fd(::open(path.c_str(), OpenFlags(mode) | O_CLOEXEC));
    if (!fd)
      return ErrnoStatus(errno, fmt::format("cannot open the object of file {}", file.value));
    return fd;
  }

  Status Drop(FileId file) override {
    const std::lock_guard lock(mutex_);
    objects_.erase(file);
    return OkStatus();
  }

 private:
  mutable std::mutex mutex_;
  StoreRecord record_;                  // Guarded by mutex_.
  std::map<FileId, UniqueFd> objects_;  // Guarded by mutex_.
};

}  // namespace

std::unique_ptr<ObjectStore> NewMemoryStore(const std::string& node_name) {
  StoreRecord record{.cluster_name = "", .node_name = node_name, .incarnation = 0};
  MOSA_CHECK(::getrandom(&record.incarnation, sizeof record.incarnation, 0) ==
             sizeof record.incarnation);
  return std::make_unique<MemoryStore>(std::move(record));
}

}  // namespace mosa::node
