// FaultyMetadataStore: fails one operation on purpose, for tests. Wrap any store, count its
// operations, then run again and fail each of them in turn.
#ifndef MOSA_MANAGER_STORE_FAULTY_METADATA_STORE_H_
#define MOSA_MANAGER_STORE_FAULTY_METADATA_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "manager/store/metadata_store.h"

namespace mosa::manager {

// Forwards every call except the `fail_at`-th (counted from 1 over Load, Commit and Get; 0: none).
// That call and all later ones return DataLoss without reaching the wrapped store. As thread-safe
// as the store it wraps.
class FaultyMetadataStore final : public MetadataStore {
 public:
  FaultyMetadataStore(std::unique_ptr<MetadataStore> wrapped, uint64_t fail_at);

  Status Load(std::string_view skip_prefix, const Visitor& visitor) override;
  Status Commit(const KvBatch& batch) override;
  Result<std::string> Get(std::string_view key) override;

  uint64_t operations() const { return operations_.load(); }

 private:
  Status Count(std::string_view operation);

  const std::unique_ptr<MetadataStore> wrapped_;
  const uint64_t fail_at_;
  std::atomic<uint64_t> operations_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_STORE_FAULTY_METADATA_STORE_H_
