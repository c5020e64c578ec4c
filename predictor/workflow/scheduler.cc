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
    own.rate = std::max<uint64_t>(1, host.link_bytes_per_second);
    rate_max_ = std::max(rate_max_, own.rate);
    living_ += host.slots > 0 ? 1 : 0;
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

bool Scheduler::MayUse(const ReadyTask& task, HostIndex host) const {
  if (hosts_[host.value].slots == 0) return false;
  if (!task.avoid.contains(host)) return true;
  // If all living hosts are to be avoided, none is.
  const auto avoided = std::count_if(task.avoid.begin(), task.avoid.end(), [this](HostIndex other) {
    return hosts_[other.value].slots > 0;
  });
  return static_cast<uint32_t>(avoided) == living_;
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

std::optional<Scheduler::Choice> Scheduler::BestHeld() const {
  std::optional<Choice> best;
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    if (host.free == 0 || host.tasks.empty()) continue;
    const Key& key = *host.tasks.begin();
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

std::optional<Scheduler::Choice> Scheduler::BestAnywhere() const {
  for (const Key& key : anywhere_) {
    const ReadyTask& task = waiting_.at(key.task).ready;
    std::optional<HostIndex> best;
    for (uint32_t i = 0; i < hosts_.size(); ++i) {
      const HostIndex host{i};
      if (hosts_[i].free == 0 || !MayUse(task, host)) continue;
      if (!best || IsBetterHost(task, host, *best)) best = host;
    }
    if (best) {
      const int64_t move = system_ == System::kWass ? MoveNs(task, *best) : 0;
      return Choice{{key.levels_to_end, move, key.task}, *best};
    }
    // While there is a free slot, only a task that avoids the free hosts gets here.
    if (task.avoid.empty()) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Assignment> Scheduler::Next(Time now) {
  Promote(now);
  const std::optional<Choice> held = BestHeld();
  const std::optional<Choice> anywhere = BestAnywhere();
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
  Withdraw(task);
  --hosts_[choice.host.value].free;
  turn_.value = (choice.host.value + 1) % static_cast<uint32_t>(hosts_.size());
  return assignment;
}

std::optional<Time> Scheduler::NextChange() const {
  if (changes_.empty()) return std::nullopt;
  return changes_.begin()->at;
}

void Scheduler::Release(HostIndex host) {
  Host& own = hosts_[host.value];
  if (own.slots == 0) return;
  MOSA_CHECK(own.free < own.slots);
  ++own.free;
}

void Scheduler::Remove(HostIndex host, Time now) {
  Host& own = hosts_[host.value];
  if (own.slots > 0) --living_;
  own.slots = own.free = 0;
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
