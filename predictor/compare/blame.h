// Blame: which part of the deployment explains best what tasks are off by, by arithmetic.
//
// A part that is slower than it should be makes each task slower by as much as the task uses it. So
// each *suspect* says of each task how much it used it (a time, bytes, a count), and is fitted to
// the seconds that tasks are off by with one factor, least squares through zero. What it explains
// is the share of the squares that it takes away: the squared cosine between the two. Suspects that
// the tasks used in the same proportion cannot be told apart, and are said to be so.
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
  kHost,       // All that a task does on this host: its predicted time.
  kProcessor,  // What it computes on this host.
  kLink,       // Bytes that cross this host's link.
  kNode,       // Bytes on this host's storage node, whoever moves them.
  kPageCache,  // Bytes that were read on this host before (read_again.h); tasks alone never tell.
  kComputing,  // What it computes, on any host.
  kNetwork,    // Bytes that cross any link.
  kMounts,     // All its bytes.
  kManager,    // Its files: each is looked up, opened or made, and closed.
  kLaunch,     // That it starts at all.
};
const char* ToText(Part part);

struct Suspect {
  Part part = Part::kHost;
  std::string host;  // Set for the first five.
  auto operator<=>(const Suspect&) const = default;
};

struct Blame {
  Suspect suspect;
  double explained = 0;  // From 0 to 1.
  double factor = 0;     // Seconds more for each second, byte, file or task.
  // Set if tasks alone can hardly tell suspects apart but requests can: the share explained of what
  // requests stayed longer than predicted. These suspects are ranked by both.
  std::optional<double> of_requests;
  // Its own time or bytes say so (own_times.h, read_again.h), in these words: then it comes first,
  // whatever tasks alone tell. Empty: they do not.
  std::string evidence;
  double weight() const { return of_requests ? (explained + *of_requests) / 2 : explained; }
};

// A part that explains less is not said to explain it.
inline constexpr double kExplainedMin = 0.5;

struct BlameQuestion {
  std::vector<size_t> runs;  // Indexes of the given runs.
  std::string stage;         // Whose tasks count; empty: all.
  // Tasks are off from what the same stage's take on other hosts than this, not from what is
  // predicted; empty: from that. Stages that were on this host only do not count, then.
  std::string beside_host;
  std::optional<bool> slower;  // What is to be explained; none: what tasks are in all.
  auto operator<=>(const BlameQuestion&) const = default;
};

// Every suspect that explains something in that direction, best first; equals in the order above.
// Tasks that did not run do not count.
std::vector<Blame> BlameFor(const Workflow& workflow, const std::vector<SeenRun>& runs,
                            const std::vector<double>& typical_s,
                            const std::vector<Duration>& computing, const BlameQuestion& question);

// What the question's tasks took on a host.
struct TaskTimes {
  double moving_s = 0;  // As predicted, without what they compute.
  double more_s = 0;    // Beyond what is predicted: of those tasks that took longer.
};
std::map<std::string, TaskTimes> TaskTimesByHost(const Workflow& workflow,
                                                 const std::vector<SeenRun>& runs,
                                                 const std::vector<double>& typical_s,
                                                 const std::vector<Duration>& computing,
                                                 const BlameQuestion& question);

// Ranks those that explain nearly as much as the best by what requests say of each as well; the
// others stay behind them, whatever requests say: these may be slow by another thing than tasks
// are. With striped files every task moves bytes from and to all nodes alike, and only requests
// tell which of them is slow. What requests do not use they do not wait for. Nothing changes if
// requests point to none of these.
void BreakTies(const std::map<Suspect, double>& of_requests, std::vector<Blame>& blamed);

// Puts a suspect first whose own time or bytes say so.
void PutFirst(const Suspect& suspect, const std::string& evidence, std::vector<Blame>& blamed);

// Puts links and storage nodes of these hosts behind all others that are suspects.
void PutLast(const std::set<std::string>& hosts, std::vector<Blame>& blamed);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BLAME_H_
