#include "predictor/workflow/scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/rng.h"

namespace mosa::predict {
namespace {

// A task waits only for a few hosts. With more holders than this, each has little, or all are
// equally good.
constexpr size_t kHoldersMax = 8;
// A host with less than this share of a task's bytes is not worth waiting for: one eighth.
constexpr uint64_t kWorthShare = 8;
// Hosts are kept for at most so many large tasks at a time.
constexpr size_t kKeptMax = 16;

int64_t TransferNs(uint64_t bytes, uint64_t bytes_per_second) {
  const Wide ns = static_cast<Wide>(bytes) * 1'000'000'000 / bytes_per_second;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;
  return ns > static_cast<Wide>(kMost) ? kMost : static_cast<int64_t>(ns);
}

}  // namespace

const char* ToText(Reason reason) {
  switch (reason) {
    case Reason::kHoldsMost:
      return "holds most of its input";
    case Reason::kNothingToMove:
      return "no host is nearer to its input";
    case Reason::kWaited:
      return "waited for a nearer host as long as moving takes";
    case Reason::kInTurn:
      return "in turn";
    case Reason::kPlanned:
      return "as planned";
    case Reason::kPlanLate:
      return "its planned host was busy for too long";
  }
  return "";
}

std::strong_ordering Scheduler::Key::operator<=>(const Key& other) const {
  if (const auto order = other.levels_to_end <=> levels_to_end; order != 0) return order;
  if (const auto order = move_ns <=> other.move_ns; order != 0) return order;
  return task <=> other.task;
}

Scheduler::Scheduler(System system, std::vector<SchedulerHost> hosts) : system_(system) {
  MOSA_CHECK(!hosts.empty());
  for (const SchedulerHost& host : hosts) {
    Host own;
    own.slots = own.free = host.slots;
    own.memory = own.free_memory = host.memory_bytes;
    own.rate = std::max<uint64_t>(1, host.link_bytes_per_second);
    rate_max_ = std::max(rate_max_, own.rate);
    hosts_.push_back(std::move(own));
  }
}

uint64_t Scheduler::HeldBy(const ReadyTask& task, HostIndex host) {
  const auto found =
      std::lower_bound(task.held.begin(), task.held.end(), host,
                       [](const HostBytes& held, HostIndex index) { return held.host < index; });
  if (found == task.held.end() || found->host != host) return 0;
  return std::min(found->bytes, task.input_bytes);
}

int64_t Scheduler::MoveNs(const ReadyTask& task, HostIndex host) const {
  return TransferNs(task.input_bytes - HeldBy(task, host), hosts_[host.value].rate);
}

// Whether there is room now. If the host cannot hold so much at all, all of its memory must be
// free.
bool Scheduler::HasRoom(HostIndex host, const TaskNeeds& needs) const {
  const Host& own = hosts_[host.value];
  if (own.free == 0 || own.free < SlotsOn(own, needs)) return false;
  return own.memory == 0 || std::min(needs.memory_bytes, own.memory) <= own.free_memory;
}

// Whether it could run there, if the host were empty.
bool Scheduler::IsUsable(HostIndex host, const TaskNeeds& needs) const {
  if (CanHold(hosts_[host.value], needs)) return true;
  return hosts_[host.value].slots > 0 &&
         std::none_of(hosts_.begin(), hosts_.end(),
                      [&](const Host& other) { return CanHold(other, needs); });
}

bool Scheduler::MayUse(const ReadyTask& task, HostIndex host) const {
  if (!IsUsable(host, task.needs)) return false;
  if (!task.avoid.contains(host)) return true;
  // If all usable hosts are to be avoided, none is.
  for (uint32_t i = 0; i < hosts_.size(); ++i)
    if (!task.avoid.contains(HostIndex{i}) && IsUsable(HostIndex{i}, task.needs)) return false;
  return true;
}

// Hosts worth waiting for, nearest first.
std::vector<HostIndex> Scheduler::Holders(const ReadyTask& task) const {
  std::vector<std::pair<int64_t, HostIndex>> near;
  for (const HostBytes& held : task.held) {
    if (held.bytes >= task.input_bytes / kWorthShare && held.bytes > 0 && MayUse(task, held.host))
      near.emplace_back(MoveNs(task, held.host), held.host);
  }
  std::sort(near.begin(), near.end());
  std::vector<HostIndex> hosts;
  const bool all_alike = near.size() > kHoldersMax && near[kHoldersMax].first == near.front().first;
  if (all_alike) return hosts;
  for (size_t i = 0; i < near.size() && i < kHoldersMax; ++i) hosts.push_back(near[i].second);
  return hosts;
}

void Scheduler::AddReady(ReadyTask task, Time now) {
  const TaskIndex index = task.task;
  Waiting& waiting = waiting_[index];
  MOSA_CHECK(waiting.listed.empty() && !waiting.anywhere);
  waiting.ready = std::move(task);
  large_ += IsSmall(waiting.ready.needs) ? 0 : 1;
  const std::optional<PlannedHost>& planned = waiting.ready.planned;
  if (planned && MayUse(waiting.ready, planned->host)) {
    ListPlanned(waiting, now);
    return;
  }
  if (system_ == System::kDss) {
    List(waiting, std::nullopt);
    return;
  }
  const std::vector<HostIndex> holders = Holders(waiting.ready);
  if (holders.empty()) {
    List(waiting, std::nullopt);
  } else {
    ListHolders(waiting, holders, now);
  }
}

void Scheduler::ListPlanned(Waiting& waiting, Time now) {
  const PlannedHost& planned = *waiting.ready.planned;
  List(waiting, planned.host);
  const Change change{now + planned.patience, waiting.ready.task, std::nullopt};
  waiting.changes.push_back(change);
  changes_.insert(change);
}

void Scheduler::ListHolders(Waiting& waiting, const std::vector<HostIndex>& holders, Time now) {
  waiting.preferred_host = true;
  waiting.best_move_ns = MoveNs(waiting.ready, holders.front());
  const auto later = [&](std::optional<HostIndex> host, int64_t move_ns) {
    const Duration gain{move_ns - waiting.best_move_ns};
    if (gain.ns <= 0 || !IsFreeBy(waiting, holders, now + gain)) {
      List(waiting, host);
      return;
    }
    const Change change{now + gain, waiting.ready.task, host};
    waiting.changes.push_back(change);
    changes_.insert(change);
  };
  for (const HostIndex host : holders) later(host, MoveNs(waiting.ready, host));
  // The fastest link bounds the wait for hosts that hold nothing.
  later(std::nullopt, TransferNs(waiting.ready.input_bytes, rate_max_));
}

// Whether one of the nearest hosts may, as far as is known, have a free slot before `limit`.
bool Scheduler::IsFreeBy(const Waiting& waiting, const std::vector<HostIndex>& holders,
                         Time limit) const {
  return std::any_of(holders.begin(), holders.end(), [&](HostIndex index) {
    const Host& host = hosts_[index.value];
    return MoveNs(waiting.ready, index) == waiting.best_move_ns &&
           (host.free > 0 || !host.expected_free || *host.expected_free < limit);
  });
}

void Scheduler::List(Waiting& waiting, std::optional<HostIndex> host) {
  const ReadyTask& task = waiting.ready;
  if (host) {
    hosts_[host->value].tasks.insert({task.levels_to_end, MoveNs(task, *host), task.task});
    waiting.listed.push_back(*host);
  } else {
    // Moving costs the same on most hosts; the lowest task goes first.
    waiting.anywhere = Key{task.levels_to_end, 0, task.task};
    anywhere_.insert(*waiting.anywhere);
  }
}

void Scheduler::Withdraw(TaskIndex task) {
  const auto found = waiting_.find(task);
  if (found == waiting_.end()) return;
  const Waiting& waiting = found->second;
  for (const HostIndex host : waiting.listed) {
    hosts_[host.value].tasks.erase(
        {waiting.ready.levels_to_end, MoveNs(waiting.ready, host), task});
  }
  if (waiting.anywhere) anywhere_.erase(*waiting.anywhere);
  for (const Change& change : waiting.changes) changes_.erase(change);
  large_ -= IsSmall(waiting.ready.needs) ? 0 : 1;
  waiting_.erase(found);
}

void Scheduler::Promote(Time now) {
  while (!changes_.empty() && changes_.begin()->at <= now) {
    const Change change = *changes_.begin();
    changes_.erase(changes_.begin());
    Waiting& waiting = waiting_.at(change.task);
    std::erase(waiting.changes, change);
    List(waiting, change.host);
  }
}

// For each task that may go anywhere and finds no room, first ones first: the host with the most
// free slots, so that it fills no more.
Scheduler::Kept Scheduler::KeepHosts() const {
  Kept kept;
  if (large_ == 0) return kept;
  size_t looked_at = 0;
  for (const Key& key : anywhere_) {
    const ReadyTask& task = waiting_.at(key.task).ready;
    if (IsSmall(task.needs)) continue;
    if (++looked_at > kKeptMax) break;
    std::optional<HostIndex> emptiest;
    bool has_room = false;
    for (uint32_t i = 0; i < hosts_.size() && !has_room; ++i) {
      const HostIndex host{i};
      if (!MayUse(task, host) || kept.contains(host)) continue;
      has_room = HasRoom(host, task.needs);
      if (!emptiest || hosts_[i].free > hosts_[emptiest->value].free) emptiest = host;
    }
    if (!has_room && emptiest) kept.emplace(*emptiest, key);
  }
  return kept;
}

// Whether no earlier task waits for room on the host.
bool Scheduler::IsOpenTo(const Key& key, HostIndex host, const Kept& kept) const {
  if (const auto other = kept.find(host); other != kept.end() && other->second < key) return false;
  const Host& own = hosts_[host.value];
  if (large_ == 0 || own.tasks.empty() || !(*own.tasks.begin() < key)) return true;
  return HasRoom(host, waiting_.at(own.tasks.begin()->task).ready.needs);
}

std::optional<Scheduler::Choice> Scheduler::BestHeld(const Kept& kept) const {
  std::optional<Choice> best;
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    if (host.free == 0 || host.tasks.empty()) continue;
    const Key& key = *host.tasks.begin();
    if (!HasRoom(HostIndex{i}, waiting_.at(key.task).ready.needs)) continue;
    if (!IsOpenTo(key, HostIndex{i}, kept)) continue;
    if (!best || key < best->key ||
        (key == best->key && IsBetterHost(waiting_.at(key.task).ready, HostIndex{i}, best->host))) {
      best = Choice{key, HostIndex{i}};
    }
  }
  return best;
}

