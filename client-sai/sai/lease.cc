#include "client-sai/sai/lease.h"

#include <algorithm>

#include "common/base/sync.h"
#include "common/model/session.h"

namespace mosa::sai {
namespace {

// Bound on the drift of two clocks: an old measurement loses this much per second.
constexpr int64_t kDriftPerMillion = 100;

}  // namespace

bool Lease::Renew(Time sent, Time manager_now) {
  const MutexLock lock(mutex_);
  const Time now = clock_.Monotonic();
  const bool expired = now >= valid_until_ && valid_until_.ns != 0;
  if (expired) ++era_;
  valid_until_ = std::max(valid_until_, sent + kSessionLease);
  // A delayed reply yields too early a time, so the best measurement is kept until drift may have
  // made it worse.
  const Duration sample = manager_now - now;
  const Duration aged =
      offset_ - Nanoseconds((now - offset_learned_at_).ns / 1'000'000 * kDriftPerMillion);
  if (!offset_known_ || sample >= aged) {
    offset_ = sample;
    offset_learned_at_ = now;
    offset_known_ = true;
  }
  return expired;
}

void Lease::BeginEra(Time manager_now) {
  const MutexLock lock(mutex_);
  NoteNewEra(manager_now);
}

void Lease::NoteNewEra(Time manager_now) {
  ++era_;
  const Time now = clock_.Monotonic();
  offset_ = manager_now - now;
  offset_learned_at_ = now;
  offset_known_ = true;
}

uint64_t Lease::BeginSession(Time manager_now) {
  const MutexLock lock(mutex_);
  NoteNewEra(manager_now);
  return ++session_;
}

uint64_t Lease::Session() const {
  const MutexLock lock(mutex_);
  return session_;
}

uint64_t Lease::ValidEra() const {
  const MutexLock lock(mutex_);
  return clock_.Monotonic() < valid_until_ ? era_ : 0;
}

uint64_t Lease::CurrentEra() const {
  const MutexLock lock(mutex_);
  return era_;
}

Duration Lease::Remaining() const {
  const MutexLock lock(mutex_);
  return std::max(Duration{0}, valid_until_ - clock_.Monotonic());
}

Time Lease::EstimateNow() const {
  const Time now = clock_.Monotonic();
  if (!offset_known_) return clock_.Now();
  const Duration lost = Nanoseconds((now - offset_learned_at_).ns / 1'000'000 * kDriftPerMillion);
  return now + offset_ - lost;
}

Time Lease::ManagerNow() {
  const MutexLock lock(mutex_);
  last_now_ = std::max(last_now_, EstimateNow());
  return last_now_;
}

Time Lease::FromLocalWallTime(Time local) {
  const Time now = ManagerNow();
  return std::min(now, now + (local - clock_.Now()));
}

Mark RecallLog::Now() const {
  const uint64_t era = lease_.CurrentEra();
  const Time at = lease_.Monotonic();
  const MutexLock lock(mutex_);
  return {next_, era, at};
}

void RecallLog::Note(FileId file, bool foreign) {
  const MutexLock lock(mutex_);
  events_[next_ % kEventsKept] = {file, foreign};
  ++next_;
}

void RecallLog::NoteAll() {
  const MutexLock lock(mutex_);
  floor_ = ++next_;
}

bool RecallLog::Find(uint64_t mark, FileId file, bool foreign_only) const {
  const MutexLock lock(mutex_);
  if (mark < floor_ || next_ - mark > kEventsKept) return true;
  for (uint64_t i = mark; i < next_; ++i) {
    const Event& event = events_[i % kEventsKept];
    if (event.file == file && (event.foreign || !foreign_only)) return true;
  }
  return false;
}

}  // namespace mosa::sai
