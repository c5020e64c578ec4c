// Roughly how long a run by a plan takes, in a thousandth of the time of a simulation (Predict()).
//
// List scheduling (Topcuoglu et al., "Performance-Effective and Low-Complexity Task Scheduling for
// Heterogeneous Computing", 2002) on given hosts, with a queue for each direction of each link and
// for each host's cores: bytes take their turn in the order in which they are asked for. What
// depends on the store's decisions is left out: the manager, copies in the making, widths of
// stripes, reading ahead, waiting for single messages, lack of room. Streams are plain files. So
// estimates compare plans of one workflow, and a simulation decides between the best.
//
// Pure; the same arguments give the same answer. One owner, one thread.
#ifndef MOSA_PREDICTOR_PLAN_ESTIMATE_H_
#define MOSA_PREDICTOR_PLAN_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Where a file lies once it is written.
struct FilePlace {
  enum class Kind : uint8_t {
    kStriped,   // Over all nodes.
    kOnWriter,  // On the host of the task that writes it.
    kOnHost,
  };
  Kind kind = Kind::kStriped;
  HostIndex host;       // For kOnHost.
  uint32_t copies = 1;  // In all.
};

// By task, in seconds from the beginning of the run.
struct RunEstimate {
  double seconds = 0;
  std::vector<double> starts, ends;
};

class RunEstimator {
 public:
  // Borrows the workflow. Every file on the store needs a size.
  RunEstimator(const Workflow& workflow, const Platform& platform,
               const Configuration& configuration);

  // `hosts`: by task; `places`: by file, those that no task writes as well.
  RunEstimate Of(const std::vector<HostIndex>& hosts, const std::vector<FilePlace>& places) const;

 private:
  friend class EstimatedRun;
  struct Host {
    double seconds_per_byte_in = 0, seconds_per_byte_out = 0;
    double speed = 1;
    uint64_t page_cache_bytes = 0;
    uint64_t memory_bytes = 0;  // For tasks; 0: no limit.
    uint32_t slots = 1;
    uint32_t cores = 1;
  };
  struct Access {
    PathIndex file;
    double bytes = 0;
  };
  struct Needs {
    double computing_s = 0;  // On a core of speed 1, on each of its cores.
    double calls_s = 0;      // Its start, and what it does in its mount apart from moving bytes.
    std::vector<Access> reads, writes;
  };

  const Workflow& workflow_;
  std::vector<Host> hosts_;
  std::vector<Needs> needs_;  // By task.
  uint32_t shared_cores_ = 0;
  bool storage_apart_ = false;
  double storage_s_per_byte_in_ = 0, storage_s_per_byte_out_ = 0;  // All nodes together.
  double dispatch_s_ = 0;  // The runner starts one task after the other.
  double read_s_per_byte_ = 0, write_s_per_byte_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_PLAN_ESTIMATE_H_
