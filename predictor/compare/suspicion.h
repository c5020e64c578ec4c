// Suspicion: one way in which a deployment may be slower than predicted, in a form that the
// simulator can replay. What a user is told is the part (`PartOf`); one part can be slow in several
// ways, and each leaves other traces.
#ifndef MOSA_PREDICTOR_COMPARE_SUSPICION_H_
#define MOSA_PREDICTOR_COMPARE_SUSPICION_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/compare/seen_run.h"
#include "predictor/compare/suspect.h"
#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

enum class SlowBy : uint8_t {
  // On one host:
  kLink,        // Each byte takes longer on its link, both ways,
  kLinkOut,     // as it leaves,
  kLinkIn,      // as it arrives.
  kWay,         // What travels from and to it arrives later.
  kCores,       // All that its cores do takes longer,
  kTasks,       // or what tasks do there.
  kNodeWait,    // Its storage node answers each request later.
  kObjects,     // Its objects are read and written more slowly.
  kNodePause,   // Its storage node stands still a share of the time.
  kMountWait,   // Its mount answers each request of the kernel later.
  kMountPause,  // Its mount stands still a share of the time.
  kNoPages,     // Its kernel keeps no pages of other hosts' files.
  // Everywhere:
  kManagerWait,   // The manager takes each request later,
  kManagerPause,  // stands still a share of the time,
  kManagerWork,   // holds the others while it decides,
  kManagerLog,    // or while it writes to its database.
  kLinks,         // Each byte takes longer on all links.
  kWays,          // What travels between any two hosts arrives later.
  kComputing,     // Tasks compute longer; with `at`, those of that stage.
  kLaunch,        // Tasks start later.
  kMounts,        // Moving bytes takes the processors longer, in mounts and nodes.
  kPlaces,        // Files lie on other nodes than they would, or in chunks of another size.
};
const char* ToText(SlowBy how);
Part PartOf(SlowBy how);

struct Suspicion {
  SlowBy how = SlowBy::kLink;
  std::string at;   // A host, a stage, or nothing.
  double size = 0;  // 0: not slower. 1: twice the time, or a wait of kWaitUnit.
  auto operator<=>(const Suspicion&) const = default;
};
Suspect SuspectOf(const Suspicion& suspicion);
// Whether there is nothing between "it is" and "it is not".
bool IsWhole(SlowBy how);
inline constexpr Duration kWaitUnit = Milliseconds(10);
// "3.1 times as long", "24 ms later".
std::string SizeInWords(const Suspicion& suspicion);

// Sizes to begin a search with, small ones first.
std::vector<double> FirstSizesOf(SlowBy how);
// All suspicions about a deployment, each with size 1. `hosts` names the hosts that
// run tasks; further ones are called as the prediction calls them, a manager's own host "-".
std::vector<Suspicion> SuspicionsOf(const Workflow& workflow, const Configuration& configuration,
                                    const std::vector<std::string>& hosts);

// What is predicted of one deployment, as it is and as it would be with suspicions. The arguments
// of the constructor must outlive it. Threads may call it at once.
class Counterfactual {
 public:
  Counterfactual(const Workflow& workflow, const Platform& platform,
                 const Configuration& configuration, const std::vector<std::string>& hosts)
      : workflow_(workflow), platform_(platform), configuration_(configuration), hosts_(hosts) {}

  // With `like`, each task runs on the host where it ran in that run, and tasks of a host start in
  // the order in which they did, beside the same work of others on the machines (busy.h), and
  // `as_placed` with files where they lay; else the scheduler decides. `seed` is the cluster's: it
  // decides where files begin. FailedPrecondition: such a run would fail. Otherwise an error of
  // Predict().
  Result<SeenRun> With(const std::vector<Suspicion>& suspicions, uint64_t seed,
                       const SeenRun* like = nullptr, bool as_placed = true) const;

 private:
  const Workflow& workflow_;
  const Platform& platform_;
  const Configuration& configuration_;
  const std::vector<std::string>& hosts_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_SUSPICION_H_
