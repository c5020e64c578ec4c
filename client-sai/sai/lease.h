// What a mount may believe, and what time it is for the manager.
//
// Lease: until when cached things hold, and in which era they were learned. Everything cached
// carries the era; a lost session, or a lease that ran out, begins the next one, so that all of it
// is dropped at once. RecallLog: what happened to which file since a request left, so that a reply
// which may be older than a change is not cached.
#ifndef MOSA_CLIENT_SAI_SAI_LEASE_H_
#define MOSA_CLIENT_SAI_SAI_LEASE_H_

#include <array>
#include <cstdint>
#include <mutex>

#include "common/base/clock.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Thread-safe.
class Lease {
 public:
  explicit Lease(const Clock& clock) : clock_(clock) {}

  // A message that left at `sent` (monotonic) was answered at the manager's `manager_now`. Returns
  // true if the lease had run out before: a new era has begun.
  bool Renew(Time sent, Time manager_now);
  // Nothing learned before holds any more.
  void BeginEra(Time manager_now);

  // 0 while nothing may be answered from a cache; otherwise the era in which it must have been
  // learned.
  uint64_t ValidEra() const;
  // The era that what is learned now belongs to.
  uint64_t CurrentEra() const;
  // How long the kernel may cache what is answered now.
  Duration Remaining() const;
  // The manager's time, never later than its own clock and never going back.
  Time ManagerNow();
  // A time of this host's wall clock in the manager's time base, not after ManagerNow().
  Time FromLocalWallTime(Time local);

 private:
  Time EstimateNow() const;  // Caller holds mutex_.

  const Clock& clock_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  uint64_t era_ = 1;
  Time valid_until_;        // Monotonic.
  Duration offset_;         // Manager's time minus monotonic time, at most the true one.
  Time offset_learned_at_;  // Monotonic.
  bool offset_known_ = false;
  Time last_now_;
};

// Thread-safe.
class RecallLog {
 public:
  uint64_t Mark() const;
  // Something else changed `file`, or the mount gave up its interest in it.
  void NoteForeign(FileId file) { Note(file, true); }
  // A change of this mount's own was applied to it.
  void NoteOwn(FileId file) { Note(file, false); }
  // All files at once.
  void NoteAll();
  // True unless it is certain that nothing was noted of `file` since `mark`.
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

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::array<Event, kEventsKept> events_;
  uint64_t next_ = 0;
  uint64_t floor_ = 0;  // Nothing is known about marks below it.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_LEASE_H_
