// The durable image of the manager's state: an ordered map of byte strings. RocksDB in production,
// memory in tests, and a wrapper that fails on demand. The seam is this low so that no meaning
// hides behind it.
//
// Commit and Get may be called from different threads; Load only before the first Commit.
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
  // Visits every record in the order of keys whose key does not start with `skip_prefix` (empty:
  // skip none); the first error ends the visit and is returned.
  virtual Status Load(std::string_view skip_prefix, const Visitor& visitor) = 0;
  // All of `batch` or none. ResourceExhausted: there is no room on the disk, or no descriptor to
  // open a file with; commit the same batch again, which does it as soon as there is. After any
  // other error the state is unknown: the caller stops the process and loads again.
  virtual Status Commit(const KvBatch& batch) = 0;
  // Begins to free the room of what was removed, in the background.
  virtual void Reclaim() {}
  // NotFound if absent.
  virtual Result<std::string> Get(std::string_view key) = 0;
  // True if changes that were acknowledged may be missing: the machine crashed under a store that
  // did not sync. The first Commit is to hold what is decided about it.
  virtual bool may_have_forgotten() const { return false; }
};

struct RocksOptions {
  std::string path;
  bool fsync = false;        // False: survives the end of the process; true: the machine's.
  std::string boot_id = "";  // This machine's: changes with each boot.
  uint64_t buffer_bytes = uint64_t{8} << 20;  // Gathered in memory before a table is written.
  uint64_t log_bytes = uint64_t{64} << 20;    // All logs together.
};
// FailedPrecondition for a database of a newer format or another cluster's, DataLoss for a damaged
// one, each naming path and what to do.
Result<std::unique_ptr<MetadataStore>> OpenRocksStore(const RocksOptions& options);
std::unique_ptr<MetadataStore> NewMemoryStore();

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_STORE_METADATA_STORE_H_
