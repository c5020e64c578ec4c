#include "predictor/run/machines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/base/rng.h"
#include "predictor/model/cost.h"
#include "predictor/model/draws.h"

namespace mosa::predict {
namespace {

// The figure, limited so that sums do not overflow.
Duration AtMost(uint64_t ns) {
  return std::min(Nanoseconds(static_cast<int64_t>(ns)), kServiceMax);
}

Duration TimeAt(uint64_t bytes_per_second, uint64_t bytes) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  if (bytes <= UINT64_MAX / kNsPerSecond)
    return Nanoseconds(static_cast<int64_t>(bytes * kNsPerSecond / bytes_per_second));
  return Nanoseconds(static_cast<int64_t>(static_cast<Wide>(bytes) * kNsPerSecond /
                                          static_cast<Wide>(bytes_per_second)));
}

uint64_t BytesAt(uint64_t bytes_per_second, Duration time) {
  return static_cast<uint64_t>(static_cast<Wide>(bytes_per_second) * static_cast<Wide>(time.ns) /
                               1'000'000'000);
}

// Measured on the links of four hosts (Ethernet, IPv4, TCP with timestamps, TLS): a bare
// acknowledgement, and the traffic of an idle node or mount with the manager, which is half of both
// together. A busy one needs no extra heartbeats, so this little is counted twice.
constexpr uint64_t kAcknowledgeBytes = 66;
// Bulk data per packet on an interface with segmentation offload: the mean over links of 100 Mbit/s
// (11 to 34 KiB). Each packet has headers and is acknowledged.
constexpr uint64_t kPacketBytes = 24 << 10;
constexpr uint64_t kAliveSentPerSecond = 930 / 2;
constexpr uint64_t kAliveReceivedPerSecond = 800 / 2;

constexpr uint64_t kWeightsSeed = 0x77656967;

uint64_t Slower(uint64_t bytes_per_second, double times) {
  return std::max(kLinkBytesPerSecondMin,
                  static_cast<uint64_t>(static_cast<double>(bytes_per_second) / times));
}

HostPlatform WithSlowdown(HostPlatform host, const HostSlowdown& slower) {
  if (slower.out > 1) host.out_bytes_per_second = Slower(host.out_bytes_per_second, slower.out);
  if (slower.in > 1) host.in_bytes_per_second = Slower(host.in_bytes_per_second, slower.in);
  const double work = std::max(1.0, slower.work) * std::max(1.0, slower.quota);
  if (work > 1) host.speed = std::max(kSpeedMin, host.speed / work);
  if (!slower.keeps_pages) host.page_cache_bytes = 0;
  return host;
}

}  // namespace

Machines::Machine::Machine(des::EventLoop& loop, const HostPlatform& h, uint64_t burst_bytes,
                           des::SharedServer* cores, const HostSlowdown& s)
    : host(h),
      slower(s),
      cpu(cores),
      out(loop, 1, std::min(kServiceMax, TimeAt(h.out_bytes_per_second, burst_bytes))),
      in(loop, 1, std::min(kServiceMax, TimeAt(h.in_bytes_per_second, burst_bytes))),
      inside(loop),
      objects(loop) {}

Machines::Weights::Weights(double unevenness) {
  Rng rng(kWeightsSeed);
  for (int64_t& weight : weights_) {
    const double factor = std::exp(std::min(unevenness, kUnevennessMax) * NormalDraw(rng));
    weight = std::clamp<int64_t>(std::llround(factor * des::SharedServer::kEvenWeight),
                                 des::SharedServer::kEvenWeight / 64,
                                 des::SharedServer::kEvenWeight * 64);
  }
}

Machines::Machines(des::EventLoop& loop, const Platform& platform,
                   const Configuration& configuration, const Slowdown& slower)
    : loop_(loop),
      platform_(platform),
      begun_(loop.now()),
      seed_(configuration.seed),
      slower_(slower),
      out_weights_(platform.network.out_unevenness),
      in_weights_(platform.network.in_unevenness),
      residence_(loop) {
  const bool together = configuration.storage_hosts == 0;
  first_node_ = together ? 0 : configuration.hosts;
  node_count_ = together ? configuration.hosts : configuration.storage_hosts;
  uint32_t count = first_node_ + node_count_;
  manager_ = MachineIndex{configuration.manager_apart ? count++ : 0};
  for (uint32_t i = 0; i < count; ++i) {
    const auto found = slower_.hosts.find(i);
    const HostSlowdown its = found == slower_.hosts.end() ? HostSlowdown() : found->second;
    const HostPlatform host = WithSlowdown(HostOf(platform, configuration, i), its);
    const bool own_cores = platform.shared_cores == 0;
    if (own_cores || i == 0)
      cores_.push_back(std::make_unique<des::SharedServer>(
          loop, own_cores ? host.cores : platform.shared_cores));
    des::SharedServer* cores = cores_[own_cores ? i : 0].get();
    if (its.quota > 1) {
      quotas_.push_back(std::make_unique<des::SharedServer>(loop, own_cores ? host.cores : 1));
      cores = quotas_.back().get();
    }
    machines_.push_back(
        std::make_unique<Machine>(loop, host, platform.network.burst_bytes, cores, its));
    if (its.tasks > 1)
      machines_.back()->slow_tasks =
          std::make_unique<des::SharedServer>(loop, own_cores ? host.cores : 1);
    const bool is_node = i >= first_node_ && i < first_node_ + node_count_;
    machines_.back()->daemons = (i < configuration.hosts ? 1 : 0) + (is_node ? 1 : 0);
    daemons_ += machines_.back()->daemons;
  }
}

des::Activity<void> Machines::Transfer(MachineIndex from, MachineIndex to, uint64_t bytes,
                                       Duration sending, Duration receiving) {
  Machine& source = *machines_[from.value];
  Machine& target = *machines_[to.value];
  des::Join all;
  source.cpu->Begin(Account(source, sending, WorkOf::kStore), all);
  if (from == to) {
    source.inside_bytes += bytes;
    co_await loop_.Sleep(Nanoseconds(static_cast<int64_t>(platform_.network.loopback_latency_ns)));
    target.cpu->Begin(Account(target, receiving, WorkOf::kStore), all);
    co_await source.inside.Serve(platform_.network.loopback.Of(bytes));
    co_await all.All();
    co_return;
  }
  co_await loop_.Sleep(Latency(source, target));
  target.cpu->Begin(Account(target, receiving, WorkOf::kStore), all);
  source.sent += bytes;
  target.received += bytes;
  const uint64_t header_bytes = (bytes + kPacketBytes - 1) / kPacketBytes * kAcknowledgeBytes;
  for (Machine* each : {&source, &target}) {
    each->control_sent += header_bytes;
    each->control_received += header_bytes;
  }
  // A queue that built up where streams met stays until the link is idle: as much arrives as
  // leaves.
  target.in_cast = target.in.jobs() > 0 && (target.in_cast || target.sender != from);
  target.sender = from;
  // An uneven share persists: congestion control takes longer than a run to even it out.
  const uint64_t way = HashCombine(seed_, (uint64_t{from.value} << 32) | to.value);
  target.in.Begin(TimeAt(target.host.in_bytes_per_second, bytes), all, in_weights_.Of(way));
  source.out.Begin(TimeAt(source.host.out_bytes_per_second, bytes), all, out_weights_.Of(~way));
  co_await all.All();
}

LinkBytes Machines::link(MachineIndex of) const {
  const Machine& machine = *machines_[of.value];
  const auto passed = [](uint64_t bytes, const des::SharedServer& way, uint64_t rate) {
    return bytes - std::min(bytes, BytesAt(rate, way.Backlog()));
  };
  // The manager's host exchanges heartbeats with all others.
  const uint64_t daemons = of == manager_ ? daemons_ - machine.daemons : machine.daemons;
  uint64_t alive_sent = BytesAt(kAliveSentPerSecond, loop_.now() - begun_) * daemons;
  uint64_t alive_received = BytesAt(kAliveReceivedPerSecond, loop_.now() - begun_) * daemons;
  if (of == manager_) std::swap(alive_sent, alive_received);
  return {passed(machine.sent, machine.out, machine.host.out_bytes_per_second),
          passed(machine.received, machine.in, machine.host.in_bytes_per_second),
          machine.inside_bytes, machine.control_sent + alive_sent,
          machine.control_received + alive_received};
}

Duration Machines::SendMessage(MachineIndex from, MachineIndex to, uint64_t bytes) {
  if (from != to) {
    Machine& source = *machines_[from.value];
    Machine& target = *machines_[to.value];
    source.control_sent += bytes;
    target.control_received += bytes;
    target.control_sent += kAcknowledgeBytes;
    source.control_received += kAcknowledgeBytes;
  }
  return MessageDelay(from, to, bytes);
}

Duration Machines::MessageDelay(MachineIndex from, MachineIndex to, uint64_t bytes) const {
  const NetworkPlatform& network = platform_.network;
  if (from == to) return Nanoseconds(static_cast<int64_t>(network.loopback_latency_ns));
  const Machine& source = *machines_[from.value];
  const Machine& target = *machines_[to.value];
  const Duration each = AtMost(network.out_queue_ns_max);
  const Duration meeting = AtMost(network.in_queue_ns_max);
  // A queue is limited, however many streams fill it.
  const auto streams = static_cast<int64_t>(std::min<size_t>(source.out.jobs(), 1000));
  const Duration leaving = std::min(Nanoseconds(each.ns * streams), std::max(each, meeting));
  const Duration out = std::min(source.out.Backlog(), leaving);
  const Duration in = target.in_cast ? std::min(target.in.Backlog(), meeting) : Duration();
  return Latency(source, target) + out + in +
         TimeAt(std::min(source.host.out_bytes_per_second, target.host.in_bytes_per_second), bytes);
}

HostUse Machines::UseOf(MachineIndex of) const {
  const Machine& machine = *machines_[of.value];
  return {SecondsOf(machine.application), SecondsOf(machine.store), SecondsOf(machine.out.done()),
          SecondsOf(machine.in.done())};
}

}  // namespace mosa::predict
