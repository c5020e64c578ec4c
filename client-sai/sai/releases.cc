#include "client-sai/sai/releases.h"

#include <utility>

namespace mosa::sai {

void Releases::Queue(ReleaseRequest release) {
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(release));
}

Releases::TakenBack Releases::TakeBack(FileId file) {
  const MutexLock lock(mutex_);
  TakenBack taken;
  std::erase_if(queue_, [&](const ReleaseRequest& release) {
    if (release.file != file || release.reader) return false;
    taken.any = true;
    taken.uncommitted = taken.uncommitted || release.uncommitted;
    return true;
  });
  return taken;
}

void Releases::Send() {
  const MutexLock lock(mutex_);
  for (ReleaseRequest& release : std::exchange(queue_, {})) {
    const InodePtr inode = release.reader ? nullptr : inodes_.Find(release.file);
    if (!inode) {
      calls_.Tell(std::move(release));
      continue;
    }
    {
      // Held until the message is sent, so that an answer to a recall which says that the file is
      // open is not followed by a release which says that it is not.
      const MutexLock held(inode->mutex);
      if (inode->uses.manager_counts_open) {
        // The mount has become a writer again, and its end tells the manager.
        inode->unsaved.change_failed = inode->unsaved.change_failed || release.uncommitted;
        inode->unsaved.needs_commit = inode->unsaved.needs_commit || release.uncommitted;
        continue;
      }
      release.holds_open = inode->uses.told_held = inode->uses.handles > 0;
      calls_.Tell(std::move(release));
    }
    inodes_.DropIfRemoved(inode);
  }
}

}  // namespace mosa::sai
