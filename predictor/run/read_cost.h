// ReadCosts: what it would cost hosts to read files as they lie, one after the other, on a cluster
// that does nothing else. For schedulers, who ask about thousands of sets of files at once.
//
// Each kind of layout is simulated once, over sizes (read_trial.h), and answers are interpolated
// between these times. Where the own node has some of a file's bytes, what is read from there
// overlaps with what comes from others as it does where whole rows of such a stripe are read. What
// is in a host's page cache is not known, and not counted on.
// Costs add up over files: programs read them one after the other.
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
#include "common/model/read_cost.h"
#include "predictor/model/platform.h"
#include "predictor/run/held_bytes.h"
#include "predictor/run/read_trial.h"

namespace mosa::predict {

// What reading a file depends on, found once however many ask.
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

// One owner, one thread: kinds of layout are simulated when they are first asked for, up to some
// ten milliseconds each. There are at most some thousand kinds.
class ReadCosts {
 public:
  // Precondition: Check(platform).ok().
  explicit ReadCosts(const Platform& platform) : platform_(platform) {}

  // For each host, named by its node. Adds to `costs`, which has one for each host; after a
  // failure, which is Internal, they mean nothing.
  Status Add(const FileToRead& file, std::span<const NodeId> hosts, std::vector<ReadCost>& costs);

 private:
  // By a file's size, ascending: nanoseconds, or, of stripes of which the own node has a part,
  // which part of the time for the quicker one of the two (local, remote) adds to that for the
  // other.
  struct Point {
    double bytes = 0;
    double value = 0;
  };
  using Curve = std::vector<Point>;
  // Nanoseconds for the bytes of other nodes alone, and for those of the own one alone.
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
