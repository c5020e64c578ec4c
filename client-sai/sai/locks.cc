#include "client-sai/sai/locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// How long after close(2) the kernel's release may come.
constexpr Duration kReleaseWaitMax = Milliseconds(250);

// fcntl(2) ends its ranges at 2^63 - 1; higher values are internal.
Lock Normalised(Lock lock) {
  constexpr uint64_t kLast = (uint64_t{1} << 63) - 1;
  lock.last = std::min(lock.last, kLast);
  lock.begin = std::min(lock.begin, kLast);
  return lock;
}

// How long the release of another owner's closed descriptor may still take; 0 if none is awaited.
Duration ClosingFor(const Inode& inode, uint64_t owner, Time now)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex) {
  Duration left{0};
  for (const auto& [other, since] : inode.locking.owners_closing)
    if (other != owner) left = std::max(left, kReleaseWaitMax - (now - since));
  return left;
}

// Whether the owner holds any part of the lock's range.
bool IsHeld(Inode& inode, const Lock& lock) {
  const MutexLock guard(inode.mutex);
  const auto held = inode.locking.held.find(lock.owner);
  return held != inode.locking.held.end() &&
         std::ranges::any_of(held->second, [&](const Lock& each) {
           return each.whole_file == lock.whole_file && each.begin <= lock.last &&
                  lock.begin <= each.last;
         });
}

Failure PagesStay(FileId file) {
  return Fail(StatusCode::kUnavailable, ErrorReason::kTimedOut,
              fmt::format("file {} was locked, but a request that waits for a node still locks "
                          "older pages of it in the kernel: try again",
                          file.value));
}

}  // namespace

Outcome<std::optional<Lock>> FileLocks::Get(FileId file, Lock lock) {
  const InodePtr inode = inodes_.Get(file);
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inode));
  const bool closing = IsClosing(*inode, lock.owner);
  auto reply = calls_.Ask<GetLockReply>(GetLockRequest{file, Normalised(lock)});
  if (closing && reply.ok() && reply->conflict) {
    AwaitClosing(*inode, lock.owner);
    reply = calls_.Ask<GetLockReply>(GetLockRequest{file, Normalised(lock)});
  }
  if (!reply.ok()) return reply.failure();
  return reply->conflict;
}

Outcome<Done> FileLocks::Set(FileId file, Lock lock) {
  const InodePtr inode = inodes_.Get(file);
  lock = Normalised(lock);
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inode));
  if (lock.type == LockType::kUnlock) return Unlock(*inode, lock);
  const bool closing = IsClosing(*inode, lock.owner);
  auto granted = held_locks_.Ask(*inode, lock);
  if (closing && !granted.ok() && granted.failure().reason == ErrorReason::kWouldBlock) {
    AwaitClosing(*inode, lock.owner);
    granted = held_locks_.Ask(*inode, lock);
  }
  MOSA_RETURN_IF_FAILED(granted);
  Revalidate(*inode);
  if (pages_.DropNow(file)) return Done{};
  held_locks_.GiveUp(*inode, lock);
  return PagesStay(file);
}

Outcome<Done> FileLocks::Unlock(Inode& inode, const Lock& lock) {
  Outcome<Done> stored = Done{};
  {
    const IoLock io(inode);
    attributes_.NoteKernelWrites(inode);
    write_behind_.Drain(inode);
    stored = writer_.Commit(inode, false);
  }
  // The lock is released even if the bytes could not be stored, because others must not wait for
  // ever.
  held_locks_.Record(inode, lock);
  const auto unlocked = calls_.AskAll({SetLockRequest{inode.file, lock, false}});
  if (unlocked.ok()) return stored;
  // Nobody would release it any more, unless its owner has locked the file again.
  if (unlocked.failure().reason == ErrorReason::kTimedOut && !IsHeld(inode, lock))
    held_locks_.GiveUp(inode, lock);
  return unlocked.failure();
}

