// The bytes of small files that the manager keeps in its records, those used last, up to a limit.
// What is in the cache is what the store holds once the writes noted so far are committed.
//
// One owner, one thread.
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

  // Follows a batch that is about to be committed: keeps what it puts, forgets what it deletes.
  void Note(const KvBatch& batch);
  void Put(std::string_view key, std::string_view value);
  // Null if the cache does not have it. Good until the next call.
  const std::string* Find(std::string_view key);
  size_t size_bytes() const { return size_bytes_; }

 private:
  using Item = std::pair<std::string, std::string>;

  void Erase(std::string_view key);
  static size_t Cost(const Item& item);

  const size_t bytes_max_;
  size_t size_bytes_ = 0;
  std::list<Item> items_;  // The one used last is in front.
  std::unordered_map<std::string_view, std::list<Item>::iterator> by_key_;  // Views into items_.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_INLINE_CACHE_H_
