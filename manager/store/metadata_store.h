// MetadataStore: the durable image of the manager's state, an ordered map of byte strings.
// Implementations: RocksDB in production, memory in tests, and a wrapper that fails on demand. The
// interface is this low-level so that it carries no domain meaning.
//
// Commit and Get may be called from different threads. Load may be called only before the first
// Commit.
#ifndef MOSA_MANAGER_STORE_METADATA_STORE_H_
#define MOSA_MANAGER_STORE_METADATA_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/kv_batch.h"
#include "common/base/status.h"

namespace mosa::manager {

class MetadataStore {
 public:
  using Visitor = std::function<Status(std::string_view key, std::string_view value)>;

  virtual ~MetadataStore() = default;
  // Visits every record whose key does not start with `skip_prefix` (empty: all records), in key
  // order. The first error ends the visit and is returned.
  virtual Status Load(std::string_view skip_prefix, const Visitor& visitor) = 0;
  // Applies all of `batch` or nothing. ResourceExhausted: the disk is full, or no descriptor is
  // left to open a file; commit the same batch again until it succeeds. After any other error the
  // state is unknown: the caller must stop the process and load again.
  virtual Status Commit(const KvBatch& batch) = 0;
  // Starts to free the room of removed records, in the background.
  virtual void Reclaim() {}
  // NotFound if absent.
  virtual Result<std::string> Get(std::string_view key) = 0;
  // Returns true if acknowledged changes may be missing because the machine crashed under a store
  // without fsync. The first Commit must contain what was decided about it.
  virtual bool may_have_forgotten() const { return false; }
};

struct RocksOptions {
  std::string path;
  bool fsync = false;  // False: changes survive a crash of the process; true: of the machine too.
  std::string boot_id = "";                   // Identifies this boot of the machine.
  uint64_t buffer_bytes = uint64_t{8} << 20;  // Size of the write buffer.
  uint64_t log_bytes = uint64_t{64} << 20;    // Limit for all logs together.
};
// FailedPrecondition for a database of a newer format or of another cluster; DataLoss for a damaged
// one. Both name the path and what to do.
Result<std::unique_ptr<MetadataStore>> OpenRocksStore(const RocksOptions& options);
std::unique_ptr<MetadataStore> NewMemoryStore();

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_STORE_METADATA_STORE_H_
