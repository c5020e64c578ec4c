#include "tests/simulation/history_bursts.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "common/base/sync.h"

namespace mosa::simulation {
namespace {

constexpr uint64_t kBurstMax = 6;
// Programs look for the newest files: what happens to old ones is what other programs check.
constexpr uint64_t kNewest = 8;
constexpr uint64_t kContentMax = 400;
constexpr uint64_t kLooksMax = 20;

}  // namespace

void BurstPrograms::Step(const Host& host, Rng& rng) {
  if (!files_.empty() && rng.Chance(350)) {
    const size_t number = ChooseNewest(rng);
    if (rng.Chance(500)) return List(host);
    if (rng.Chance(150)) return Remove(host, number);
    return Find(host, number);
  }
  if (rng.Chance(150)) return Await(host, rng);
  for (uint64_t i = 1 + rng.Below(kBurstMax); i > 0 && !host.mount->is_killed(); --i) {
    Make(host, ChooseToMake(rng), rng);
    // Some look for a file before anybody makes it.
    if (rng.Chance(100)) {
      files_.emplace_back();
      Find(host, files_.size() - 1);
    }
  }
}

size_t BurstPrograms::ChooseNewest(Rng& rng) const {
  return files_.size() - 1 - rng.Below(std::min<uint64_t>(kNewest, files_.size()));
}

// Mostly a new one. If several programs make one file, a close that waits for copies fails.
size_t BurstPrograms::ChooseToMake(Rng& rng) {
  if (awaited_ && rng.Chance(400)) return *std::exchange(awaited_, std::nullopt);
  if (!files_.empty() && !state_.store.pessimistic && rng.Chance(200)) return ChooseNewest(rng);
  files_.emplace_back();
  return files_.size() - 1;
}

void BurstPrograms::Await(const Host& host, Rng& rng) {
  files_.emplace_back();
  const size_t number = files_.size() - 1;
  awaited_ = number;
  for (uint64_t i = 1 + rng.Below(kLooksMax); i > 0 && !host.mount->is_killed(); --i) {
    Find(host, number);
    if (files_[number].there.value_or(false)) return;
    if (rng.Chance(200)) {
      files_.emplace_back();
      Make(host, files_.size() - 1, rng);
    }
    SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(rng.Chance(500) ? 20 : 400))));
  }
}

std::optional<bool> BurstPrograms::Known(const Host& host, size_t number, uint64_t changes) const {
  const File& file = files_[number];
  if (file.changes != changes || file.is_lost) return std::nullopt;
  const bool is_unsure = std::ranges::any_of(file.makers, [&](const Maker& maker) {
    return (maker.opens && maker.host.id == host.id) || MayBeLost(maker);
  });
  return is_unsure ? std::nullopt : file.there;
}

bool BurstPrograms::MayBeLost(const Maker& maker) const {
  // A mount that lives comes back to a manager that was killed, and says what it has made.
  const bool sessions_are_spared = std::ranges::all_of(state_.plan.kinds, [](FaultKind kind) {
    return kind == FaultKind::kKillManager || kind == FaultKind::kKillNode ||
           kind == FaultKind::kWipeNode || kind == FaultKind::kDrainNode;
  });
  return maker.host.mount->is_killed() ||
         (!sessions_are_spared && state_.MayFail(maker.host, maker.begun));
}

void BurstPrograms::Make(const Host& host, size_t number, Rng& rng) {
  File& file = files_[number];
  if (file.is_removed) return;
  const size_t at = kBurst + number;
  if (!file.there.value_or(false)) Set(file, std::nullopt);
  const auto maker = file.makers.insert(file.makers.end(), {host, state_.scheduler.now()});
  const auto handle = calls_.Open(host, at, O_CREAT | O_RDWR);
  maker->opens = false;
  Set(file, handle.ok() ? true : file.there);
  bool closed = false;
  if (handle.ok()) {
    const std::string data = state_.Fresh(1 + rng.Below(kContentMax));
    const bool written = rng.Chance(300) || calls_.Write(host, at, *handle, 0, data).ok();
    if (rng.Chance(300)) SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(4'000))));
    closed = calls_.Close(host, at, *handle).ok() && written;
  }
  file.is_lost = file.is_lost || !closed;
  file.makers.erase(maker);
  ++file.changes;  // A mount that was silent may only now have told the manager.
}

void BurstPrograms::Remove(const Host& host, size_t number) {
  File& file = files_[number];
  if (file.is_removed || !file.makers.empty() || file.is_lost || !file.there.value_or(false))
    return;
  file.is_removed = true;
  Set(file, std::nullopt);
  const auto removed = calls_.Remove(host, kBurst + number);
  if (!removed.ok() && removed.failure().reason == ErrorReason::kNoEntry)
    state_.Problem(fmt::format("unlink on h{}: {} is absent", host.id, NameOf(kBurst + number)));
  if (removed.ok()) Set(file, false);
  file.is_lost = !removed.ok();
}

void BurstPrograms::Find(const Host& host, size_t number) {
  const uint64_t changes = files_[number].changes;
  const auto found = calls_.Find(host, kBurst + number);
  const std::optional<bool> known = Known(host, number, changes);
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
    const std::optional<bool> known = Known(host, number, changes[number]);
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
