#include "client-sai/sai/held_locks.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// Above every range that a program can lock (fcntl ends at 2^63 - 1).
constexpr uint64_t kAppendLockByte = (uint64_t{1} << 63) + 1;
constexpr uint64_t kAppendLockOwner = UINT64_MAX;
constexpr Lock kAppendLock = {
    LockType::kExclusive, kAppendLockByte, kAppendLockByte, kAppendLockOwner, 0, false};

}  // namespace

Outcome<Done> HeldLocks::Ask(Inode& inode, const Lock& lock) {
  for (;;) {
    const uint64_t session = lease_.Session();
    const auto granted = calls_.AskAll({SetLockRequest{inode.file, lock, false}});
    if (!granted.ok()) {
      // It may still be granted.
      if (granted.failure().reason == ErrorReason::kTimedOut) GiveUp(inode, lock);
      return granted.failure();
    }
    Record(inode, lock);
    // A session that was opened meanwhile has claimed the locks recorded before it.
    if (session == lease_.Session()) return Done{};
  }
}

void HeldLocks::GiveUp(Inode& inode, Lock lock) {
  lock.type = LockType::kUnlock;
  Record(inode, lock);
  calls_.Tell(SetLockRequest{inode.file, lock, false});
}

// Records the lock, to know whether an owner has any and to claim it again in a new session.
void HeldLocks::Record(Inode& inode, const Lock& lock) {
  const MutexLock guard(inode.mutex);
  std::vector<Lock>& held = inode.locking.held[lock.owner];
  std::vector<Lock> kept;
  for (const Lock& old : held) {
    if (old.whole_file != lock.whole_file || old.last < lock.begin || old.begin > lock.last) {
      kept.push_back(old);
      continue;
    }
    if (old.begin < lock.begin) {
      kept.push_back(old);
      kept.back().last = lock.begin - 1;
    }
    if (old.last > lock.last) {
      kept.push_back(old);
      kept.back().begin = lock.last + 1;
    }
  }
  if (lock.type != LockType::kUnlock) kept.push_back(lock);
  held = std::move(kept);
  if (held.empty()) inode.locking.held.erase(lock.owner);
}

Outcome<Done> HeldLocks::AskToAppend(Inode& inode) { return Ask(inode, kAppendLock); }

void HeldLocks::EndAppend(Inode& inode) { GiveUp(inode, kAppendLock); }

}  // namespace mosa::sai
