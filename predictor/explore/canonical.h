// Which configurations cannot differ: they say the same in other words, or differ in what a
// workflow never comes to. One of them is simulated for all.
#ifndef MOSA_PREDICTOR_EXPLORE_CANONICAL_H_
#define MOSA_PREDICTOR_EXPLORE_CANONICAL_H_

#include "predictor/explore/space.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Two points with the same canonical form have the same prediction, task by task and byte by byte.
//
//  - slots=0 is a number of slots, and more slots than there are tasks are as good as that many;
//  - stripe=0 is the number of storage nodes;
//  - store=0 is the limit that the platform says;
//  - where system is dss, classes of files have no placements, and one by default is none;
//  - a chunk that is larger than every file, and than what clients read from one copy in a row (4
//    MiB), never ends: how large it is makes no difference.
class Canonical {
 public:
  // Both outlive this.
  Canonical(const Workflow& workflow, const Platform& platform);

  Point Of(const Point& point) const;

 private:
  const Platform& platform_;
  uint32_t tasks_ = 0;
  uint64_t file_bytes_max_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_CANONICAL_H_
