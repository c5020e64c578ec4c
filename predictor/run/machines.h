// Machines: the hosts of a simulated cluster: their cores, which all processes on a host share, and
// their links (Provisioning, section 2.3).
//
// Each direction of a link is shared by all transfers in progress in it, packet by packet; each
// transfer is a connection of its own. Shares are equal except for the platform's unevenness:
// connections that meet in a queue get very different shares, for seconds. (That paper queues whole
// chunks instead. A sender of one chunk at a time then gets as much as one of eight at once, unlike
// real connections.) A transfer uses the sender's link and the receiver's at the same time, and has
// arrived when its last byte has passed both. An idle direction carries a burst at once, like the
// token bucket of a shaped link.
//
// Small messages wait at most for the packet queues. At the sender, each stream keeps a little of
// itself in the queue. At the receiver, streams of several hosts meet and fill the whole buffer.
#ifndef MOSA_PREDICTOR_RUN_MACHINES_H_
#define MOSA_PREDICTOR_RUN_MACHINES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "predictor/des/activity.h"
#include "predictor/des/event_loop.h"
#include "predictor/des/fifo_server.h"
#include "predictor/des/shared_server.h"
#include "predictor/des/waiting.h"
#include "predictor/model/configuration.h"
#include "predictor/model/energy.h"
#include "predictor/model/platform.h"
#include "predictor/model/slowdown.h"
#include "predictor/run/simulated_residence.h"

namespace mosa::predict {

// An arbitrary start time; the manager's leases count from it.
inline constexpr Time kSimulationBegin{1'700'000'000'000'000'000};
// Bytes of a request for a piece to a node on the wire, with headers.
inline constexpr uint64_t kNodeRequestBytes = 148;

struct LinkBytes {
  uint64_t sent = 0;      // To other hosts, payload of bulk data.
  uint64_t received = 0;  // From other hosts.
  uint64_t inside = 0;    // Between processes of this host, through sockets.
  // All else: messages, heartbeats, headers and packet acknowledgements.
  uint64_t control_sent = 0;
  uint64_t control_received = 0;
  // As network interfaces count.
  uint64_t sent_in_all() const { return sent + control_sent; }
  uint64_t received_in_all() const { return received + control_received; }
  bool operator==(const LinkBytes&) const = default;
};

// On whose behalf a host's cores work: a task's own computing is the application's, as is starting
// it.
enum class WorkOf : uint8_t { kStore, kApplication, kTask };

class Machines {
 public:
  // `loop` and `platform` must outlive this.
  Machines(des::EventLoop& loop, const Platform& platform, const Configuration& configuration,
           const Slowdown& slower = {});

  uint32_t count() const { return static_cast<uint32_t>(machines_.size()); }
  MachineIndex manager() const { return manager_; }
  // The host of storage node `index` (from 0).
  MachineIndex node(uint32_t index) const { return MachineIndex{first_node_ + index}; }
  uint32_t node_count() const { return node_count_; }

  // `co_await machines.Work(host, cost.Of(bytes))`: one thread's work on the host's cores. `work`
  // is its duration on the measured platform.
  auto Work(MachineIndex on, Duration work, WorkOf whose = WorkOf::kStore) {
    Machine& machine = *machines_[on.value];
    const bool is_held_back = machine.slow_tasks != nullptr && whose == WorkOf::kTask;
    const Duration needed = Account(machine, work, whose);
    if (!is_held_back) return machine.cpu->Work(needed);
    return machine.slow_tasks->Work(
        AtMostService(static_cast<double>(needed.ns) * machine.slower.tasks));
  }
  // `co_await`: goes on after `wait`; at once, without an event, if there is none.
  struct Later {
    des::EventLoop& loop;
    Duration wait;
    bool await_ready() const { return wait.ns <= 0; }
    void await_suspend(std::coroutine_handle<> waiter) const {
      loop.ResumeAt(loop.now() + wait, waiter);
    }
    void await_resume() const {}
  };
  // `co_await`: what a slowdown adds before a storage node or a mount serves a request, and to
  // reading or writing so many bytes of objects. Without one, these go on at once.
  Later NodeWait(MachineIndex on) {
    const HostSlowdown& slower = machines_[on.value]->slower;
    return {loop_, slower.node_wait + PauseLeft(slower.node_pause)};
  }
  Later MountWait(MachineIndex on) {
    const HostSlowdown& slower = machines_[on.value]->slower;
    return {loop_, slower.mount_wait + PauseLeft(slower.mount_pause)};
  }
  Later Objects(MachineIndex on, uint64_t bytes) {
    Machine& machine = *machines_[on.value];
    const double ns_per_byte = machine.slower.object_ns_per_byte;
    if (ns_per_byte <= 0) return {loop_, {}};
    const Time end =
        machine.objects.Enter(AtMostService(static_cast<double>(bytes) * ns_per_byte)).end;
    return {loop_, end - loop_.now()};
  }
  // Likewise for the manager: before it takes a request, to a decision, and to a batch of its log.
  Later ManagerWait() { return {loop_, slower_.manager_wait + PauseLeft(slower_.manager_pause)}; }
  Later ManagerWork() { return {loop_, slower_.manager_work}; }
  Later ManagerLog() { return {loop_, slower_.manager_log}; }
  // Moves bulk data between processes; ends when the last byte has arrived. The cores of both ends
  // work on the same bytes meanwhile, for `sending` and `receiving`: a socket is filled and drained
  // while it carries data, so the slowest of the three determines the time.
  des::Activity<void> Transfer(MachineIndex from, MachineIndex to, uint64_t bytes,
                               Duration sending = {}, Duration receiving = {});
  // How long `work` would take there under the present load.
  Duration Stretched(MachineIndex on, Duration work) const {
    const Machine& machine = *machines_[on.value];
    return AtMostService(static_cast<double>(work.ns) * machine.cpu->Stretch() /
                         machine.host.speed);
  }
  // Accounts for a small message that leaves now, and returns how long it takes. `bytes` include
  // headers.
  Duration SendMessage(MachineIndex from, MachineIndex to, uint64_t bytes);
  // How long such a message would take.
  Duration MessageDelay(MachineIndex from, MachineIndex to, uint64_t bytes) const;

