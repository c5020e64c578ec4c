// What a cluster did between two answers of its daemons, by host and by class of request. Pure.
#ifndef MOSA_TOOLS_OBSERVE_TOP_VIEW_H_
#define MOSA_TOOLS_OBSERVE_TOP_VIEW_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/duration_counts.h"
#include "tools/console/residence.h"

namespace mosa::cli {

// Bytes per second by the way that they took, as mounts count them. What the kernel reads of its
// pages and of passthrough files they do not see.
struct PathRates {
  double kernel = 0;  // Written by passthrough: known when the file is closed.
  double own_node = 0;
  double network = 0;
  double with_name = 0;  // Small files, which the manager keeps.
  double sum() const { return kernel + own_node + network + with_name; }
};

// Per second, but for the room.
struct TopHost {
  std::string name;
  PathRates read, written;
  double kernel_requests = 0;  // That the mount was asked,
  double node_requests = 0;    // and that the storage node was.
  double served_bytes = 0;     // By the storage node to other hosts,
  double taken_bytes = 0;      // and of them.
  uint64_t used_bytes = 0;     // Used on the node now,
  uint64_t limit_bytes = 0;    // and the most that there may be.
};

struct TopClass {
  std::string component;
  std::string name;
  DurationCounts times;               // All hosts together.
  std::optional<double> predicted_s;  // The mean, if it is asked what is predicted.
  double per_second = 0;
};

struct TopView {
  double seconds = 0;              // Between the questions.
  std::vector<TopHost> hosts;      // By name, as people count.
  std::vector<TopClass> classes;   // Most time in all first.
  std::vector<std::string> notes;  // Hosts about which not all is known, and why.
};

// `since` is a difference as of Since(). A daemon that has just begun is a note: what it did is not
// of these seconds. What another did is of the seconds between its own two answers, of which those
// of others may have kept it waiting. Precondition: seconds > 0.
TopView MakeTopView(const ClusterResidence& since, double seconds);

// With stable names; numbers per second where a name says so.
nlohmann::json ToJson(const TopView& view);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_TOP_VIEW_H_
