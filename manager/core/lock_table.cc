#include "manager/core/lock_table.h"

#include <algorithm>
#include <set>

#include "common/base/check.h"

namespace mosa::manager {

bool LockTable::Conflicts(const Held& held, const Owner& owner, const Lock& lock) {
  if (held.owner == owner || held.owner.whole_file != owner.whole_file) return false;
  if (held.lock.last < lock.begin || lock.last < held.lock.begin) return false;
  return held.lock.type == LockType::kExclusive || lock.type == LockType::kExclusive;
}

const LockTable::Held* LockTable::FirstConflict(const FileLocks& locks, const Owner& owner,
                                                const Lock& lock) {
  for (const Held& held : locks.held) {
    if (Conflicts(held, owner, lock)) return &held;
  }
  return nullptr;
}

std::optional<Lock> LockTable::FindConflict(FileId file, ClientId client, const Lock& lock) const {
  const auto at = files_.find(file);
  if (at == files_.end() || lock.type == LockType::kUnlock) return std::nullopt;
  const Held* held = FirstConflict(at->second, OwnerOf(client, lock), lock);
  return held == nullptr ? std::nullopt : std::optional<Lock>(held->lock);
}

// Takes lock's range out of what the owner holds, then adds it unless it is an unlock, joined with
// what touches it.
void LockTable::Apply(FileLocks& locks, const Owner& owner, const Lock& lock) {
  std::vector<Held> kept;
  Lock added = lock;
  for (Held& held : locks.held) {
    if (held.owner != owner) {
      kept.push_back(held);
      continue;
    }
    const bool touches = (held.lock.last == UINT64_MAX || held.lock.last + 1 >= lock.begin) &&
                         (lock.last == UINT64_MAX || lock.last + 1 >= held.lock.begin);
    if (touches && held.lock.type == lock.type) {
      added.begin = std::min(added.begin, held.lock.begin);
      added.last = std::max(added.last, held.lock.last);
      continue;
    }
    if (held.lock.last < lock.begin || lock.last < held.lock.begin) {
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
  if (lock.type != LockType::kUnlock) kept.push_back({owner, added});
  std::sort(kept.begin(), kept.end(), [](const Held& a, const Held& b) {
    return a.lock.begin != b.lock.begin ? a.lock.begin < b.lock.begin : a.owner < b.owner;
  });
  locks.held = std::move(kept);
}

LockTable::SetResult LockTable::Set(FileId file, ClientId client, RequestId request,
                                    const Lock& lock, bool wait, std::vector<Granted>& granted) {
  MOSA_CHECK(lock.begin <= lock.last);
  const Owner owner = OwnerOf(client, lock);
  if (lock.type == LockType::kUnlock && !files_.contains(file)) return SetResult::kGranted;
  FileLocks& locks = files_[file];
  if (lock.type != LockType::kUnlock) {
    if (locks.held.size() + locks.waiting.size() >= kLocksPerFileMax) return SetResult::kTooMany;
    if (FirstConflict(locks, owner, lock) != nullptr) {
      if (!wait) return SetResult::kWouldBlock;
      if (!lock.whole_file && WouldDeadlock(locks, owner, lock)) return SetResult::kDeadlock;
      locks.waiting.push_back({owner, lock, request});
      return SetResult::kWaiting;
    }
  }
  Apply(locks, owner, lock);
  GrantWaiting(file, granted);
  return SetResult::kGranted;
}

// Follows who waits for whom, from those who hold what `owner` wants: reaching `owner` closes a
// circle.
bool LockTable::WouldDeadlock(const FileLocks& locks, const Owner& owner, const Lock& lock) const {
  std::set<Owner> seen;
  std::vector<Owner> next;
  const auto add_holders = [&](const FileLocks& of, const Owner& waiter, const Lock& wanted) {
    for (const Held& held : of.held) {
      if (Conflicts(held, waiter, wanted) && seen.insert(held.owner).second) {
        next.push_back(held.owner);
      }
    }
  };
  add_holders(locks, owner, lock);
  while (!next.empty()) {
    const Owner holder = next.back();
    next.pop_back();
    for (const auto& [file, others] : files_) {
      for (const Waiting& waiting : others.waiting) {
        if (waiting.owner == holder) add_holders(others, holder, waiting.lock);
      }
    }
    if (seen.contains(owner)) return true;
  }
  return false;
}

void LockTable::GrantWaiting(FileId file, std::vector<Granted>& granted) {
  const auto at = files_.find(file);
  if (at == files_.end()) return;
  FileLocks& locks = at->second;
  // A granted lock can be a downgrade that lets an earlier waiter in: start over until nothing
  // moves.
  for (size_t i = 0; i < locks.waiting.size();) {
    const Waiting waiting = locks.waiting[i];
    if (FirstConflict(locks, waiting.owner, waiting.lock) != nullptr) {
      ++i;
      continue;
    }
    locks.waiting.erase(locks.waiting.begin() + static_cast<ptrdiff_t>(i));
    Apply(locks, waiting.owner, waiting.lock);
    granted.push_back({waiting.owner.client, waiting.request});
    i = 0;
  }
  EraseIfEmpty(file);
}

void LockTable::EraseIfEmpty(FileId file) {
  const auto at = files_.find(file);
  if (at != files_.end() && at->second.held.empty() && at->second.waiting.empty()) files_.erase(at);
}

bool LockTable::Cancel(ClientId client, RequestId request, std::vector<Granted>& granted) {
  for (auto& [file, locks] : files_) {
    const auto at = std::find_if(locks.waiting.begin(), locks.waiting.end(), [&](const Waiting& w) {
      return w.owner.client == client && w.request == request;
    });
    if (at == locks.waiting.end()) continue;
    locks.waiting.erase(at);
    GrantWaiting(FileId(file), granted);
    return true;
  }
  return false;
}

void LockTable::ReleaseClient(ClientId client, std::vector<Granted>& granted) {
  std::vector<FileId> touched;
  for (auto& [file, locks] : files_) {
    const size_t held =
        std::erase_if(locks.held, [&](const Held& h) { return h.owner.client == client; });
    const size_t waiting =
        std::erase_if(locks.waiting, [&](const Waiting& w) { return w.owner.client == client; });
    if (held + waiting > 0) touched.push_back(file);
  }
  for (const FileId file : touched) GrantWaiting(file, granted);
}

std::vector<LockTable::Granted> LockTable::ReleaseFile(FileId file) {
  std::vector<Granted> refused;
  const auto at = files_.find(file);
  if (at == files_.end()) return refused;
  for (const Waiting& waiting : at->second.waiting) {
    refused.push_back({waiting.owner.client, waiting.request});
  }
  files_.erase(at);
  return refused;
}

}  // namespace mosa::manager
