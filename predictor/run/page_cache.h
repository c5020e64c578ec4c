// PageCache: which files a host's kernel has cached, by version; evicts the least recently read. It
// keeps whole files, since programs read whole files.
#ifndef MOSA_PREDICTOR_RUN_PAGE_CACHE_H_
#define MOSA_PREDICTOR_RUN_PAGE_CACHE_H_

#include <cstdint>
#include <list>
#include <map>

#include "common/model/ids.h"

namespace mosa::predict {

class PageCache {
 public:
  explicit PageCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Returns true if all pages of this version are cached, and marks them as used.
  bool Has(FileId file, uint64_t version) {
    const auto found = files_.find(file);
    if (found == files_.end() || found->second.version != version) return false;
    by_age_.splice(by_age_.end(), by_age_, found->second.age);
    return true;
  }
  // All of the file was read. A file larger than the cache leaves nothing in it.
  void Put(FileId file, uint64_t version, uint64_t bytes) {
    Drop(file);
    if (bytes > bytes_max_) return;
    while (bytes_ + bytes > bytes_max_) Drop(by_age_.front());
    by_age_.push_back(file);
    files_[file] = {version, bytes, std::prev(by_age_.end())};
    bytes_ += bytes;
  }
  void Drop(FileId file) {
    const auto found = files_.find(file);
    if (found == files_.end()) return;
    bytes_ -= found->second.bytes;
    by_age_.erase(found->second.age);
    files_.erase(found);
  }
  void Clear() {
    files_.clear();
    by_age_.clear();
    bytes_ = 0;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Pages {
    uint64_t version = 0;
    uint64_t bytes = 0;
    std::list<FileId>::iterator age;
  };
  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  std::map<FileId, Pages> files_;
  std::list<FileId> by_age_;  // Least recently used first.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_PAGE_CACHE_H_
