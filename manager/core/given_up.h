// The requests of one session that their caller has given up. They never run.
//
// Each envelope says below which id all requests are settled, and lists the ids above it that were
// given up. Not thread-safe.
#ifndef MOSA_MANAGER_CORE_GIVEN_UP_H_
#define MOSA_MANAGER_CORE_GIVEN_UP_H_

#include <algorithm>
#include <set>
#include <vector>

#include "common/model/ids.h"
#include "common/model/session.h"

namespace mosa::manager {

class GivenUp {
 public:
  // Records what an envelope says. Keeps the latest kAbandonedMax ids.
  void Note(RequestId settled_below, const std::vector<RequestId>& abandoned) {
    settled_below_ = std::max(settled_below_, settled_below);
    abandoned_.insert(abandoned.begin(), abandoned.end());
    abandoned_.erase(abandoned_.begin(), abandoned_.lower_bound(settled_below_));
    while (abandoned_.size() > kAbandonedMax) abandoned_.erase(abandoned_.begin());
  }
  bool Contains(RequestId id) const { return id < settled_below_ || abandoned_.contains(id); }

 private:
  RequestId settled_below_;
  std::set<RequestId> abandoned_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_GIVEN_UP_H_
