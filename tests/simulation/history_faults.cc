#include "tests/simulation/history_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/base/sync.h"

namespace mosa::simulation {
namespace {

// How long a fault waits for a program that changes something.
constexpr Duration kAimMax = Seconds(3);
// How long a node may take to be drained: programs keep files open, and other nodes may be full.
constexpr Duration kDrainMax = Seconds(30);

Duration UpTo(Rng& rng, Duration most) {
  return Duration{static_cast<int64_t>(rng.Below(static_cast<uint64_t>(most.ns)))};
}

}  // namespace

void HistoryFaults::Run(const std::function<bool()>& is_over) {
  running_ = state_.plan.at_once;
  for (uint32_t i = 0; i < state_.plan.at_once; ++i)
    state_.scheduler.Start(
        [this, &is_over] {
          RunOne(is_over);
          if (--running_ == 0) ended_.WakeAll();
        },
        0);
  while (running_ > 0) ended_.Wait(kNever);
}

void HistoryFaults::RunOne(const std::function<bool()>& is_over) {
  Rng& rng = state_.scheduler.rng();
  const FaultPlan& plan = state_.plan;
  while (!is_over()) {
    SleepFor(Milliseconds(10) + UpTo(rng, plan.gap_max));
    // If it is calm, there are times in between at which no call may fail any more.
    if (plan.is_calm && rng.Chance(500)) SleepFor(kSettleMax + Seconds(10));
    Fault fault = Draw();
    if (is_over()) return;
    if (!MayBegin(fault)) continue;
    const bool alone = fault.kind == FaultKind::kKillMount;
    places_.insert(fault.place);
    alone_ = alone_ || alone;
    ++state_.history.faults;
    const bool silences = MaySilenceNodes(fault);
    ++state_.faults_now;
    if (silences) ++state_.silences_now;
    Inject(fault);
    --state_.faults_now;
    state_.fault_ended = state_.scheduler.now();
    if (silences) --state_.silences_now;
    if (silences) state_.silence_ended = state_.scheduler.now();
    places_.erase(fault.place);
    alone_ = alone_ && !alone;
    Note("the fault is over");
  }
}

// A mount does not start while there is another fault.
bool HistoryFaults::MayBegin(const Fault& fault) const {
  if (alone_ || places_.contains(fault.place)) return false;
  return fault.kind != FaultKind::kKillMount || state_.faults_now == 0;
}

// True if a node may not be heard of for so long that the manager counts it as gone, or a mount
// does not hear of the manager.
bool HistoryFaults::MaySilenceNodes(const Fault& fault) {
  if (fault.kind == FaultKind::kKillMount) return false;
  const bool ends_process = fault.kind == FaultKind::kKillNode ||
                            fault.kind == FaultKind::kWipeNode ||
                            fault.kind == FaultKind::kDrainNode;
  return !ends_process || fault.down > kNodeDeadAfter - Seconds(2);
}

HostId HistoryFaults::AwaitChange() {
  const Time end = state_.scheduler.now() + kAimMax;
  while (state_.changes_now.empty())
    if (!state_.change_begins.Wait(end)) return 0;
  const auto one =
      std::next(state_.changes_now.begin(),
                static_cast<ptrdiff_t>(state_.scheduler.rng().Below(state_.changes_now.size())));
  const HostId host = *one;
  // Most calls to nodes and the manager take less than a millisecond.
  Rng& rng = state_.scheduler.rng();
  SleepFor(UpTo(rng, rng.Chance(600) ? Microseconds(500) : Milliseconds(10)));
  return host;
}

HistoryFaults::Fault HistoryFaults::Draw() {
  Rng& rng = state_.scheduler.rng();
  const FaultPlan& plan = state_.plan;
  const HostId writer = rng.Chance(plan.aimed_per_mille) ? AwaitChange() : 0;
  std::vector<HostId> machines;  // Without the manager's.
  for (const Host& host : store_.hosts) machines.push_back(host.id);
  for (const auto& [host, node] : store_.nodes)
    if (std::ranges::count(machines, host) == 0) machines.push_back(host);
  Fault fault;
  fault.kind = plan.kinds[rng.Below(plan.kinds.size())];
  fault.length = plan.length_min + UpTo(rng, plan.length_max - plan.length_min);
  fault.mount = &store_.hosts[rng.Below(store_.hosts.size())];
  fault.host = machines[rng.Below(machines.size())];
  if (writer != 0 && rng.Chance(600)) {
    fault.host = writer;
    for (Host& host : store_.hosts)
      if (host.id == writer) fault.mount = &host;
  }
  // Where one thing fails, another one may fail, too.
  const bool goes_on = !places_.empty() && rng.Chance(500);
  if (goes_on) {
    const auto place =
        std::next(places_.begin(), static_cast<ptrdiff_t>(rng.Below(places_.size())));
    const auto failing =
        static_cast<HostId>(place->second >> 32 != 0 ? place->second >> 32 : place->second);
    if (failing != SimulatedManager::kHost) fault.host = failing;
  }
  fault.other = rng.Chance(500) ? SimulatedManager::kHost : machines[rng.Below(machines.size())];
  Part part = Part::kProcessor;
  switch (fault.kind) {
    case FaultKind::kPauseHost:
      break;
    case FaultKind::kCutHost:
    case FaultKind::kSlowHost:
      part = Part::kLink;
      break;
    case FaultKind::kCutPair:
      part = Part::kPair;
      if (fault.other == fault.host) fault.other = SimulatedManager::kHost;
      break;
    case FaultKind::kCutManager:
      part = Part::kLink;
      fault.host = SimulatedManager::kHost;
      break;
    case FaultKind::kKillManager:
    case FaultKind::kPauseManager:
      fault.host = SimulatedManager::kHost;
      break;
    case FaultKind::kKillMount:
      part = Part::kMount;
      fault.host = fault.mount->id;
      break;
    case FaultKind::kKillNode:
    case FaultKind::kWipeNode:
    case FaultKind::kDrainNode:
      part = Part::kNode;
      if (goes_on && store_.nodes.contains(fault.host)) break;
      fault.host =
          std::next(store_.nodes.begin(), static_cast<ptrdiff_t>(rng.Below(store_.nodes.size())))
              ->first;
      break;
  }
  const bool is_short = fault.kind == FaultKind::kKillMount || fault.kind == FaultKind::kWipeNode;
  fault.down = Duration{fault.length.ns / (rng.Chance(200) ? 1 : is_short ? 8 : 4)};
  fault.place = {part, part == Part::kPair ? uint64_t{fault.host} << 32 | fault.other : fault.host};
  return fault;
}

void HistoryFaults::Inject(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kPauseHost:
    case FaultKind::kPauseManager: {
      Note(fmt::format("h{} is paused for {} ms", fault.host, fault.length.ns / 1'000'000));
      const HistoryState::Absence absence(state_, fault.host);
      state_.scheduler.Pause(fault.host);
      SleepFor(fault.length);
      state_.paused[fault.host] = state_.paused[fault.host] + fault.length;
      state_.scheduler.Resume(fault.host);
      return;
    }
    case FaultKind::kCutHost:
    case FaultKind::kCutManager:
    case FaultKind::kCutPair:
    case FaultKind::kSlowHost:
      return InjectInNetwork(fault);
    default:
      return InjectInProcess(fault);
  }
}

