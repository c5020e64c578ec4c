// Advisory locks: POSIX byte ranges and flock locks, in two spaces that do not see each other.
//
// A holder is (client, owner). Ranges of one holder never overlap: a new one replaces what it
// covers, splits what it cuts and joins what it touches. Waiters are granted in the order in which
// they came, as soon as nobody holds anything that conflicts. One owner, one thread.
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

// Ranges that one client, and all together, may hold (kTooMany). An unlock that would leave two
// ranges of one is refused as well.
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

  // The lock that prevents `lock` of `client`, if there is one.
  std::optional<Lock> ConflictWith(FileId file, ClientId client, const Lock& lock) const;
  // Locks or unlocks. With `wait`, a lock in conflict is kept as waiting under that request, unless
  // the wait could never end (kDeadlock, POSIX ranges only). Waiters that can go on are appended to
  // `granted`.
  Outcome Set(FileId file, ClientId client, const Lock& lock, std::optional<RequestId> wait,
              std::vector<Waiting>& granted);
  // Forgets a waiting request; false if it does not wait.
  bool Cancel(ClientId client, RequestId request);
  // Makes `locks` all that `client` holds; waiters go on only afterwards, so that what it held and
  // goes on holding is nobody else's in between. What cannot be held is left out and returned.
  std::vector<HeldLock> HoldOnly(ClientId client, const std::vector<HeldLock>& locks,
                                 std::vector<Waiting>& granted);
  // Drops all that `client` holds; with `waiting`, also what it waits for.
  void Release(ClientId client, bool waiting, std::vector<Waiting>& granted);
  // Drops all locks of a file that is gone. Those who waited for one are appended to `orphaned`.
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
  // Takes out what `client` holds; true if it held any.
  bool EraseHeldBy(FileLocks& locks, ClientId client);
  void Count(ClientId client, size_t before, size_t after);
  bool HasTooMany(ClientId client) const;
  bool WouldDeadlock(FileId file, ClientId client, const Lock& lock) const;

  std::map<FileId, FileLocks> files_;
  std::map<ClientId, size_t> held_by_;  // Without clients that hold none.
  size_t held_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_LOCK_TABLE_H_
