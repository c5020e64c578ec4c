// Slowdown: parts of a deployment that are slower than its platform says, host by host and
// direction by direction. A platform holds figures of all hosts alike; a slowdown says where a
// simulated cluster departs from them. Plain values; the default changes nothing.
#ifndef MOSA_PREDICTOR_MODEL_SLOWDOWN_H_
#define MOSA_PREDICTOR_MODEL_SLOWDOWN_H_

#include <cstdint>
#include <map>

#include "common/base/time.h"

namespace mosa::predict {

// What stands still a share of the time does so once in this time, from its beginning.
inline constexpr Duration kPausePeriod = Milliseconds(500);

struct HostSlowdown {
  // Times as long as the platform says, at least 1: for each byte that leaves, for each that
  // arrives, and for all that the host's cores do.
  double out = 1, in = 1, work = 1;
  // Above 1: as by a quota, all that the host does has cores of its own, which take so many times
  // as long; one core if hosts share theirs.
  double quota = 1;
  // Likewise for its tasks alone: a kernel that has too little time for all gives it to daemons,
  // which sleep most of the time, before it gives it to tasks that compute.
  double tasks = 1;
  Duration latency;     // Added to what travels from or to other hosts, one way.
  Duration node_wait;   // Before the storage node serves a request,
  Duration mount_wait;  // and before the mount serves one of the kernel.
  // The share of the time in which they stand still, as a process that is stopped again and again.
  double node_pause = 0, mount_pause = 0;
  // Added for each byte of objects that is read or written there, one access after the other.
  double object_ns_per_byte = 0;
  bool keeps_pages = true;  // Whether the kernel keeps pages of files of other hosts.
};

struct Slowdown {
  std::map<uint32_t, HostSlowdown> hosts;  // By number, as Configuration::unequal_hosts.
  Duration manager_wait;     // Before the manager looks at a request; several wait at once.
  Duration manager_work;     // Added to each of its decisions, one after the other,
  Duration manager_log;      // and to each batch of changes to its database.
  double manager_pause = 0;  // The share of the time in which it stands still.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_SLOWDOWN_H_
