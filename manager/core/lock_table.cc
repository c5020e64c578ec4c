#include "manager/core/lock_table.h"

#include <algorithm>
#include <set>

namespace mosa::manager {
namespace {

constexpr size_t kLocksPerFileMax = 65536;

bool Overlap(const Lock& a, const Lock& b) { return a.begin <= b.last && b.begin <= a.last; }

// Returns true if the ranges overlap or are adjacent.
bool Touch(const Lock& a, const Lock& b) {
  return Overlap(a, b) || (a.last != UINT64_MAX && a.last + 1 == b.begin) ||
         (b.last != UINT64_MAX && b.last + 1 == a.begin);
}

bool SameHolder(const Lock& a, const Lock& b) {
  return a.owner == b.owner && a.whole_file == b.whole_file;
}

// Returns the lock in canonical form; nothing if it is invalid.
std::optional<Lock> Normalized(Lock lock) {
  if (lock.whole_file) {
    lock.begin = 0;
    lock.last = UINT64_MAX;
  }
  const bool known = lock.type == LockType::kShared || lock.type == LockType::kExclusive ||
                     lock.type == LockType::kUnlock;
  return known && lock.begin <= lock.last ? std::optional(lock) : std::nullopt;
}

}  // namespace

bool LockTable::Conflicts(const Held& held, ClientId client, const Lock& lock) {
  if (held.lock.whole_file != lock.whole_file || lock.type == LockType::kUnlock) return false;
  if (held.client == client && held.lock.owner == lock.owner) return false;
  if (held.lock.type == LockType::kShared && lock.type == LockType::kShared) return false;
  return Overlap(held.lock, lock);
}

std::optional<Lock> LockTable::ConflictWith(FileId file, ClientId client, const Lock& lock) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return std::nullopt;
  for (const Held& held : found->second.held) {
    if (Conflicts(held, client, lock)) return held.lock;
  }
  return std::nullopt;
}

LockTable::Outcome LockTable::Set(FileId file, ClientId client, const Lock& lock,
                                  std::optional<RequestId> wait, std::vector<Waiting>& granted) {
  const std::optional<Lock> normalized = Normalized(lock);
  if (!normalized) return Outcome::kInvalid;
  const Lock& wanted = *normalized;
  if (wanted.type == LockType::kUnlock && !files_.contains(file)) return Outcome::kDone;

  if (ConflictWith(file, client, wanted)) {
    if (!wait) return Outcome::kConflict;
    if (!wanted.whole_file && WouldDeadlock(file, client, wanted)) return Outcome::kDeadlock;
    FileLocks& locks = files_[file];
    if (locks.waiters.size() >= kLocksPerFileMax) return Outcome::kTooMany;
    if (wanted.whole_file) {
      // flock(2) releases the old lock before it waits; otherwise two waiting upgrades would
      // deadlock.
      Lock unlock = wanted;
      unlock.type = LockType::kUnlock;
      Replace(locks, client, unlock);
    }
    locks.waiters.push_back({{client, *wait}, wanted});
    GrantWaiters(locks, granted);
    return Outcome::kWaiting;
  }
  FileLocks& locks = files_[file];
  const bool adds = wanted.type != LockType::kUnlock || Splits(locks, client, wanted);
  if (adds && (locks.held.size() >= kLocksPerFileMax || HasTooMany(client))) {
    if (locks.held.empty() && locks.waiters.empty()) files_.erase(file);
    return Outcome::kTooMany;
  }
  Replace(locks, client, wanted);
  GrantWaiters(locks, granted);
  if (locks.held.empty() && locks.waiters.empty()) files_.erase(file);
  return Outcome::kDone;
}

// Returns true if `lock` lies inside a range of its holder and would split it in two.
bool LockTable::Splits(const FileLocks& locks, ClientId client, const Lock& lock) {
  return std::any_of(locks.held.begin(), locks.held.end(), [&](const Held& held) {
    return held.client == client && SameHolder(held.lock, lock) && held.lock.begin < lock.begin &&
           held.lock.last > lock.last;
  });
}

void LockTable::Replace(FileLocks& locks, ClientId client, const Lock& lock) {
  std::vector<Held> kept;
  Held added{client, lock};
  for (const Held& held : locks.held) {
    const bool own = held.client == client && SameHolder(held.lock, lock);
    if (own && held.lock.type == lock.type && Touch(held.lock, added.lock)) {
      added.lock.begin = std::min(added.lock.begin, held.lock.begin);
      added.lock.last = std::max(added.lock.last, held.lock.last);
      continue;
    }
    if (!own || !Overlap(held.lock, lock)) {
      kept.push_back(held);
      continue;
    }
    if (held.lock.begin < lock.begin) {
      kept.push_back(held);
      kept.back().lock.last = lock.begin - 1;
    }
    if (held.lock.last > lock.last) {
      kept.push_back(held);
      kept.back().lock.begin = lock.last + 1;
    }
  }
  if (lock.type != LockType::kUnlock) kept.push_back(added);
  Count(client, locks.held.size(), kept.size());  // All locks of others were kept.
  locks.held = std::move(kept);
}

