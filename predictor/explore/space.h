// Space: all configurations to be compared. Each *dimension* has a name and values; the space has a
// point for every possible combination.
//
//   nodes: [11, 20]           # hosts in all; those not used for storage and manager run tasks
//   storage: 0..19            # every whole number; "0..19/3" every third; 0: on the tasks' hosts
//   manager: apart
//   chunk: 64K..4M            # doubles at each step
//   replicas: [1, 2]
//   system: [dss, wass]
//   frequency: [1200, 2300]   # MHz, levels of the power file
//   placement:projected/*.fits: [default, local, stripe]   # outputs that the glob matches
//   placement@blastp: [local, stripe]                      # outputs of the stage's tasks
//
// Names are those of a configuration (configuration.h), with `nodes` instead of `hosts`.
#ifndef MOSA_PREDICTOR_EXPLORE_SPACE_H_
#define MOSA_PREDICTOR_EXPLORE_SPACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/model/configuration.h"

namespace mosa::predict {

inline constexpr uint64_t kSpacePointsMax = 100'000;

struct Point {
  Configuration configuration;
  uint32_t frequency_mhz = 0;  // 0: as measured.
  auto operator<=>(const Point&) const = default;
};
// Like the configuration's text, with the frequency if there is one.
std::string ToText(const Point& point);

struct Dimension {
  std::string name;
  std::vector<std::string> values;  // One word each; ranges are expanded.
};

// Parses "storage=0..19" or "chunk=64K,1M".
Result<Dimension> ParseDimension(std::string_view text);
// Reads a file in the form above, YAML or JSON. InvalidArgument is one sentence with the line.
Result<std::vector<Dimension>> ReadSpace(std::string_view text);

struct Space {
  std::vector<Point> points;  // The last dimension varies fastest.
  uint64_t impossible = 0;    // Impossible combinations, such as four copies on two nodes.
  std::string why;            // What is wrong with the first of them.
};

// Makes all points; `base` gives what no dimension names. InvalidArgument, one sentence: a value
// that is wrong or in no possible combination, or too many points.
Result<Space> Enumerate(const std::vector<Dimension>& dimensions, const Configuration& base);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_SPACE_H_
