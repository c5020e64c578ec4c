// Finds configurations that cannot differ: they mean the same, or differ only in something that the
// workflow never uses. One of them is simulated for all.
#ifndef MOSA_PREDICTOR_EXPLORE_CANONICAL_H_
#define MOSA_PREDICTOR_EXPLORE_CANONICAL_H_

#include "predictor/explore/space.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Two points with the same canonical form have the same prediction, task by task and byte by byte:
//
// - slots=0 becomes a number, and no more slots than tasks count;
// - stripe=0 means the number of storage nodes;
// - store=0 means the platform's limit;
// - placements of file classes are dropped where system is dss, or if they are the default;
// - all chunk sizes are equal that exceed every file and are at least as long as what clients read
//   from one copy in a row (4 MiB).
class Canonical {
 public:
  // Both must outlive this.
  Canonical(const Workflow& workflow, const Platform& platform);

  Point Of(const Point& point) const;

 private:
  const Platform& platform_;
  uint32_t tasks_ = 0;
  uint64_t file_bytes_max_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_CANONICAL_H_
