#include "manager/store/faulty_metadata_store.h"

#include <fmt/format.h>

#include <utility>

namespace mosa::manager {

FaultyMetadataStore::FaultyMetadataStore(std::unique_ptr<MetadataStore> wrapped, uint64_t fail_at)
    : wrapped_(std::move(wrapped)), fail_at_(fail_at) {}

Status FaultyMetadataStore::Load(std::string_view skip_prefix, const Visitor& visitor) {
  MOSA_RETURN_IF_ERROR(Count("Load"));
  return wrapped_->Load(skip_prefix, visitor);
}

Status FaultyMetadataStore::Commit(const KvBatch& batch) {
  MOSA_RETURN_IF_ERROR(Count("Commit"));
  return wrapped_->Commit(batch);
}

Result<std::string> FaultyMetadataStore::Get(std::string_view key) {
  MOSA_RETURN_IF_ERROR(Count("Get"));
  return wrapped_->Get(key);
}

Status FaultyMetadataStore::Count(std::string_view operation) {
  const uint64_t number = ++operations_;
  if (fail_at_ == 0 || number < fail_at_) return OkStatus();
  return DataLossError(
      fmt::format("{} failed on purpose: it is operation {} of this store, and all from {} on fail",
                  operation, number, fail_at_));
}

}  // namespace mosa::manager
