// The network of a simulated store. Hosts have one link each. A message takes a random time; one on
// a link that is down arrives when the link has returned, as TCP repeats it: late, but not lost.
#ifndef MOSA_TESTS_SIMULATION_NETWORK_H_
#define MOSA_TESTS_SIMULATION_NETWORK_H_

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/simulation/virtual_threads.h"

namespace mosa::simulation {

class Network {
 public:
  // `traces`: what is noted is printed.
  explicit Network(bool traces) : traces_(traces) {}

  bool traces() const { return traces_; }
  void Note(const std::string& what) const {
    if (traces_)
      std::printf("%9.3f %s\n", static_cast<double>(Scheduler::Current()->now().ns) / 1e6,
                  what.c_str());
  }

  // Blocks the calling thread for as long as a message from one host to another takes.
  void Travel(HostId from, HostId to) { Travel(from, to, Scheduler::Current()->now()); }
  // The same for a message that was sent earlier, behind others for which the thread has waited.
  void Travel(HostId from, HostId to, Time sent) {
    const Time arrives = sent + TimeOf(from, to);
    const Time now = Scheduler::Current()->now();
    if (arrives > now) SleepFor(arrives - now);
    while (from != to && IsDown(from, to)) {
      returned_.Wait(kNever);
      SleepFor(Milliseconds(static_cast<int64_t>(Scheduler::Current()->rng().Below(1'500))));
    }
  }

  void Cut(HostId host) { down_.insert(host); }
  void Mend(HostId host) {
    down_.erase(host);
    returned_.WakeAll();
  }
  // Only what the two send to each other waits.
  void CutBetween(HostId a, HostId b) { down_between_.insert(std::minmax(a, b)); }
  void MendBetween(HostId a, HostId b) {
    down_between_.erase(std::minmax(a, b));
    returned_.WakeAll();
  }
  // From now on each message on the host's link takes at most so much longer.
  void Slow(HostId host, Duration longer) { slow_[host] = longer; }
  void EndSlow(HostId host) { slow_.erase(host); }

 private:
  Duration TimeOf(HostId from, HostId to) const {
    Rng& rng = Scheduler::Current()->rng();
    Duration time =
        Microseconds(static_cast<int64_t>(20 + rng.Below(rng.Chance(50) ? 20'000 : 300)));
    if (from == to) return time;
    for (const HostId host : {from, to})
      if (const auto slow = slow_.find(host); slow != slow_.end())
        time = time +
               Duration{static_cast<int64_t>(rng.Below(static_cast<uint64_t>(slow->second.ns)))};
    return time;
  }
  bool IsDown(HostId from, HostId to) const {
    return down_.contains(from) || down_.contains(to) ||
           down_between_.contains(std::minmax(from, to));
  }

  const bool traces_;
  std::set<HostId> down_;
  std::set<std::pair<HostId, HostId>> down_between_;
  std::map<HostId, Duration> slow_;
  WaitList returned_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_NETWORK_H_
