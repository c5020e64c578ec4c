// Advisory locks of all files: POSIX byte ranges (fcntl) and whole-file locks (flock), which do not
// see each other.
//
// An owner is (client, Lock::owner). Setting a POSIX range replaces what the same owner had there:
// ranges are cut, split and merged as POSIX asks. A waiting request is granted in the order in
// which it came, as soon as nothing conflicts; a POSIX wait that would close a circle of owners
// waiting for each other is refused as a deadlock. Pure; one thread.
#ifndef MOSA_MANAGER_CORE_LOCK_TABLE_H_
#define MOSA_MANAGER_CORE_LOCK_TABLE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/ids.h"
#include "common/model/messages.h"

namespace mosa::manager {

class LockTable {
 public:
  enum class SetResult : uint8_t { kGranted = 1, kWouldBlock, kWaiting, kDeadlock, kTooMany };
  // A request that waited and is now granted.
  struct Granted {
    ClientId client;
    RequestId request;
    bool operator==(const Granted&) const = default;
  };
  // Locks and waits of one file are bounded; beyond it SetLock answers kTooMany (ENOLCK).
  static constexpr size_t kLocksPerFileMax = 100'000;

  // The first lock in file order of another owner that `lock` conflicts with.
  std::optional<Lock> FindConflict(FileId file, ClientId client, const Lock& lock) const;

  // Grants, refuses or (wait) queues under `request`. Unlocking may grant waiting requests:
  // appended to `granted`. Precondition: lock.begin <= lock.last.
  SetResult Set(FileId file, ClientId client, RequestId request, const Lock& lock, bool wait,
                std::vector<Granted>& granted);

  // Takes the waiting request back. False if it does not wait (any more).
  bool Cancel(ClientId client, RequestId request, std::vector<Granted>& granted);

  // Drops everything that the client holds or waits for.
  void ReleaseClient(ClientId client, std::vector<Granted>& granted);
  // Drops everything of a file that is gone; its waiters are returned to be refused.
  std::vector<Granted> ReleaseFile(FileId file);

  bool HasLocks(FileId file) const { return files_.contains(file); }
  size_t file_count() const { return files_.size(); }

 private:
  struct Owner {
    ClientId client;
    uint64_t owner = 0;
    bool whole_file = false;
    auto operator<=>(const Owner&) const = default;
  };
  struct Held {
    Owner owner;
    Lock lock;
  };
  struct Waiting {
    Owner owner;
    Lock lock;
    RequestId request;
  };
  struct FileLocks {
    std::vector<Held>
        held;  // By (begin, owner); the ranges of one owner neither overlap nor touch alike.
    std::vector<Waiting> waiting;  // In order of arrival.
  };

  static Owner OwnerOf(ClientId client, const Lock& lock) {
    return {client, lock.owner, lock.whole_file};
  }
  static bool Conflicts(const Held& held, const Owner& owner, const Lock& lock);
  static const Held* FirstConflict(const FileLocks& locks, const Owner& owner, const Lock& lock);
  static void Apply(FileLocks& locks, const Owner& owner, const Lock& lock);
  void GrantWaiting(FileId file, std::vector<Granted>& granted);
  bool WouldDeadlock(const FileLocks& locks, const Owner& owner, const Lock& lock) const;
  void EraseIfEmpty(FileId file);

  std::map<FileId, FileLocks> files_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_LOCK_TABLE_H_
