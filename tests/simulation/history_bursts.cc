#include "tests/simulation/history_bursts.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/base/sync.h"

namespace mosa::simulation {
namespace {

constexpr uint64_t kBurstMax = 6;
// Programs look for the newest files: what happens to old ones is what other programs check.
constexpr uint64_t kNewest = 8;
constexpr uint64_t kContentMax = 400;

}  // namespace

void BurstPrograms::Step(const Host& host, Rng& rng) {
  const size_t newest = files_.size();
  if (newest > 0 && rng.Chance(350)) {
    const size_t number = newest - 1 - rng.Below(std::min<uint64_t>(kNewest, newest));
    if (rng.Chance(500)) return List(host);
    if (rng.Chance(150)) return Remove(host, number);
    return Find(host, number);
  }
  for (uint64_t i = 1 + rng.Below(kBurstMax); i > 0 && !host.mount->is_killed(); --i) {
    // Sometimes another program makes the same one. A close that waits for copies fails then.
    const bool shares = !files_.empty() && !state_.store.pessimistic && rng.Chance(150);
    const size_t number = files_.size() - (shares ? 1 : 0);
    if (!shares) files_.emplace_back();
    Make(host, number, rng);
    // Some look for a file before anybody makes it.
    if (rng.Chance(100)) {
      files_.emplace_back();
      Find(host, files_.size() - 1);
    }
  }
}

std::optional<bool> BurstPrograms::Known(size_t number, uint64_t changes) const {
  const File& file = files_[number];
  return file.changes == changes && !MayBeLost(file) ? file.there : std::nullopt;
}

bool BurstPrograms::MayBeLost(const File& file) const {
  if (!file.maker) return false;
  // A mount that lives comes back to a manager that was killed, and says what it has made.
  const bool faults_spare_sessions = std::ranges::all_of(state_.plan.kinds, [](FaultKind kind) {
    return kind == FaultKind::kKillManager || kind == FaultKind::kKillNode ||
           kind == FaultKind::kWipeNode;
  });
  return file.maker->mount->is_killed() ||
         (!faults_spare_sessions && state_.MayFail(*file.maker, file.made));
}

void BurstPrograms::Make(const Host& host, size_t number, Rng& rng) {
  File& file = files_[number];
  const size_t at = kBurst + number;
  const bool was_there = file.there.value_or(false);
  ++file.users;
  if (!was_there) Set(file, std::nullopt);
  const auto handle = calls_.Open(host, at, O_CREAT | O_RDWR);
  if (handle.ok() && !file.there) {
    Set(file, true);
    file.maker = host;
    file.made = state_.scheduler.now();
  }
  if (handle.ok()) {
    const bool written =
        rng.Chance(300) ||
        calls_.Write(host, at, *handle, 0, state_.Fresh(1 + rng.Below(kContentMax))).ok();
    if (rng.Chance(150)) SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(4'000))));
    const bool closed = calls_.Close(host, at, *handle).ok() && written;
    if (file.maker && file.maker->mount == host.mount) {
      if (!closed) Set(file, std::nullopt);
      file.maker.reset();
    }
  }
  --file.users;
}

void BurstPrograms::Remove(const Host& host, size_t number) {
  File& file = files_[number];
  if (file.users > 0 || !file.there.value_or(false)) return;
  ++file.users;
  Set(file, std::nullopt);
  const auto removed = calls_.Remove(host, kBurst + number);
  if (!removed.ok() && removed.failure().reason == ErrorReason::kNoEntry)
    state_.Problem(fmt::format("unlink on h{}: {} is absent", host.id, NameOf(kBurst + number)));
  if (removed.ok() && file.users == 1) Set(file, false);
  --file.users;
}

void BurstPrograms::Find(const Host& host, size_t number) {
  const uint64_t changes = files_[number].changes;
  const auto found = calls_.Find(host, kBurst + number);
  const std::optional<bool> known = Known(number, changes);
  if (!found.ok() || !known || *known == (*found != FileId{})) return;
  state_.Problem(fmt::format("h{} finds {} {}", host.id, NameOf(kBurst + number),
                             *known ? "absent although its create has returned"
                                    : "although it is removed or was never made"));
}

void BurstPrograms::List(const Host& host) {
  std::vector<uint64_t> changes;
  for (const File& file : files_) changes.push_back(file.changes);
  const auto listed = calls_.List(host, 0);
  if (!listed.ok()) return;
  for (size_t number = 0; number < changes.size(); ++number) {
    const std::optional<bool> known = Known(number, changes[number]);
    const std::string name = NameOf(kBurst + number);
    if (known && *known != listed->contains(name))
      state_.Problem(fmt::format("h{} {} {}", host.id, *known ? "does not list" : "lists", name));
  }
}

void BurstPrograms::CheckAll(const std::vector<Host>& hosts) {
  for (const Host& host : hosts) {
    List(host);
    for (size_t number = 0; number < files_.size(); ++number) Find(host, number);
  }
}

}  // namespace mosa::simulation
