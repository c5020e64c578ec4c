// KvBatch: a plain value with changes to an ordered map of byte strings. They become durable
// together or not at all.
#ifndef MOSA_COMMON_BASE_KV_BATCH_H_
#define MOSA_COMMON_BASE_KV_BATCH_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mosa {

struct KvBatch {
  struct Write {
    std::string key;
    std::optional<std::string> value;  // Absent: the key is deleted.
  };
  std::vector<Write> writes;  // In order: the last write to a key wins.

  void Put(std::string key, std::string value) {
    writes.push_back({std::move(key), std::move(value)});
  }
  void Delete(std::string key) { writes.push_back({std::move(key), std::nullopt}); }
  bool empty() const { return writes.empty(); }
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_KV_BATCH_H_
