// Advisory locks: POSIX byte ranges and flock locks, in two independent spaces.
//
// A holder is (client, owner). Ranges of one holder never overlap: a new range replaces what it
// covers, splits what it cuts and joins what it touches. Waiters are granted in order of arrival,
// as soon as no conflicting lock is held. Not thread-safe.
#ifndef MOSA_MANAGER_CORE_LOCK_TABLE_H_
#define MOSA_MANAGER_CORE_LOCK_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/ids.h"
#include "common/model/messages.h"
#include "common/model/session.h"

namespace mosa::manager {

// Maximum number of ranges per client and in total (kTooMany). An unlock that would split a range
// is refused at the limit too.
inline constexpr size_t kLocksPerClientMax = 131'072;
inline constexpr size_t kLocksMax = 1'048'576;

class LockTable {
 public:
  enum class Outcome : uint8_t { kDone, kConflict, kWaiting, kDeadlock, kTooMany, kInvalid };
  struct Waiting {
    ClientId client;
    RequestId request;
    bool operator==(const Waiting&) const = default;
  };

  // Returns a lock that conflicts with `lock` of `client`, if there is one.
  std::optional<Lock> ConflictWith(FileId file, ClientId client, const Lock& lock) const;
  // Locks or unlocks. With `wait`, a conflicting lock waits under that request, unless the wait
  // could never end (kDeadlock, POSIX ranges only). Appends the waiters that become unblocked to
  // `granted`.
  Outcome Set(FileId file, ClientId client, const Lock& lock, std::optional<RequestId> wait,
              std::vector<Waiting>& granted);
  // Forgets a waiting request. Returns false if it is not waiting.
  bool Cancel(ClientId client, RequestId request);
  // Makes `locks` the set of locks that `client` holds. Waiters are granted only afterwards, so a
  // lock that the client keeps never passes to another in between. Returns the locks that cannot be
  // held.
  std::vector<HeldLock> HoldOnly(ClientId client, const std::vector<HeldLock>& locks,
                                 std::vector<Waiting>& granted);
  // Drops all locks of `client`; with `waiting`, also its waiting requests.
  void Release(ClientId client, bool waiting, std::vector<Waiting>& granted);
  // Drops all locks of a removed file. Appends its waiters to `orphaned`.
  void Forget(FileId file, std::vector<Waiting>& orphaned);

  size_t held() const { return held_; }

 private:
  struct Held {
    ClientId client;
    Lock lock;
  };
  struct Waiter {
    Waiting who;
    Lock lock;
  };
  struct FileLocks {
    std::vector<Held> held;  // Both spaces.
    std::vector<Waiter> waiters;
  };

  static bool Splits(const FileLocks& locks, ClientId client, const Lock& lock);
  static bool Conflicts(const Held& held, ClientId client, const Lock& lock);
  void Replace(FileLocks& locks, ClientId client, const Lock& lock);
  void GrantWaiters(FileLocks& locks, std::vector<Waiting>& granted);
  // Removes the locks of `client`; returns true if there were any.
  bool EraseHeldBy(FileLocks& locks, ClientId client);
  void Count(ClientId client, size_t before, size_t after);
  bool HasTooMany(ClientId client) const;
  bool WouldDeadlock(FileId file, ClientId client, const Lock& lock) const;

  std::map<FileId, FileLocks> files_;
  std::map<ClientId, size_t> held_by_;  // Only clients that hold some.
  size_t held_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_LOCK_TABLE_H_
