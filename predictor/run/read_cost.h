// ReadCosts: what it costs hosts to read files where they lie, one after the other, on an otherwise
// idle cluster. For schedulers, which ask about thousands of sets of files at once.
//
// Each kind of layout is simulated once, over sizes (read_trial.h); answers are interpolated. If
// the host's own node holds some of a file's bytes, local and remote reads overlap to the extent
// that they do in reads of whole rows of such a stripe. Page caches are not known, and assumed to
// be empty. Costs add up over files: programs read them one after the other.
#ifndef MOSA_PREDICTOR_RUN_READ_COST_H_
#define MOSA_PREDICTOR_RUN_READ_COST_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/node_bytes.h"
#include "common/model/read_cost.h"
#include "predictor/model/platform.h"
#include "predictor/run/read_trial.h"

namespace mosa::predict {

// The properties of a file that its read cost depends on, computed once for all hosts.
struct FileToRead {
  // Precondition: !file.failure.
  explicit FileToRead(const ReadableFile& file);

  struct Holder {
    NodeBytes own;
    bool has_all = false;  // As one plain file.
  };
  uint64_t size_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint32_t width = 0;           // 0: the manager has its bytes, or there are none.
  std::vector<Holder> holders;  // Ascending by node.
};

// Not thread-safe: one owner, one thread. Each kind of layout is simulated on first use, in up to
// some ten milliseconds. There are at most a few thousand kinds.
class ReadCosts {
 public:
  // Precondition: Check(platform).ok().
  explicit ReadCosts(const Platform& platform) : platform_(platform) {}

  // Adds the cost for each host, named by its node, to `costs`, which has one entry per host. On
  // failure, which is Internal, `costs` is unspecified.
  Status Add(const FileToRead& file, std::span<const NodeId> hosts, std::vector<ReadCost>& costs);

 private:
  // A point of a curve over file sizes, ascending. `value` is nanoseconds. For stripes with a local
  // part, it is instead the share of the shorter of the two times (local, remote) that is not
  // hidden behind the longer one.
  struct Point {
    double bytes = 0;
    double value = 0;
  };
  using Curve = std::vector<Point>;
  // Nanoseconds to read the other nodes' bytes alone, and the own node's bytes alone.
  struct Parts {
    double remote = 0;
    double local = 0;
    double longer() const { return std::max(remote, local); }
    double shorter() const { return std::min(remote, local); }
  };

  static double At(const Curve& curve, uint64_t bytes);
  Result<ReadCost> CostAt(const FileToRead& file, const FileToRead::Holder& holder);
  Result<Duration> TimeOf(const ReadShape& shape, uint64_t remote_bytes, uint64_t local_bytes);
  Result<Parts> PartsOf(ReadShape shape, uint64_t remote_bytes, uint64_t local_bytes);
  Result<const Curve*> CurveOf(const ReadShape& shape);

  const Platform platform_;
  std::map<ReadShape, Curve> curves_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_READ_COST_H_
