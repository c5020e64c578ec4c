// The network of a simulated store. Hosts have one link each. A message takes a random time; one on
// a link that is down arrives when the link has returned, as TCP repeats it: late, but not lost.
#ifndef MOSA_TESTS_SIMULATION_NETWORK_H_
#define MOSA_TESTS_SIMULATION_NETWORK_H_

#include <cstdio>
#include <set>
#include <string>

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
  void Travel(HostId from, HostId to) {
    Rng& rng = Scheduler::Current()->rng();
    SleepFor(Microseconds(static_cast<int64_t>(20 + rng.Below(rng.Chance(50) ? 20'000 : 300))));
    while (from != to && (down_.contains(from) || down_.contains(to))) {
      returned_.Wait(kNever);
      SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(1'500))));
    }
  }
  void Cut(HostId host) { down_.insert(host); }
  void Mend(HostId host) {
    down_.erase(host);
    returned_.WakeAll();
  }

 private:
  const bool traces_;
  std::set<HostId> down_;
  WaitList returned_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_NETWORK_H_