// Prefers the host that moves less, then the emptier one, then the one whose turn comes first.
// Precondition: both have a free slot.
bool Scheduler::IsBetterHost(const ReadyTask& task, HostIndex host, HostIndex than) const {
  if (system_ == System::kWass) {
    const int64_t move = MoveNs(task, host);
    const int64_t other = MoveNs(task, than);
    if (move != other) return move < other;
  }
  const uint32_t free = hosts_[host.value].free;
  const uint32_t other_free = hosts_[than.value].free;
  if (free != other_free) return free > other_free;
  const auto count = static_cast<uint32_t>(hosts_.size());
  return (host.value + count - turn_.value) % count < (than.value + count - turn_.value) % count;
}

std::optional<Scheduler::Choice> Scheduler::BestAnywhere(const Kept& kept) const {
  if (std::none_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.free > 0; }))
    return std::nullopt;
  // Later tasks with the same needs find no room either.
  std::vector<TaskNeeds> in_vain;
  for (const Key& key : anywhere_) {
    const ReadyTask& task = waiting_.at(key.task).ready;
    if (std::find(in_vain.begin(), in_vain.end(), task.needs) != in_vain.end()) continue;
    std::optional<HostIndex> best;
    for (uint32_t i = 0; i < hosts_.size(); ++i) {
      const HostIndex host{i};
      if (!HasRoom(host, task.needs) || !MayUse(task, host) || !IsOpenTo(key, host, kept)) continue;
      if (!best || IsBetterHost(task, host, *best)) best = host;
    }
    if (best) {
      const int64_t move = system_ == System::kWass ? MoveNs(task, *best) : 0;
      return Choice{{key.levels_to_end, move, key.task}, *best};
    }
    // Only a task that avoids the free hosts gets here, or one that is large or comes after a large
    // one. What a small one does not find, no later one finds.
    if (!task.avoid.empty()) continue;
    if (IsSmall(task.needs)) return std::nullopt;
    in_vain.push_back(task.needs);
  }
  return std::nullopt;
}

