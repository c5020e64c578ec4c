#include "tests/simulation/history_locks.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "common/base/sync.h"
#include "tests/simulation/history_bytes.h"

namespace mosa::simulation {
namespace {

constexpr uint64_t kTriesMax = 30;

}  // namespace

void LockPrograms::Step(const Host& host, Rng& rng) {
  const bool writes = rng.Chance(700);
  // Locks of descriptors and of owners do not exclude each other, so all programs use one kind.
  const Lock lock{.type = writes ? LockType::kExclusive : LockType::kShared,
                  .owner = ++owners_,
                  .pid = 1,
                  .whole_file = state_.options.seed % 2 == 0};
  auto inside = holders_.end();
  const auto change = [&](sai::HandleId handle) -> Outcome<Done> {
    if (!lock.whole_file) host.fs().NoteLockOwner(handle, lock.owner);
    MOSA_RETURN_IF_FAILED(Acquire(host, handle, lock, rng));
    inside = Enter(host, writes);
    const Outcome<Done> used = Use(host, handle, *inside, rng);
    state_.guarded.is_certain = state_.guarded.is_certain && used.ok() && inside->is_alone;
    // The next one may hold the lock before this one hears that it does not any more.
    inside->is_leaving = true;
    const Outcome<Done> unlocked = calls_.Unlock(host, kGuarded, handle, lock);
    if (!unlocked.ok()) {
      Stay(*inside);
      return unlocked;
    }
    holders_.erase(inside);
    inside = holders_.end();
    return used;
  };
  static_cast<void>(shared_.ChangeShared(host, state_.guarded, kGuarded, 0, change));
  if (!writes) state_.guarded.has_copies = false;  // Its close has waited for none.
  if (inside == holders_.end()) return;
  state_.guarded.is_certain = false;
  holders_.erase(inside);
}

Outcome<Done> LockPrograms::Acquire(const Host& host, sai::HandleId handle, const Lock& lock,
                                    Rng& rng) {
  if (rng.Chance(500)) return calls_.WaitForLock(host, kGuarded, handle, lock);
  for (uint64_t i = rng.Below(kTriesMax);; --i) {
    const Outcome<Done> locked = calls_.TryLock(host, kGuarded, handle, lock);
    if (locked.ok() || i == 0 || locked.failure().reason != ErrorReason::kWouldBlock) return locked;
    SleepFor(Milliseconds(static_cast<int64_t>(20 + rng.Below(200))));
  }
}

// Its close may store once more what it has written, beside what others write by then.
void LockPrograms::Stay(Holder& holder) {
  holder.is_leaving = false;
  state_.guarded.is_certain = false;
  for (Holder& other : holders_) other.is_alone = false;
}

// A host that was not heard of may have lost its lock, and not know it.
LockPrograms::Holders::iterator LockPrograms::Enter(const Host& host, bool writes) {
  bool is_alone = true;
  for (Holder& other : holders_) {
    if (!writes && !other.writes) continue;
    const bool may_have_lost_it =
        state_.MayFail(other.host, other.since) || state_.MayFail(host, other.since);
    if (other.is_leaving && !may_have_lost_it) continue;
    if (!may_have_lost_it)
      state_.Problem(fmt::format("h{} has locked {} while h{} holds a lock that excludes this",
                                 host.id, NameOf(kGuarded), other.host.id));
    is_alone = other.is_alone = false;
  }
  return holders_.insert(holders_.end(), {host, state_.scheduler.now(), writes, is_alone});
}

Outcome<Done> LockPrograms::Use(const Host& host, sai::HandleId handle, Holder& holder, Rng& rng) {
  const Guarded& file = state_.guarded;
  const bool is_known = file.is_certain;
  const std::string right = file.content;
  const auto read = calls_.ReadRange(host, kGuarded, handle, 0, Guarded::kBytes);
  if (!read.ok()) return read.failure();
  if (is_known && holder.is_alone && !file.may_be_lost && *read != right)
    state_.Problem(fmt::format("h{} reads {} under a lock: {}", host.id, NameOf(kGuarded),
                               Difference(right, *read)));
  if (!holder.writes) return Done{};
  return Overwrite(host, handle, holder, rng);
}

Outcome<Done> LockPrograms::Overwrite(const Host& host, sai::HandleId handle, const Holder& holder,
                                      Rng& rng) {
  Guarded& file = state_.guarded;
  file.is_certain = false;
  const std::string data = state_.Fresh(Guarded::kBytes);
  const uint64_t half = 1 + rng.Below(Guarded::kBytes - 1);
  const std::string_view view = data;
  MOSA_RETURN_IF_FAILED(calls_.Write(host, kGuarded, handle, 0, view.substr(0, half)));
  if (rng.Chance(200)) SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(3'000))));
  MOSA_RETURN_IF_FAILED(calls_.Write(host, kGuarded, handle, half, view.substr(half)));
  // An unlock does not tell of a store that has failed.
  if (state_.MayFail(host, holder.since) || rng.Chance(100))
    MOSA_RETURN_IF_FAILED(calls_.Fsync(host, handle));
  file.content = data;
  file.is_certain = holder.is_alone;
  return Done{};
}

}  // namespace mosa::simulation
