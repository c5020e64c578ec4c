// What a cluster did between two answers of its daemons, by host and by class of request. Pure.
#ifndef MOSA_TOOLS_MOSA_TOP_VIEW_H_
#define MOSA_TOOLS_MOSA_TOP_VIEW_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/duration_counts.h"
#include "tools/mosa/residence.h"

namespace mosa::cli {

// Bytes by the way that they took, as mounts count them. What the kernel reads of its pages and of
// passthrough files they do not see.
struct PathBytes {
  uint64_t kernel = 0;  // Written by passthrough: known when the file is closed.
  uint64_t own_node = 0;
  uint64_t network = 0;
  uint64_t with_name = 0;  // Small files, which the manager keeps.
  uint64_t sum() const { return kernel + own_node + network + with_name; }
};

struct TopHost {
  std::string name;
  PathBytes read, written;
  uint64_t kernel_requests = 0;  // That the mount was asked,
  uint64_t node_requests = 0;    // and that the storage node was.
  uint64_t served_bytes = 0;     // By the storage node to other hosts,
  uint64_t taken_bytes = 0;      // and of them.
  uint64_t used_bytes = 0;       // Of it, now,
  uint64_t limit_bytes = 0;      // and the most that there may be.
};

struct TopClass {
  std::string component;
  std::string name;
  DurationCounts times;  // Of all hosts.
};

struct TopView {
  double seconds = 0;              // Between the answers.
  std::vector<TopHost> hosts;      // By name, as people count.
  std::vector<TopClass> classes;   // Most time in all first.
  std::vector<std::string> notes;  // Whom nothing is known of, and why.
};

// `since` is a difference as of Since(). A daemon that has just begun is a note: what it did is not
// of these seconds. Precondition: seconds > 0.
TopView MakeTopView(const ClusterResidence& since, double seconds);

// With stable names; numbers per second where a name says so.
nlohmann::json ToJson(const TopView& view);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_TOP_VIEW_H_
