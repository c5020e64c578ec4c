// Own times: a part of the deployment whose own time, as daemons measured it, is longer than it
// should be. Asked before it is asked how tasks used the parts: a part that is slow by its own
// clock, and enough so for what tasks took longer, needs no arithmetic.
//
//  own work  what a storage node takes to write or read an object, and what the manager takes to
//            decide and to log, waits for no other part: if those requests are anomalies, and
//            mounts have waited for that part, it is that part.
//  connections  mounts connect to one host's storage node more often in each run than they keep
//            connections, and hardly to others, and have waited for it: connections break or are
//            refused there, by that node or on its link.
//  lost packets  TCP had to send again in many more of the requests that a host's mount asked of
//            others, or theirs of its node, than between others, in each run, and mounts have
//            waited for those: its link, or, if the node's own work takes longer than others', all
//            that runs there. Where streams meet some packets are lost in sound runs, too: it says
//            who made something slow, not that it was made slow.
//  one host  what mounts ask of one host's storage node takes longer than the same between others,
//            in the same runs: it is that node. If what the host's mount asks of others does as
//            well, it is what both ways share: its link, or, if the node's own work takes longer
//            than others' too, all that runs there. A host that asks nothing, as no mount is on it
//            or no task ran there, does not tell: it is its node or its link.
//
// For a link it also says which side is slow, if one is: what arrives there from others, as where
// their streams meet (in-cast), or what leaves.
//
// A host or a processor that explains half of what tasks took longer stands before its node's own
// work, which is by the clock, unless that is far longer than all that it does; and before its
// link, if that is not told from all that runs there.
//
// Which host is last is chance in one request; hence the logarithms of the means of all pairs of
// hosts, less what is predicted of each, are tested: those with the host against those without
// (Welch 1947), what is asked of it, and that with what it asks; at 1 %, for two tests of each
// host. Pairs, classes and runs are taken to know nothing of each other. Pure.
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
  std::optional<Suspect> or_else;  // It or that one: what would tell was not measured.
  std::string evidence;  // A sentence: what took how long, and how long elsewhere or as predicted.
  // How likely it is by chance, for all hosts that were tested, if it is by one host beside others
  // in the same runs; none: it is by what is predicted, or by numbers that no sound host has.
  std::optional<double> beside_p;
  bool is_told = true;            // From what else is on that host.
  double times = 0;               // Own work: as long as predicted.
  bool is_beside_others = false;  // By how hosts differ in these runs, whatever is predicted.
};

// Requests of these runs.
struct AskedRequests {
  const std::vector<RequestCell>& cells;
  const std::vector<SeenRun>& runs;
  const std::vector<size_t>& asked_runs;
};

// The part whose own time explains what these tasks took longer, if there is one: a quarter of it
// in all, and on those hosts whose mounts waited. `blamed` is what tasks tell alone, best first.
std::optional<OwnTime> FindOwnTime(const AskedRequests& requests,
                                   const std::map<std::string, TaskTimes>& tasks,
                                   const std::vector<Blame>& blamed);

// Whether what tasks blame explains them better: a link makes no computing slow, and a processor
// makes all slow that runs there.
bool IsOutweighed(const OwnTime& own, const std::vector<Blame>& blamed);

// Hosts of which mounts' requests, either way, surely took no longer than between others: neither
// their links nor their storage nodes are slow.
std::set<std::string> HostsAsOthers(const AskedRequests& requests);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_OWN_TIMES_H_
