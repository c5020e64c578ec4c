// The ordinary extended attributes of one file, and their size.
#ifndef MOSA_MANAGER_CORE_FILE_ATTRIBUTES_H_
#define MOSA_MANAGER_CORE_FILE_ATTRIBUTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace mosa::manager {

// Limit for the names and values of one file: one value of maximum length and some short ones.
inline constexpr uint64_t kAttributeBytesPerFileMax = 65536 + 4096;
// Approximate memory and database overhead of one attribute.
inline constexpr uint64_t kAttributeOverheadBytes = 128;

class FileAttributes {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  const Values& values() const { return values_; }
  // Bytes of all names and values.
  uint64_t bytes() const { return bytes_; }
  // The same, with the overhead of each attribute.
  uint64_t charged_bytes() const { return bytes_ + values_.size() * kAttributeOverheadBytes; }

  // Returns what bytes() would be if `name` had a value of `value_bytes`.
  uint64_t BytesWith(std::string_view name, uint64_t value_bytes) const {
    const auto found = values_.find(name);
    const uint64_t before = found == values_.end() ? 0 : name.size() + found->second.size();
    return bytes_ - before + name.size() + value_bytes;
  }

  void Set(std::string_view name, std::string_view value) {
    bytes_ = BytesWith(name, value.size());
    const auto found = values_.find(name);
    if (found == values_.end()) {
      values_.emplace(name, value);
    } else {
      found->second = value;
    }
  }

  // Returns false if there is no attribute of that name.
  bool Erase(std::string_view name) {
    const auto found = values_.find(name);
    if (found == values_.end()) return false;
    bytes_ -= found->first.size() + found->second.size();
    values_.erase(found);
    return true;
  }

 private:
  Values values_;
  uint64_t bytes_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_FILE_ATTRIBUTES_H_