void LockTable::GrantWaiters(FileLocks& locks, std::vector<Waiting>& granted) {
  for (size_t i = 0; i < locks.waiters.size();) {
    const Waiter waiter = locks.waiters[i];
    const bool blocked = std::any_of(locks.held.begin(), locks.held.end(), [&](const Held& held) {
      return Conflicts(held, waiter.who.client, waiter.lock);
    });
    if (blocked) {
      ++i;
      continue;
    }
    locks.waiters.erase(locks.waiters.begin() + static_cast<ptrdiff_t>(i));
    Replace(locks, waiter.who.client, waiter.lock);
    granted.push_back(waiter.who);
    i = 0;  // A grant may downgrade its holder's lock, and so unblock an earlier waiter.
  }
}

// Follows "waits for" edges from the holders that conflict with `lock`. Returns true if they lead
// back to the requester.
bool LockTable::WouldDeadlock(FileId file, ClientId client, const Lock& lock) const {
  using Owner = std::pair<ClientId, uint64_t>;
  std::vector<Owner> open;
  std::set<Owner> seen;
  const auto add_holders = [&](const FileLocks& locks, ClientId waiter, const Lock& wanted) {
    for (const Held& held : locks.held) {
      if (!Conflicts(held, waiter, wanted)) continue;
      const Owner owner{held.client, held.lock.owner};
      if (seen.insert(owner).second) open.push_back(owner);
    }
  };
  add_holders(files_.at(file), client, lock);
  while (!open.empty()) {
    const Owner owner = open.back();
    open.pop_back();
    if (owner == Owner{client, lock.owner}) return true;
    for (const auto& [waited_file, locks] : files_) {
      for (const Waiter& waiter : locks.waiters) {
        if (!waiter.lock.whole_file && Owner{waiter.who.client, waiter.lock.owner} == owner)
          add_holders(locks, waiter.who.client, waiter.lock);
      }
    }
  }
  return false;
}

bool LockTable::Cancel(ClientId client, RequestId request) {
  for (auto entry = files_.begin(); entry != files_.end(); ++entry) {
    if (std::erase_if(entry->second.waiters, [&](const Waiter& waiter) {
          return waiter.who == Waiting{client, request};
        }) == 0)
      continue;
    if (entry->second.held.empty() && entry->second.waiters.empty()) files_.erase(entry);
    return true;
  }
  return false;
}

std::vector<HeldLock> LockTable::HoldOnly(ClientId client, const std::vector<HeldLock>& locks,
                                          std::vector<Waiting>& granted) {
  std::set<FileId> let_go;
  for (auto& [file, known] : files_) {
    if (EraseHeldBy(known, client)) let_go.insert(file);
  }
  std::vector<HeldLock> left_out;
  for (const HeldLock& wanted : locks) {
    const std::optional<Lock> lock = Normalized(wanted.lock);
    if (!lock || lock->type == LockType::kUnlock || HasTooMany(client) ||
        ConflictWith(wanted.file, client, *lock)) {
      left_out.push_back(wanted);
      continue;
    }
    Replace(files_[wanted.file], client, *lock);
  }
  for (const FileId file : let_go) {
    const auto entry = files_.find(file);
    GrantWaiters(entry->second, granted);
    if (entry->second.held.empty() && entry->second.waiters.empty()) files_.erase(entry);
  }
  return left_out;
}

void LockTable::Release(ClientId client, bool waiting, std::vector<Waiting>& granted) {
  for (auto entry = files_.begin(); entry != files_.end();) {
    FileLocks& locks = entry->second;
    if (waiting)
      std::erase_if(locks.waiters, [&](const Waiter& w) { return w.who.client == client; });
    if (EraseHeldBy(locks, client)) GrantWaiters(locks, granted);
    const bool empty = locks.held.empty() && locks.waiters.empty();
    entry = empty ? files_.erase(entry) : std::next(entry);
  }
}

void LockTable::Forget(FileId file, std::vector<Waiting>& orphaned) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  for (const Waiter& waiter : found->second.waiters) orphaned.push_back(waiter.who);
  for (const Held& held : found->second.held) Count(held.client, 1, 0);
  files_.erase(found);
}

bool LockTable::EraseHeldBy(FileLocks& locks, ClientId client) {
  const size_t erased =
      std::erase_if(locks.held, [&](const Held& held) { return held.client == client; });
  Count(client, erased, 0);
  return erased > 0;
}

void LockTable::Count(ClientId client, size_t before, size_t after) {
  if (before == after) return;
  held_ += after - before;
  const auto own = held_by_.try_emplace(client, 0).first;
  own->second += after - before;
  if (own->second == 0) held_by_.erase(own);
}

bool LockTable::HasTooMany(ClientId client) const {
  const auto own = held_by_.find(client);
  return held_ >= kLocksMax || (own != held_by_.end() && own->second >= kLocksPerClientMax);
}

}  // namespace mosa::manager
