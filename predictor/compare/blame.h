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
#include <string>
#include <vector>

#include "predictor/compare/seen_run.h"

namespace mosa::predict {

enum class Part : uint8_t {
  kHost,       // All that a task does on this host: its predicted time.
  kProcessor,  // What it computes on this host.
  kLink,       // Bytes that cross this host's link.
  kNode,       // Bytes on this host's storage node, whoever moves them.
  kComputing,  // What it computes, on any host.
  kNetwork,    // Bytes that cross any link.
  kMounts,     // All its bytes.
  kManager,    // Its files: each is looked up, opened or made, and closed.
  kLaunch,     // That it starts at all.
};
const char* ToText(Part part);

struct Suspect {
  Part part = Part::kHost;
  std::string host;  // Of the first four.
  auto operator<=>(const Suspect&) const = default;
};

struct Blame {
  Suspect suspect;
  double explained = 0;  // From 0 to 1.
  double factor = 0;     // Seconds more for each second, byte, file or task.
  // The same share of what requests stayed longer than predicted; nothing: they did not, or that
  // is little beside what tasks are off by.
  std::optional<double> of_requests;
  // By what suspects are ranked: tasks and requests count alike.
  double weight() const { return of_requests ? (explained + *of_requests) / 2 : explained; }
};

struct BlameQuestion {
  std::vector<size_t> runs;  // Of those given.
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

// Ranks them by what requests say of each as well. What requests do not use they do not wait for.
void AddEvidence(const std::map<Suspect, double>& of_requests, std::vector<Blame>& blamed);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BLAME_H_
