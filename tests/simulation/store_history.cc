#include "tests/simulation/store_history.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/sync.h"
#include "tests/simulation/history_faults.h"
#include "tests/simulation/history_programs.h"
#include "tests/simulation/history_state.h"

namespace mosa::simulation {
namespace {

constexpr HostId kFirstHost = SimulatedManager::kHost + 1;
constexpr Time kHistoryMax{Seconds(3'000).ns};
// Until this long after the last fault copies are made.
constexpr Duration kCopyMax = Seconds(60);

class Run {
 public:
  explicit Run(const HistoryOptions& options) : state_(options), programs_(state_) {}

  History Do() {
    if (!state_.scheduler.Run([this] { Main(); }, kHistoryMax))
      state_.Problem(state_.scheduler.problem());
    state_.history.digest = state_.scheduler.digest();
    state_.history.duration = state_.scheduler.now() - Time{};
    return std::move(state_.history);
  }

 private:
  // ---- the store

  void Main() {
    const HistoryOptions& options = state_.options;
    manager::ManagerOptions manager;
    manager.chunk_bytes = 64 << 10;
    if (options.seed % 4 != 0) manager.turns_to_share = 1;
    manager_ = std::make_unique<SimulatedManager>(manager);
    for (uint32_t i = 0; i < options.mounts; ++i) {
      const HostId host = kFirstHost + i;
      const HostId of_node = state_.store.apart ? host + options.mounts : host;
      nodes_[of_node] = std::make_unique<SimulatedNode>(state_.network, *manager_, nodes_, of_node,
                                                        state_.store.node_bytes);
      hosts_.push_back({.id = host, .number = i, .mount = nullptr});
    }
    SleepFor(Seconds(1));  // They register.
    for (Host& host : hosts_)
      On(host.id, [this, &host] {
        Mount(host);
        SetHints(host);
      });
    for (const Host& host : hosts_) On(host.id, [this, &host] { programs_.MakeDirectory(host); });
    const bool is_calm = options.faults && state_.plan.is_calm;
    StartPrograms(is_calm ? 3 * options.operations : options.operations);
    if (options.faults) InjectFaults();
    while (running_ > 0) ended_.Wait(kNever);
    SleepFor(kSettleMax);
    // Now nothing may fail any more for a fault.
    StartPrograms(options.operations / 4);
    while (running_ > 0) ended_.Wait(kNever);
    programs_.CheckAll(hosts_);
    if (state_.store.replicas > 1) CheckCopies();
    End();
  }

  // Unmounts, so that nothing runs any more.
  void End() {
    for (const Host& host : hosts_)
      On(host.id, [&] {
        const ::mosa::Status stopped = host.mount->Stop();
        // It names what a fault has cost.
        if (!stopped.ok() && state_.history.faults == 0)
          state_.Problem(fmt::format("h{} is not unmounted: {}", host.id, MessageOf(stopped)));
      });
    while (killed_ > 0) ended_.Wait(kNever);
    for (const auto& [id, node] : nodes_) node->Stop();
    manager_->Stop();
    SleepFor(kSettleMax);
  }

  // Runs `body` as a thread of a host, and waits for its end.
  void On(HostId host, const std::function<void()>& body) {
    bool done = false;
    WaitList ended;
    state_.scheduler.Start(
        [&] {
          body();
          done = true;
          ended.WakeAll();
        },
        host);
    while (!done) ended.Wait(kNever);
  }

  // In a thread of the host.
  void Mount(Host& host) {
    ++clients_;
    auto mount = std::make_shared<SimulatedMount>(state_.network, *manager_, nodes_, host.id,
                                                  ClientId{clients_});
    const ::mosa::Status started = mount->Start();
    if (!started.ok())
      state_.Problem(fmt::format("h{} does not mount: {}", host.id, MessageOf(started)));
    host.mount = std::move(mount);
  }

  // On all hosts.
  void StartPrograms(uint32_t operations) {
    const HistoryOptions& options = state_.options;
    running_ = options.mounts * options.programs;
    for (const Host& host : hosts_)
      for (uint32_t i = 0; i < options.programs; ++i)
        state_.scheduler.Start([this, &host, operations] { RunProgram(host, operations); },
                               host.id);
  }

  void RunProgram(const Host& host, uint32_t operations) {
    ++programs_begun_;
    Rng rng(state_.options.seed * 1'000 + programs_begun_);
    Kept kept;
    for (uint32_t i = 0; i <= operations; ++i) {
      SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(rng.Chance(300) ? 3'000 : 300))));
      while (host.mount->is_killed()) SleepFor(Milliseconds(50));
      ++state_.history.operations;
      const Host as_it_is = host;  // It may get another mount meanwhile.
      ++as_it_is.mount->users;
      if (i < operations)
        programs_.Step(as_it_is, rng, kept);
      else
        programs_.Leave(as_it_is, kept);
      --as_it_is.mount->users;
    }
    if (--running_ == 0) ended_.WakeAll();
  }

  void SetHints(const Host& host) {
    const Configuration& store = state_.store;
    const auto set = [&](const std::string& name, std::string_view value) {
      const auto done = host.fs().SetXattr(kRootFile, name, value, sai::XattrMode::kAny);
      if (!done.ok())
        state_.Problem(fmt::format("{} cannot be set: {}", name, done.failure().message));
    };
    if (store.replicas == 1) return;
    set("user.mosa.replicas", std::to_string(store.replicas));
    set("user.mosa.replicate", store.eager ? "eager" : "lazy");
    set("user.mosa.ack", store.pessimistic ? "pessimistic" : "optimistic");
  }

  // A process that was killed leaves no descriptor open: it is stopped as soon as nobody uses it.
  void Kill(const Host& host) {
    host.mount->Kill();
    ++killed_;
    const auto stop = [this, mount = host.mount] {
      while (mount->users > 0) SleepFor(Milliseconds(20));
      static_cast<void>(mount->Stop());
      if (--killed_ == 0) ended_.WakeAll();
    };
    state_.scheduler.Start(stop, host.id);
  }

  void InjectFaults() {
    HistoryFaults faults(
        state_, {.manager = *manager_,
                 .nodes = nodes_,
                 .hosts = hosts_,
                 .kill_mount = [this](const Host& host) { Kill(host); },
                 .mount_again = [this](Host& host) { On(host.id, [&] { Mount(host); }); }});
    // A lock may be out of reach for as long as there are faults.
    faults.Run([this] { return running_ <= state_.lock_waits; });
  }

  // ---- the end

  // Once nothing has changed for long, every file has its copies, and one node less loses none.
  void CheckCopies() {
    SleepFor(kCopyMax);
    const uint32_t wanted = state_.store.replicas;
    for (size_t at = 0; at < state_.names.size(); ++at) {
      Name& name = state_.names[at];
      if (!name.certain || !name.exists || state_.MayBeLost(name)) continue;
      const std::optional<uint32_t> copies = manager_->CopiesOf(state_.PathOf(at));
      name.has_copies = copies && *copies >= wanted;
      if (name.has_copies) name.wipes = state_.wipes;
      if (copies && *copies < wanted && !state_.store.may_be_full())
        state_.Problem(fmt::format("{} has {} of {} copies", NameOf(at), *copies, wanted));
    }
    SimulatedNode& node =
        *std::next(nodes_.begin(),
                   static_cast<ptrdiff_t>(state_.scheduler.rng().Below(nodes_.size())))
             ->second;
    Note(fmt::format("at the end, the node of {} loses everything", node.name()));
    ++state_.history.faults;
    state_.NoteWipe();
    node.Wipe();
    SleepFor(kSettleMax);
    programs_.CheckAll(hosts_);
  }

  void Note(const std::string& what) const { state_.network.Note(what); }

  HistoryState state_;
  HistoryPrograms programs_;
  std::unique_ptr<SimulatedManager> manager_;
  SimulatedNodes nodes_;
  std::vector<Host> hosts_;
  uint32_t killed_ = 0;  // Mounts that were killed and have not ended yet.
  WaitList ended_;
  uint32_t running_ = 0;
  uint64_t clients_ = 0;
  uint64_t programs_begun_ = 0;
};

}  // namespace

History RunHistory(const HistoryOptions& options) {
  auto run = std::make_unique<Run>(options);
  History history = run->Do();
  // Threads that have not ended still refer to it.
  if (!history.problems.empty()) static_cast<void>(run.release());
  return history;
}

}  // namespace mosa::simulation
