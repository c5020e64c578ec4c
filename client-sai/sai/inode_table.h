// InodeTable: the inodes that a mount knows. Those that the kernel has forgotten stay for a while.
#ifndef MOSA_CLIENT_SAI_SAI_INODE_TABLE_H_
#define MOSA_CLIENT_SAI_SAI_INODE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "client-sai/sai/inode.h"
#include "common/base/sync.h"

namespace mosa::sai {

// Thread-safe. No method blocks, and none may be called while an inode's mutex is held, except Find
// and Get. The table's lock is taken after an inode's. Its holder may lock the mutex of an inode
// that nobody else references. A user of an InodeSet may get a reference meanwhile, but does not
// wait for the table's lock while it holds that mutex.
class InodeTable {
 public:
  // Runs for each inode that is dropped, under its mutex and the table's.
  using OnDrop = std::function<void(Inode& inode)>;

  // Keeps about `idle_max` inodes that the kernel has forgotten.
  InodeTable(size_t idle_max, OnDrop on_drop);

  // Null if the file is unknown.
  InodePtr Find(FileId file) const;
  // Adds the file if it is unknown.
  InodePtr Get(FileId file);
  std::vector<InodePtr> All() const;

  // The kernel has given up `lookups` of its references to the file.
  void Forget(FileId file, uint64_t lookups);
  // Drops the inode if it has no name and is not open here, because no one will ask for it again.
  // (The manager forgot it with its last name.)
  void DropIfRemoved(const InodePtr& inode);
  // Drops the oldest of too many idle inodes. Returns which.
  std::vector<FileId> DropIdle();

 private:
  bool Drop(const InodePtr& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t idle_max_;
  const OnDrop on_drop_;
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, InodePtr> inodes_ ABSL_GUARDED_BY(mutex_);
  // Inodes without references of the kernel, oldest first.
  std::deque<FileId> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_INODE_TABLE_H_
