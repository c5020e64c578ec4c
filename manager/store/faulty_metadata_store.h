// A MetadataStore that fails one operation on purpose, for tests: wrap any store, count its
// operations, then run again failing each of them in turn.
#ifndef MOSA_MANAGER_STORE_FAULTY_METADATA_STORE_H_
#define MOSA_MANAGER_STORE_FAULTY_METADATA_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "manager/store/metadata_store.h"

namespace mosa::manager {

// Passes every call on, except the `fail_at`-th (counted from 1 over Load, Commit and Get; 0:
// none), which answers DataLoss without reaching the wrapped store, as do all calls after it: a
// failed store stays failed. As thread-safe as what it wraps.
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