std::optional<Assignment> Scheduler::Next(Time now) {
  Promote(now);
  const Kept kept = KeepHosts();
  const std::optional<Choice> held = BestHeld(kept);
  const std::optional<Choice> anywhere = BestAnywhere(kept);
  if (!held && !anywhere) return std::nullopt;
  if (!held) return Assign(*anywhere);
  if (!anywhere) return Assign(*held);
  return Assign(anywhere->key < held->key ? *anywhere : *held);
}

Assignment Scheduler::Assign(const Choice& choice) {
  const TaskIndex task = choice.key.task;
  const Waiting& waiting = waiting_.at(task);
  Assignment assignment;
  assignment.task = task;
  assignment.host = choice.host;
  assignment.local_bytes = HeldBy(waiting.ready, choice.host);
  assignment.remote_bytes = waiting.ready.input_bytes - assignment.local_bytes;
  if (const auto& planned = waiting.ready.planned;
      planned && MayUse(waiting.ready, planned->host)) {
    assignment.reason = planned->host == choice.host ? Reason::kPlanned : Reason::kPlanLate;
  } else if (system_ == System::kWass) {
    const bool nearest = MoveNs(waiting.ready, choice.host) <= waiting.best_move_ns;
    assignment.reason = !waiting.preferred_host ? Reason::kNothingToMove
                        : nearest               ? Reason::kHoldsMost
                                                : Reason::kWaited;
  }
  Host& host = hosts_[choice.host.value];
  host.free -= SlotsOn(host, waiting.ready.needs);
  host.free_memory -= std::min(waiting.ready.needs.memory_bytes, host.memory);
  Withdraw(task);
  turn_.value = (choice.host.value + 1) % static_cast<uint32_t>(hosts_.size());
  return assignment;
}

std::optional<Time> Scheduler::NextChange() const {
  if (changes_.empty()) return std::nullopt;
  return changes_.begin()->at;
}

void Scheduler::Release(HostIndex host, const TaskNeeds& needs) {
  Host& own = hosts_[host.value];
  if (own.slots == 0) return;
  own.free += SlotsOn(own, needs);
  own.free_memory += std::min(needs.memory_bytes, own.memory);
  MOSA_CHECK(own.free <= own.slots && own.free_memory <= own.memory);
}

void Scheduler::Remove(HostIndex host, Time now) {
  Host& own = hosts_[host.value];
  own.slots = own.free = 0;
  own.free_memory = own.memory;
  std::vector<ReadyTask> held;
  for (const auto& [task, waiting] : waiting_) {
    const auto& planned = waiting.ready.planned;
    if (HeldBy(waiting.ready, host) > 0 || (planned && planned->host == host))
      held.push_back(waiting.ready);
  }
  for (ReadyTask& task : held) {
    Withdraw(task.task);
    AddReady(std::move(task), now);
  }
}

void Scheduler::ExpectFree(HostIndex host, std::optional<Time> at) {
  hosts_[host.value].expected_free = at;
}

}  // namespace mosa::predict