void HistoryFaults::InjectInNetwork(const Fault& fault) {
  Network& network = state_.network;
  const int64_t length_ms = fault.length.ns / 1'000'000;
  if (fault.kind == FaultKind::kSlowHost) {
    const Duration longer = UpTo(state_.scheduler.rng(), state_.plan.slow_max) + Milliseconds(1);
    Note(fmt::format("the link of h{} is slow by {} ms for {} ms", fault.host,
                     longer.ns / 1'000'000, length_ms));
    network.Slow(fault.host, longer);
    ++state_.slow_now;
    SleepFor(fault.length);
    --state_.slow_now;
    state_.slow_ended = state_.scheduler.now();
    return network.EndSlow(fault.host);
  }
  if (fault.kind == FaultKind::kCutPair) {
    Note(fmt::format("there is no link between h{} and h{} for {} ms", fault.host, fault.other,
                     length_ms));
    const HistoryState::Absence absence(
        state_, fault.other == SimulatedManager::kHost ? fault.host : HostId{0});
    network.CutBetween(fault.host, fault.other);
    SleepFor(fault.length);
    return network.MendBetween(fault.host, fault.other);
  }
  Note(fmt::format("the link of h{} is down for {} ms", fault.host, length_ms));
  const HistoryState::Absence absence(state_, fault.host);
  network.Cut(fault.host);
  SleepFor(fault.length);
  network.Mend(fault.host);
}

void HistoryFaults::InjectInProcess(const Fault& fault) {
  const int64_t down_ms = fault.down.ns / 1'000'000;
  switch (fault.kind) {
    case FaultKind::kKillManager:
      Note(fmt::format("the manager is down for {} ms", down_ms));
      store_.manager.Kill();
      SleepFor(fault.down);
      return store_.manager.Start();
    case FaultKind::kKillMount:
      Note(fmt::format("the mount of h{} is killed, for {} ms", fault.host, down_ms));
      store_.kill_mount(*fault.mount);
      SleepFor(fault.down);
      return store_.mount_again(*fault.mount);
    case FaultKind::kDrainNode:
      return DrainAndReplace(fault);
    case FaultKind::kKillNode:
      Note(fmt::format("the node of h{} is killed, for {} ms", fault.host, down_ms));
      store_.nodes.at(fault.host)->Stop();
      SleepFor(fault.down);
      return store_.nodes.at(fault.host)->Begin();
    default:
      Note(fmt::format("the node of h{} loses everything, and is down for {} ms", fault.host,
                       down_ms));
      state_.NoteWipe();
      store_.nodes.at(fault.host)->Wipe();
      SleepFor(fault.down);
      store_.nodes.at(fault.host)->Begin();
  }
}

// No file may need what the node had once it is drained.
void HistoryFaults::DrainAndReplace(const Fault& fault) {
  SimulatedNode& node = *store_.nodes.at(fault.host);
  if (!store_.manager.Drain(node.name(), true)) return;
  Note(fmt::format("the node of h{} is drained", fault.host));
  const Time end = state_.scheduler.now() + kDrainMax;
  while (state_.scheduler.now() < end && store_.manager.FilesLeft(node.name()) != 0U)
    SleepFor(Milliseconds(100));
  if (store_.manager.FilesLeft(node.name()) == 0U) {
    Note(fmt::format("the node of h{} is drained, and replaced by an empty one", fault.host));
    // Without it there were not as many copies as are wanted.
    if (state_.store.replicas >= store_.nodes.size()) state_.NoteWipe();
    node.Wipe();
    SleepFor(fault.down);
    node.Begin();
  }
  while (!store_.manager.Drain(node.name(), false)) SleepFor(Milliseconds(100));
}

}  // namespace mosa::simulation
