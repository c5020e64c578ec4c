#include "manager/service/inline_cache.h"

#include "manager/core/manager_core.h"

namespace mosa::manager {

void InlineCache::Note(const KvBatch& batch) {
  for (const KvBatch::Write& write : batch.writes) {
    if (!std::string_view(write.key).starts_with(kInlineDataPrefix)) continue;
    if (write.value) {
      Put(write.key, *write.value);
    } else {
      Erase(write.key);
    }
  }
}

void InlineCache::Put(std::string_view key, std::string_view value) {
  Erase(key);
  items_.emplace_front(key, value);
  by_key_.emplace(items_.front().first, items_.begin());
  size_bytes_ += Cost(items_.front());
  while (size_bytes_ > bytes_max_) Erase(items_.back().first);
}

const std::string* InlineCache::Find(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  items_.splice(items_.begin(), items_, found->second);
  return &found->second->second;
}

void InlineCache::Erase(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const auto item = found->second;
  size_bytes_ -= Cost(*item);
  by_key_.erase(found);
  items_.erase(item);
}

// Approximate overhead of an item in the list and the map.
size_t InlineCache::Cost(const Item& item) {
  constexpr size_t kOverheadBytes = 160;
  return item.first.size() + item.second.size() + kOverheadBytes;
}

}  // namespace mosa::manager
