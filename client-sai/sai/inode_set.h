// InodeSet: some of a mount's inodes, not kept alive by the set. Thread-safe; no method blocks, and
// all may be called while an inode's mutex is held.
#ifndef MOSA_CLIENT_SAI_SAI_INODE_SET_H_
#define MOSA_CLIENT_SAI_SAI_INODE_SET_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "client-sai/sai/inode.h"
#include "common/base/sync.h"

namespace mosa::sai {

class InodeSet {
 public:
  void Insert(const InodePtr& inode) {
    const MutexLock lock(mutex_);
    inodes_[inode->file] = inode;
  }
  void Erase(FileId file) {
    const MutexLock lock(mutex_);
    inodes_.erase(file);
  }
  std::vector<InodePtr> All() const {
    const MutexLock lock(mutex_);
    std::vector<InodePtr> all;
    for (const auto& [file, weak] : inodes_)
      if (InodePtr inode = weak.lock()) all.push_back(std::move(inode));
    return all;
  }

 private:
  mutable Mutex mutex_;
  std::map<FileId, std::weak_ptr<Inode>> inodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_INODE_SET_H_
