// The Pareto front in time, cost and energy: the configurations that no other one beats.
#ifndef MOSA_PREDICTOR_EXPLORE_FRONT_H_
#define MOSA_PREDICTOR_EXPLORE_FRONT_H_

#include <cstddef>
#include <vector>

namespace mosa::predict {

// Lower is better. An objective that is not in use is 0 everywhere.
struct Objectives {
  double time_s = 0;
  double node_hours = 0;
  double joules = 0;
  bool operator==(const Objectives&) const = default;
};

// Returns true if `a` is nowhere worse than `b`, and better in at least one objective.
bool Dominates(const Objectives& a, const Objectives& b);

// The objectives added so far that no other one dominates, without duplicates.
class Front {
 public:
  void Add(const Objectives& objectives);
  // Returns true if a member dominates these objectives.
  bool DominatesAny(const Objectives& objectives) const;
  bool Contains(const Objectives& objectives) const;
  const std::vector<Objectives>& members() const { return members_; }

 private:
  std::vector<Objectives> members_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_FRONT_H_
