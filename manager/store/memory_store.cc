#include <fmt/format.h>

#include <map>

#include "common/base/mutex.h"
#include "manager/store/metadata_store.h"

namespace mosa::manager {
namespace {

// Keeps everything in an ordered map, for the life of the process.
class MemoryStore final : public MetadataStore {
 public:
  Status Load(std::string_view skip_prefix, const Visitor& visitor) override {
    const SystemMutexLock lock(mutex_);
    for (const auto& [key, value] : records_) {
      if (!skip_prefix.empty() && key.starts_with(skip_prefix)) continue;
      MOSA_RETURN_IF_ERROR(visitor(key, value));
    }
    return OkStatus();
  }

  Status Commit(const KvBatch& batch) override {
    const SystemMutexLock lock(mutex_);
    for (const KvBatch::Write& write : batch.writes) {
      if (write.value) {
        records_.insert_or_assign(write.key, *write.value);
      } else {
        records_.erase(write.key);
      }
    }
    return OkStatus();
  }

  Result<std::string> Get(std::string_view key) override {
    const SystemMutexLock lock(mutex_);
    const auto found = records_.find(key);
    if (found == records_.end())
      return NotFoundError(
          fmt::format("no record of {} key bytes in the memory store", key.size()));
    return found->second;
  }

 private:
  SystemMutex mutex_;
  std::map<std::string, std::string, std::less<>> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<MetadataStore> NewMemoryStore() { return std::make_unique<MemoryStore>(); }

}  // namespace mosa::manager
