// Blame: which part of the deployment best explains how tasks deviate from their prediction, by
// arithmetic.
//
// A part that is slower than it should be delays each task in proportion to the task's use of the
// part. So each *suspect* states how much each task used it (a time, bytes or a count), and one
// factor per suspect is fitted to the deviations of tasks in seconds: least squares through zero. A
// suspect explains the share of the sum of squares that its fit removes: the squared cosine between
// usage and deviation. Suspects that the tasks used in the same proportion cannot be told apart,
// and the result says so.
#ifndef MOSA_PREDICTOR_COMPARE_BLAME_H_
#define MOSA_PREDICTOR_COMPARE_BLAME_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "predictor/compare/seen_run.h"

namespace mosa::predict {

enum class Part : uint8_t {
  kHost,       // A task's predicted time on this host.
  kProcessor,  // A task's computing on this host.
  kLink,       // Bytes that cross this host's link.
  kNode,       // Bytes on this host's storage node, whoever moves them.
  kPageCache,  // Bytes read again on this host (read_again.h); task times alone never show it.
  kComputing,  // A task's computing on any host.
  kNetwork,    // Bytes that cross any link.
  kMounts,     // All bytes of a task.
  kManager,    // A task's files: each is looked up, opened or created, and closed.
  kLaunch,     // One per task: its launch.
  kMount,      // This host's mount; task times alone never show it.
  kPlaces,     // Where files lie, and in which chunks.
};
const char* ToText(Part part);

struct Suspect {
  Part part = Part::kHost;
  std::string host;  // Set for the first five and for kMount.
  auto operator<=>(const Suspect&) const = default;
};

struct Blame {
  Suspect suspect;
  double explained = 0;  // From 0 to 1.
  double factor = 0;     // Additional seconds per second, byte, file or task.
  // Set if tasks alone can hardly distinguish suspects but requests can: the share that this
  // suspect explains of the requests' excess time. These suspects are ranked by both shares.
  std::optional<double> of_requests;
  // Evidence from the part's own time or bytes (own_times.h, read_again.h), in words. It puts the
  // suspect first, whatever the tasks alone suggest. Empty if there is none.
  std::string evidence;
  double weight() const { return of_requests ? (explained + *of_requests) / 2 : explained; }
};

// A part that explains less is not reported as the explanation.
inline constexpr double kExplainedMin = 0.5;

struct BlameQuestion {
  std::vector<size_t> runs;  // Indexes into the given runs.
  std::string stage;         // The stage whose tasks count; empty: all.
  // Compares tasks with those of the same stage on hosts other than this one, and skips stages that
  // ran on this host only. Empty: compares tasks with their prediction.
  std::string beside_host;
  std::optional<bool> slower;  // The direction to explain; none: that of all tasks together.
  auto operator<=>(const BlameQuestion&) const = default;
};

// Returns every suspect that explains something in that direction, best first; ties in the order of
// Part. Tasks that did not run do not count.
std::vector<Blame> BlameFor(const Workflow& workflow, const std::vector<SeenRun>& runs,
                            const std::vector<double>& typical_s,
                            const std::vector<Duration>& computing, const BlameQuestion& question);

// Times of the question's tasks on one host.
struct TaskTimes {
  double moving_s = 0;  // As predicted, without computing.
  double more_s = 0;    // Excess over the prediction, of the tasks that took longer.
};
std::map<std::string, TaskTimes> TaskTimesByHost(const Workflow& workflow,
                                                 const std::vector<SeenRun>& runs,
                                                 const std::vector<double>& typical_s,
                                                 const std::vector<Duration>& computing,
                                                 const BlameQuestion& question);

// Ranks the suspects that explain nearly as much as the best by the evidence of requests as well.
// All others stay behind them, whatever requests say, because requests may be slow for another
// reason than tasks. With striped files, every task moves bytes from and to all nodes alike, so
// only requests tell which node is slow. Requests do not wait for parts that they do not use.
// Nothing changes if requests point to none of these suspects.
void BreakTies(const std::map<Suspect, double>& of_requests, std::vector<Blame>& blamed);

// Puts a suspect first on the evidence of its own time or bytes.
void PutFirst(const Suspect& suspect, const std::string& evidence, std::vector<Blame>& blamed);

// Puts the links and storage nodes of these hosts behind all other suspects.
void PutLast(const std::set<std::string>& hosts, std::vector<Blame>& blamed);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BLAME_H_
