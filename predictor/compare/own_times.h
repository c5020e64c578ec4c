// Own times: finds a part of the deployment whose own time, as daemons measured it, is longer than
// it should be. Consulted before the arithmetic on how tasks used the parts (blame.h): a part that
// is slow by its own clock, and slow enough for the tasks' excess time, needs no arithmetic.
//
//   own work: the time in which a storage node writes or reads an object, and in which the manager
//     decides and logs, includes no wait for other parts. If these requests are anomalies and
//     mounts waited for that part, it is that part.
//   connections: mounts connect to one host's storage node more often in each run than they keep
//     connections, but hardly so to others, and waited for it: connections break or are refused
//     there, by that node or on its link.
//   lost packets: TCP retransmitted in many more of the requests to and from one host than between
//     others, in each run, and mounts waited for these requests: it is the host's link or, if its
//     node's own work takes longer than that of others, everything that runs there. Where streams
//     meet, healthy runs lose packets too: this evidence says what caused a slowdown, not that
//     there is one.
//   one host: requests of mounts to one host's storage node take longer than those between others
//     in the same runs: it is that node. If the requests of the host's own mount to others do so
//     too, it is what both directions share: the link or, if the node's own work takes longer than
//     that of others too, everything that runs there. A host that sends no requests, because it has
//     no mount or ran no task, cannot tell: it is its node or its link.
//
// For a link, also says which direction is slow, if only one is: the receiving one, as where
// streams of several hosts meet (in-cast), or the sending one.
//
// A host or a processor that explains half of the tasks' excess time ranks before its node's own
// work, which is wall-clock time, unless that is far slower than everything else on the host; and
// before its link, if the evidence cannot tell the link from the rest of the host.
//
// In a single request it is chance which host is last. So the test is on logarithms of means for
// all pairs of hosts, minus their predictions: pairs with the host against pairs without it (Welch
// 1947), once for requests to it and once for these and its own together, at 1 %, with two tests
// per host. Pairs, classes and runs are assumed to be independent. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_OWN_TIMES_H_
#define MOSA_PREDICTOR_COMPARE_OWN_TIMES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "predictor/compare/blame.h"
#include "predictor/compare/request_cells.h"
#include "predictor/compare/seen_run.h"

namespace mosa::predict {

struct OwnTime {
  Suspect suspect;
  std::optional<Suspect> or_else;  // Either of the two: nothing measured tells them apart.
  std::string evidence;            // A sentence: what took how long, compared with what.
  // How likely it is by chance, over all tested hosts, if the evidence compares hosts in the same
  // runs; none if it compares with the prediction, or has numbers that no healthy host shows.
  std::optional<double> beside_p;
  bool is_told = true;            // Told apart from the rest of its host.
  double times = 0;               // For own work: factor over the prediction.
  bool is_beside_others = false;  // Compares hosts in these runs, whatever was predicted.
};

// The requests of these runs.
struct AskedRequests {
  const std::vector<RequestCell>& cells;
  const std::vector<SeenRun>& runs;
  const std::vector<size_t>& asked_runs;
};

// Finds the part whose own time explains the excess time of these tasks, if there is one: a quarter
// of it in total, and on the hosts whose mounts waited. `blamed` is what tasks alone suggest, best
// first.
std::optional<OwnTime> FindOwnTime(const AskedRequests& requests,
                                   const std::map<std::string, TaskTimes>& tasks,
                                   const std::vector<Blame>& blamed);

// Whether the suspect that tasks blame explains them better: a link slows no computing, whereas a
// processor slows everything that runs on it.
bool IsOutweighed(const OwnTime& own, const std::vector<Blame>& blamed);

// Hosts whose requests, in both directions, certainly took no longer than those between others:
// neither their links nor their storage nodes are slow.
std::set<std::string> HostsAsOthers(const AskedRequests& requests);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_OWN_TIMES_H_
