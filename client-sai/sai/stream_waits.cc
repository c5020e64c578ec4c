#include "client-sai/sai/stream_waits.h"

#include <set>
#include <utility>
#include <vector>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/stream.h"
#include "client-sai/sai/attribute_cache.h"

namespace mosa::sai {

void StreamWaits::Wait(const OpenFilePtr& handle, uint64_t offset, Done done) {
  {
    MutexLock lock(mutex_);
    if (ended_) {
      lock.unlock();
      return done(false);
    }
    waiting_.push_back({handle, offset, std::move(done)});
    if (!executor_) executor_ = std::make_shared<Executor>(1, kThreadsMax);
  }
  NoteChanged(handle->inode->file);  // It may have grown since the read.
}

void StreamWaits::NoteChanged(FileId file) {
  InodePtr inode;
  std::shared_ptr<Executor> executor;
  {
    const MutexLock lock(mutex_);
    executor = executor_;
    for (const Waiting& each : waiting_)
      if (each.handle->inode->file == file) inode = each.handle->inode;
  }
  if (inode) executor->Run([this, inode] { Look(inode); });
}

void StreamWaits::LookAgain() {
  std::set<InodePtr> inodes;
  {
    const MutexLock lock(mutex_);
    for (const Waiting& each : waiting_) inodes.insert(each.handle->inode);
  }
  for (const InodePtr& inode : inodes) {
    {
      const MutexLock lock(inode->mutex);
      inode->known.Invalidate();
    }
    NoteChanged(inode->file);
  }
}

void StreamWaits::Look(const InodePtr& inode) {
  const WaitBudget budget(WaitBudget::ForBackground());
  const auto fresh = rights_.EnsureFresh(*inode, false);
  // The manager does not answer: LookAgain().
  if (!fresh.ok() && fresh.failure().code == StatusCode::kUnavailable) return;
  uint64_t size_bytes = UINT64_MAX;
  if (fresh.ok() && ReadAtEnd(fresh->attributes.stream) == AtEnd::kWaits) {
    const MutexLock lock(inode->mutex);
    size_bytes = AttributeCache::ViewOn(*inode, fresh->attributes).size_bytes;
  }
  EndIf(true, [&](const Waiting& each) {
    return each.handle->inode == inode && each.offset < size_bytes;
  });
}

void StreamWaits::EndOf(HandleId handle) {
  EndIf(false, [handle](const Waiting& each) { return each.handle->id == handle; });
}

void StreamWaits::Stop() {
  std::shared_ptr<Executor> executor;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    executor = executor_;
  }
  EndIf(false, [](const Waiting&) { return true; });
  if (executor) executor->Stop();
}

void StreamWaits::EndIf(bool may_read, const std::function<bool(const Waiting&)>& ends) {
  std::vector<Done> ended;
  std::shared_ptr<Executor> executor;
  {
    const MutexLock lock(mutex_);
    executor = executor_;
    for (auto each = waiting_.begin(); each != waiting_.end();) {
      if (!ends(*each)) {
        ++each;
        continue;
      }
      ended.push_back(std::move(each->done));
      each = waiting_.erase(each);
    }
  }
  for (Done& done : ended) executor->Run([done = std::move(done), may_read] { done(may_read); });
}

}  // namespace mosa::sai