  // The host's figures.
  const HostPlatform& host(MachineIndex of) const { return machines_[of.value]->host; }
  // Traffic until now. Transfers in progress count in part. Periodic heartbeats are included,
  // though the simulation skips those that carry no news.
  LinkBytes link(MachineIndex of) const;
  // Residence times of the daemons on these hosts.
  SimulatedResidence& residence() { return residence_; }
  // How long each part of a host was busy until now. Work of cores counts when it begins.
  HostUse UseOf(MachineIndex of) const;

 private:
  struct Machine {
    Machine(des::EventLoop& loop, const HostPlatform& h, uint64_t burst_bytes,
            des::SharedServer* cores, const HostSlowdown& s);
    const HostPlatform host;
    const HostSlowdown slower;
    des::SharedServer* cpu;
    std::unique_ptr<des::SharedServer> slow_tasks;  // Only if they are slower than all else.
    des::SharedServer out, in;
    des::FifoServer inside;
    des::FifoServer objects;                            // Only if they are slower.
    uint64_t sent = 0, received = 0, inside_bytes = 0;  // Includes transfers in progress.
    uint64_t control_sent = 0, control_received = 0;
    MachineIndex sender;   // The last host that began to send to it.
    uint32_t daemons = 0;  // Nodes and mounts, each of which sends heartbeats.
    // Senders other than `sender` use the link, or did since it was last idle.
    bool in_cast = false;
    Duration store, application;
  };

  // One way, between two hosts.
  Duration Latency(const Machine& from, const Machine& to) const {
    return Nanoseconds(static_cast<int64_t>(platform_.network.latency_ns)) + from.slower.latency +
           to.slower.latency;
  }
  // Until the end of a pause that is under way; 0: none is.
  Duration PauseLeft(double share) const {
    if (share <= 0) return {};
    const int64_t paused = static_cast<int64_t>(share * static_cast<double>(kPausePeriod.ns));
    const int64_t since = (loop_.now() - begun_).ns % kPausePeriod.ns;
    return Nanoseconds(std::max<int64_t>(0, paused - since));
  }
  static Duration AtMostService(double ns) {
    return Nanoseconds(static_cast<int64_t>(std::min(ns, static_cast<double>(kServiceMax.ns))));
  }
  // Adds `work` to the account and returns how long it takes there.
  static Duration Account(Machine& machine, Duration work, WorkOf whose) {
    if (machine.host.speed != 1)
      work = AtMostService(static_cast<double>(work.ns) / machine.host.speed);
    Duration& account = whose == WorkOf::kStore ? machine.store : machine.application;
    account = account + work;
    return work;
  }

  // Weights of streams by sender and receiver: log-normal, drawn once and then looked up.
  class Weights {
   public:
    explicit Weights(double unevenness);
    int64_t Of(uint64_t way) const { return weights_[way % weights_.size()]; }

   private:
    std::array<int64_t, 1024> weights_;
  };

  des::EventLoop& loop_;
  const Platform& platform_;
  const Time begun_;
  const uint64_t seed_;
  const Slowdown slower_;
  const Weights out_weights_, in_weights_;
  uint32_t first_node_ = 0;
  uint32_t node_count_ = 0;
  uint32_t daemons_ = 0;  // On all hosts.
  MachineIndex manager_;
  std::vector<std::unique_ptr<des::SharedServer>> cores_;
  std::vector<std::unique_ptr<des::SharedServer>> quotas_;
  std::vector<std::unique_ptr<Machine>> machines_;
  SimulatedResidence residence_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_MACHINES_H_
