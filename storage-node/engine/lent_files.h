// LentFiles: the files whose objects local programs may be writing (*lent*), and those whose last
// local writer has ended without a report of what it changed (*left untold*). The objects hold the
// same facts; these sets save looking at all of them. Thread-safe; its locks come after all others.
#ifndef MOSA_STORAGE_NODE_ENGINE_LENT_FILES_H_
#define MOSA_STORAGE_NODE_ENGINE_LENT_FILES_H_

#include <set>

#include "common/base/mutex.h"
#include "common/model/ids.h"

namespace mosa::node {

// A set of files that threads share.
class SharedFileSet {
 public:
  void Insert(FileId file) {
    const SystemMutexLock lock(mutex_);
    files_.insert(file);
  }
  void Erase(FileId file) {
    const SystemMutexLock lock(mutex_);
    files_.erase(file);
  }
  std::set<FileId> Get() const {
    const SystemMutexLock lock(mutex_);
    return files_;
  }

 private:
  mutable SystemMutex mutex_;
  std::set<FileId> files_ ABSL_GUARDED_BY(mutex_);
};

struct LentFiles {
  SharedFileSet lent;
  SharedFileSet left_untold;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_LENT_FILES_H_
