// Machines: the hosts of a simulated cluster: their cores, which all processes on a host share, and
// their links (Provisioning, section 2.3).
//
// Each direction of a link is shared by all transfers that are under way in it, each of which is a
// connection of its own: packet by packet, and equally but for what the platform says of
// unevenness: connections that meet in a queue get shares that differ by far, and for seconds.
// (That paper has queues of whole chunks instead; then a sender of one chunk at a time gets as much
// as one of eight at once, which connections do not give.) A transfer takes its share of
// the sender's link and of the receiver's at the same time, and is there when the last byte has
// passed both; a direction that was idle carries a burst at once, as the token buckets of shaped
// links do. Small messages wait only as long as packet queues are at most: at their sender, where
// each stream keeps a little of itself in the queue, and at a receiver, where streams of several
// hosts meet and fill what there is.
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
#include "predictor/run/simulated_residence.h"

namespace mosa::predict {

// Any time will do; the manager's leases count from it.
inline constexpr Time kSimulationBegin{1'700'000'000'000'000'000};
// What asks a node for a piece takes on the wire, with headers.
inline constexpr uint64_t kNodeRequestBytes = 148;

struct LinkBytes {
  uint64_t sent = 0;              // To other hosts, payload of bulk data.
  uint64_t received = 0;          // From other hosts.
  uint64_t inside = 0;            // Between processes of this host, by socket.
  uint64_t control_sent = 0;      // All else: messages, signs of life, headers, and what
  uint64_t control_received = 0;  // acknowledges packets.
  // As interfaces count.
  uint64_t sent_in_all() const { return sent + control_sent; }
  uint64_t received_in_all() const { return received + control_received; }
  bool operator==(const LinkBytes&) const = default;
};

// Whose work a host's cores do: for the account of energy, they do it alike.
enum class WorkOf : uint8_t { kStore, kApplication };

class Machines {
 public:
  // `loop` and `platform` outlive this.
  Machines(des::EventLoop& loop, const Platform& platform, const Configuration& configuration);

  uint32_t count() const { return static_cast<uint32_t>(machines_.size()); }
  MachineIndex manager() const { return manager_; }
  // Where storage node `index` (from 0) is.
  MachineIndex node(uint32_t index) const { return MachineIndex{first_node_ + index}; }
  uint32_t node_count() const { return node_count_; }

  // `co_await machines.Work(host, cost.Of(bytes))`: one thread's work on the host's cores; as long
  // as it takes where the platform was measured.
  auto Work(MachineIndex on, Duration work, WorkOf whose = WorkOf::kStore) {
    Machine& machine = *machines_[on.value];
    return machine.cpu->Work(Account(machine, work, whose));
  }
  // Bulk data from one process to another: ends when the last byte has come. Meanwhile the cores of
  // both ends work on the same bytes, `sending` and `receiving`: a socket is filled and emptied
  // while it carries, so what takes longest is what it takes.
  des::Activity<void> Transfer(MachineIndex from, MachineIndex to, uint64_t bytes,
                               Duration sending = {}, Duration receiving = {});
  // How long `work` would take there if as much went on beside it all the time as does now.
  Duration Stretched(MachineIndex on, Duration work) const {
    const Machine& machine = *machines_[on.value];
    return AtMostService(static_cast<double>(work.ns) * machine.cpu->Stretch() /
                         machine.host.speed);
  }
  // How long a small message that leaves now takes; `bytes` are with its headers.
  Duration SendMessage(MachineIndex from, MachineIndex to, uint64_t bytes);
  // How long it would take.
  Duration MessageDelay(MachineIndex from, MachineIndex to, uint64_t bytes) const;

  // What it is.
  const HostPlatform& host(MachineIndex of) const { return machines_[of.value]->host; }
  // What has passed until now: part of any transfer under way, and signs of life all the
  // time, which the simulation leaves out while they say nothing.
  LinkBytes link(MachineIndex of) const;
  // The residence times of the daemons on them.
  SimulatedResidence& residence() { return residence_; }
  // How long each part of a host was busy until now; work of cores counts when it begins.
  HostUse UseOf(MachineIndex of) const;

 private:
  struct Machine {
    Machine(des::EventLoop& loop, const HostPlatform& h, uint64_t burst_bytes,
            des::SharedServer* cores);
    const HostPlatform host;
    des::SharedServer* cpu;
    des::SharedServer out, in;
    des::FifoServer inside;
    uint64_t sent = 0, received = 0, inside_bytes = 0;  // Or are being.
    uint64_t control_sent = 0, control_received = 0;
    MachineIndex sender;   // The last that began to send to it.
    uint32_t daemons = 0;  // A node, a mount: each says that it is alive.
    bool in_cast = false;  // Not all of what comes is from that one, or was not until lately.
    Duration store, application;
  };

  static Duration AtMostService(double ns) {
    return Nanoseconds(static_cast<int64_t>(std::min(ns, static_cast<double>(kServiceMax.ns))));
  }
  // Counts `work`, and returns how long it takes there.
  static Duration Account(Machine& machine, Duration work, WorkOf whose) {
    if (machine.host.speed != 1)
      work = AtMostService(static_cast<double>(work.ns) / machine.host.speed);
    Duration& account = whose == WorkOf::kStore ? machine.store : machine.application;
    account = account + work;
    return work;
  }

  // Weights of streams, by what names their way: log-normal, drawn once, so a transfer looks it up.
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
  const Weights out_weights_, in_weights_;
  uint32_t first_node_ = 0;
  uint32_t node_count_ = 0;
  uint32_t daemons_ = 0;  // On all.
  MachineIndex manager_;
  std::vector<std::unique_ptr<des::SharedServer>> cores_;
  std::vector<std::unique_ptr<Machine>> machines_;
  SimulatedResidence residence_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_MACHINES_H_
