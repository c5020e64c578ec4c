#include "client-sai/sai/inode_table.h"

#include <algorithm>
#include <utility>

namespace mosa::sai {
namespace {

bool IsIdle(const Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex) {
  return inode.uses.handles == 0 && inode.making.state != MakeState::kUnsent &&
         inode.making.state != MakeState::kSending && !inode.unsaved.needs_commit &&
         inode.names.unsent.empty() && inode.locking.held.empty();
}

}  // namespace

InodeTable::InodeTable(size_t idle_max, OnDrop on_drop)
    : idle_max_(idle_max), on_drop_(std::move(on_drop)) {}

InodePtr InodeTable::Find(FileId file) const {
  const MutexLock lock(mutex_);
  const auto it = inodes_.find(file.value);
  return it == inodes_.end() ? nullptr : it->second;
}

InodePtr InodeTable::Get(FileId file) {
  const MutexLock lock(mutex_);
  InodePtr& inode = inodes_[file.value];
  if (!inode) {
    inode = std::make_shared<Inode>(file);
    idle_.push_back(file);
  }
  return inode;
}

std::vector<InodePtr> InodeTable::All() const {
  const MutexLock lock(mutex_);
  std::vector<InodePtr> all;
  all.reserve(inodes_.size());
  for (const auto& [id, inode] : inodes_) all.push_back(inode);
  return all;
}

void InodeTable::Forget(FileId file, uint64_t lookups) {
  const InodePtr inode = Find(file);
  if (!inode) return;
  {
    const MutexLock lock(inode->mutex);
    inode->kernel.lookups -= std::min(lookups, inode->kernel.lookups);
    if (inode->kernel.lookups > 0) return;
    inode->kernel.pages_version.reset();
  }
  const MutexLock lock(mutex_);
  if (!Drop(inode)) idle_.push_back(file);
}

void InodeTable::DropIfRemoved(const InodePtr& inode) {
  const MutexLock lock(mutex_);
  Drop(inode);
}

bool InodeTable::Drop(const InodePtr& inode) {
  // Two references: the table's and the caller's.
  if (inode.use_count() > 2) return false;
  const MutexLock lock(inode->mutex);
  if (inode->kernel.lookups > 0 || !inode->known.received ||
      inode->known.attributes.type != FileType::kRegular ||
      inode->known.attributes.link_count > 0 || inode->uses.told_held || !IsIdle(*inode))
    return false;
  on_drop_(*inode);
  inodes_.erase(inode->file.value);
  return true;
}

std::vector<FileId> InodeTable::DropIdle() {
  std::vector<FileId> dropped;
  const MutexLock lock(mutex_);
  for (size_t looked_at = 0; idle_.size() > idle_max_ && looked_at < idle_max_; ++looked_at) {
    const FileId file = idle_.front();
    idle_.pop_front();
    const auto it = inodes_.find(file.value);
    if (it == inodes_.end()) continue;
    if (it->second.use_count() > 1) {
      idle_.push_back(file);
      continue;
    }
    const InodePtr inode = it->second;  // Keeps the mutex alive while it is locked.
    const MutexLock inode_lock(inode->mutex);
    if (inode->kernel.lookups > 0) continue;  // Forget queues it again.
    if (!IsIdle(*inode)) {
      idle_.push_back(file);
      continue;
    }
    on_drop_(*inode);
    dropped.push_back(file);
    inodes_.erase(it);
  }
  return dropped;
}

}  // namespace mosa::sai
