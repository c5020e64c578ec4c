// Computes what a cluster did between two answers of its daemons, by host and by class of request.
// Pure.
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

// Bytes per second by data path, as mounts count them. Mounts do not see what the kernel reads from
// its page cache or from passthrough files.
struct PathRates {
  double kernel = 0;  // Passthrough writes, counted when the file is closed.
  double own_node = 0;
  double network = 0;
  double with_name = 0;  // Small files, which the manager stores.
  double sum() const { return kernel + own_node + network + with_name; }
};

// Rates per second, except for the space.
struct TopHost {
  std::string name;
  PathRates read, written;
  double kernel_requests = 0;  // Requests to the mount.
  double node_requests = 0;    // Requests to the storage node.
  double served_bytes = 0;     // Sent by the storage node to other hosts.
  double taken_bytes = 0;      // Received by it from other hosts.
  uint64_t used_bytes = 0;     // Used on the node now.
  uint64_t limit_bytes = 0;    // Capacity of the node.
};

struct TopClass {
  std::string component;
  std::string name;
  DurationCounts times;               // Sum of all hosts.
  std::optional<double> predicted_s;  // Predicted mean, if a prediction was requested.
  double per_second = 0;
};

struct TopView {
  double seconds = 0;              // Time between the two queries.
  std::vector<TopHost> hosts;      // In natural order of names.
  std::vector<TopClass> classes;   // Most total time first.
  std::vector<std::string> notes;  // Daemons with incomplete data, and why.
};

// `since` is a difference made by Since(). A daemon that has just started gets a note instead of
// figures, because its counters do not cover this interval. Each daemon's rates use the time
// between its own two answers, which slow daemons can delay. Precondition: seconds > 0.
TopView MakeTopView(const ClusterResidence& since, double seconds);

// Has stable names. Numbers are per second where a name says so.
nlohmann::json ToJson(const TopView& view);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_TOP_VIEW_H_
