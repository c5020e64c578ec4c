// The validity of a mount's cached knowledge, and the manager's time.
//
// Lease: how long cached knowledge is valid, and in which era it was learned. All cached data carry
// their era. A lost session or an expired lease begins a new era, which invalidates everything at
// once. RecallLog: which files were changed since a request was sent, so that a reply which may be
// older than a change is not cached.
#ifndef MOSA_CLIENT_SAI_SAI_LEASE_H_
#define MOSA_CLIENT_SAI_SAI_LEASE_H_

#include <array>
#include <cstdint>

#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Thread-safe.
class Lease {
 public:
  explicit Lease(const Clock& clock) : clock_(clock) {}

  // A message sent at `sent` (monotonic) was answered at the manager's `manager_now`. Returns true
  // if the lease had expired, so that a new era has begun.
  bool Renew(Time sent, Time manager_now);
  // Invalidates everything learned so far.
  void BeginEra(Time manager_now);
  // As BeginEra, for a session that the manager has opened. Returns the new Session().
  uint64_t BeginSession(Time manager_now);

  // Returns the era that cached data must have to be used; 0 if no cached data may be used.
  uint64_t ValidEra() const;
  // Returns the era to record with data learned now.
  uint64_t CurrentEra() const;
  // Counts the sessions; 0: there was none yet. A recall belongs to the session that sent it.
  uint64_t Session() const;
  // Returns how long the kernel may cache an answer given now.
  Duration Remaining() const;
  Time Monotonic() const { return clock_.Monotonic(); }
  // The manager's time: never later than its own clock, and never going back.
  Time ManagerNow();
  // Converts this host's wall time to the manager's time base. The result is not after
  // ManagerNow().
  Time FromLocalWallTime(Time local);

 private:
  void NoteNewEra(Time manager_now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Time EstimateNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  uint64_t era_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t session_ ABSL_GUARDED_BY(mutex_) = 0;
  Time valid_until_ ABSL_GUARDED_BY(mutex_);  // Monotonic.
  // Manager's time minus monotonic time; at most the true one.
  Duration offset_ ABSL_GUARDED_BY(mutex_);
  Time offset_learned_at_ ABSL_GUARDED_BY(mutex_);  // Monotonic.
  bool offset_known_ ABSL_GUARDED_BY(mutex_) = false;
  Time last_now_ ABSL_GUARDED_BY(mutex_);
};

// When a request was sent. Its reply may be cached if nothing has happened since.
struct Mark {
  uint64_t log = 0;
  uint64_t era = 0;
  Time at{};  // Monotonic.
};

// What has made replies to earlier requests uncertain. Thread-safe. Borrows the lease.
class RecallLog {
 public:
  explicit RecallLog(const Lease& lease) : lease_(lease) {}

  Mark Now() const;
  // Another session changed `file`, or this mount gave up its interest in it.
  void NoteForeign(FileId file) { Note(file, true); }
  // This mount's own change was applied to it.
  void NoteOwn(FileId file) { Note(file, false); }
  // As NoteForeign, for all files.
  void NoteAll();
  // False only if it is certain that nothing was noted for `file` since `mark`.
  bool Happened(uint64_t mark, FileId file) const { return Find(mark, file, false); }
  bool HappenedForeign(uint64_t mark, FileId file) const { return Find(mark, file, true); }

 private:
  struct Event {
    FileId file;
    bool foreign = false;
  };
  static constexpr uint64_t kEventsKept = 4096;
  void Note(FileId file, bool foreign);
  bool Find(uint64_t mark, FileId file, bool foreign_only) const;

  const Lease& lease_;
  mutable Mutex mutex_;
  std::array<Event, kEventsKept> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t floor_ ABSL_GUARDED_BY(mutex_) = 0;  // Nothing is known about older marks.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_LEASE_H_
