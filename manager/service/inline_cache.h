// InlineCache: an LRU cache of the bytes of inline files. It holds what the store holds once all
// noted batches are committed.
//
// Not thread-safe.
#ifndef MOSA_MANAGER_SERVICE_INLINE_CACHE_H_
#define MOSA_MANAGER_SERVICE_INLINE_CACHE_H_

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/kv_batch.h"

namespace mosa::manager {

class InlineCache {
 public:
  explicit InlineCache(size_t bytes_max) : bytes_max_(bytes_max) {}

  // Applies a batch that is about to be committed: keeps what it puts, forgets what it deletes.
  void Note(const KvBatch& batch);
  void Put(std::string_view key, std::string_view value);
  // Returns null if absent. Valid until the next call.
  const std::string* Find(std::string_view key);
  size_t size_bytes() const { return size_bytes_; }

 private:
  using Item = std::pair<std::string, std::string>;

  void Erase(std::string_view key);
  static size_t Cost(const Item& item);

  const size_t bytes_max_;
  size_t size_bytes_ = 0;
  std::list<Item> items_;  // Most recently used first.
  // Keys are views into items_.
  std::unordered_map<std::string_view, std::list<Item>::iterator> by_key_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_INLINE_CACHE_H_