LockWaitId FileLocks::Wait(FileId file, Lock lock, std::function<void(Outcome<Done>)> done) {
  const InodePtr inode = inodes_.Get(file);
  lock = Normalised(lock);
  const LockWaitId wait = lock_waits_.Begin();
  const Outcome<Done> made = commits_.EnsureMade(*inode);
  if (!made.ok()) {
    service_.Run([made, done = std::move(done)] { done(made); });
    return wait;
  }
  const auto granted = [this, inode, lock, wait,
                        done = std::move(done)](const std::vector<Reply>& replies) {
    Outcome<Done> outcome = Done{};
    if (replies.empty())
      outcome = ManagerCalls::UnexpectedReply();
    else if (const auto* failure = std::get_if<Failure>(&replies.back()))
      outcome = *failure;
    // Recorded at once, because a session that is reopened claims what is recorded.
    if (outcome.ok()) held_locks_.Record(*inode, lock);
    service_.Run([this, inode, lock, wait, done, outcome] {
      lock_waits_.End(wait);
      if (!outcome.ok()) return done(outcome);
      Revalidate(*inode);
      pages_.Drop(
          inode->file, [] {},
          [this, inode, lock, done](bool in_time) {
            if (in_time) return done(Done{});
            held_locks_.GiveUp(*inode, lock);
            done(PagesStay(inode->file));
          });
    });
  };
  const RequestId request = manager_.Send({SetLockRequest{file, lock, true}}, granted);
  lock_waits_.NoteSent(wait, request);
  return wait;
}

void FileLocks::CancelWait(LockWaitId wait) {
  if (const std::optional<RequestId> request = lock_waits_.RequestOf(wait))
    calls_.Tell(CancelLockRequest{*request});
}

void FileLocks::DropOf(Inode& inode, uint64_t owner, bool whole_file) {
  Lock lock;
  lock.type = LockType::kUnlock;
  lock.owner = owner;
  lock.whole_file = whole_file;
  {
    const MutexLock guard(inode.mutex);
    const auto it = inode.locking.held.find(owner);
    if (it == inode.locking.held.end() ||
        std::none_of(it->second.begin(), it->second.end(),
                     [&](const Lock& held) { return held.whole_file == whole_file; }))
      return;
  }
  if (!Unlock(inode, Normalised(lock)).ok()) stats_.Add(Counter::kErrors);
}

void FileLocks::NoteOwner(HandleId id, uint64_t owner) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle) return;
  const MutexLock lock(handle->inode->mutex);
  handle->lock_owners.insert(owner);
}

// An owner that still has locks when one of its descriptors is closed either has another descriptor
// or is about to be released.
void FileLocks::NoteOwnersClosing(OpenFile& handle, uint64_t flushed_owner) {
  const Time now = clock_.Monotonic();
  const MutexLock lock(handle.inode->mutex);
  // A process's own locks are gone. Locks that it takes through another descriptor before this one
  // is released do not belong to this one.
  handle.lock_owners.erase(flushed_owner);
  for (const uint64_t owner : handle.lock_owners)
    if (handle.inode->locking.held.contains(owner))
      handle.inode->locking.owners_closing[owner] = now;
}

// Waits briefly for the locks of other owners whose descriptor was just closed.
void FileLocks::AwaitClosing(Inode& inode, uint64_t owner) {
  MutexLock lock(inode.mutex);
  const Time now = clock_.Monotonic();
  inode.changed.wait_for(lock, ClosingFor(inode, owner, now),
                         [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex) {
                           return ClosingFor(inode, owner, now) <= Duration{0};
                         });
}

// Called before the manager is asked, because a release that arrives during its answer must count
// too.
bool FileLocks::IsClosing(Inode& inode, uint64_t owner) {
  const MutexLock lock(inode.mutex);
  return ClosingFor(inode, owner, clock_.Monotonic()) > Duration{0};
}

void FileLocks::Revalidate(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    inode.known.era = inode.right.era = 0;
    inode.kernel.pages_version.reset();
  }
  blocks_.DropFile(inode.file);
}

}  // namespace mosa::sai
