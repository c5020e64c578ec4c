// ReadCosts: what it costs hosts to read files where they lie, one after the other, on an otherwise
// idle cluster. For schedulers, which ask about thousands of sets of files at once.
//
// The predictor made the curves beforehand (predictor/run/forecast_table.h); here they are only
// interpolated. If the host's own node holds some of a file's bytes, local and remote reads overlap
// to the extent that they do in reads of whole rows of such a stripe. Page caches are not known,
// and assumed to be empty. Costs add up over files: programs read them one after the other. Pure.
#ifndef MOSA_MANAGER_FORECAST_READ_COSTS_H_
#define MOSA_MANAGER_FORECAST_READ_COSTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/model/ids.h"
#include "common/model/read_cost.h"

namespace mosa::manager {

struct CurvePoint {
  uint64_t bytes = 0;
  double value = 0;
  bool operator==(const CurvePoint&) const = default;
};
// Values over sizes, which ascend; not empty. Sizes between two points are interpolated, smaller
// ones get the first value, and larger ones are extrapolated from the last two points.
using Curve = std::vector<CurvePoint>;
double ValueAt(const Curve& curve, uint64_t bytes);

// Reads of files in stripes of one width and chunk size.
struct StripeCurves {
  // Nanoseconds over file sizes, for a host that holds nothing of the file.
  Curve remote;
  // By the number of stripe positions on the host's own node: the share (0 to 1) of the shorter of
  // the local and the remote time that is not hidden behind the longer one. Without any entry it
  // is 1.
  std::map<uint32_t, Curve> exposed;
  bool operator==(const StripeCurves&) const = default;
};

// Nanoseconds over file sizes, from before the lookup of the name until the last byte has arrived.
struct ReadCosts {
  Curve in_manager;  // The manager has the bytes, or there are none.
  Curve whole;       // The host's node has the whole file as one plain file.
  Curve by_mount;    // The node has all bytes otherwise: the mount reads them.
  // By chunk size, then by width; neither is empty. A chunk size in between is treated like the
  // next smaller one, since more reads then cross the end of a chunk; a width or a number of
  // positions like the nearest by ratio.
  std::map<uint64_t, std::map<uint32_t, StripeCurves>> stripes;
  bool operator==(const ReadCosts&) const = default;
};

// Nanoseconds to read the other nodes' bytes alone, and the own node's bytes alone.
struct ReadParts {
  double remote = 0;
  double local = 0;
  double longer() const { return std::max(remote, local); }
  double shorter() const { return std::min(remote, local); }
};
ReadParts PartsOf(const ReadCosts& costs, const StripeCurves& stripe, uint64_t remote_bytes,
                  uint64_t local_bytes);

// What reading one file costs each host, named by its node.
struct FileCosts {
  ReadCost elsewhere;                                // For hosts that hold nothing of it.
  std::vector<std::pair<NodeId, ReadCost>> holders;  // Ascending by node.
};
// Precondition: !file.failure.
FileCosts CostsOf(const ReadCosts& costs, const ReadableFile& file);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_FORECAST_READ_COSTS_H_
