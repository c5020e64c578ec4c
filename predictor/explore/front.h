// The Pareto front in time, cost and energy: the configurations that no other one beats.
#ifndef MOSA_PREDICTOR_EXPLORE_FRONT_H_
#define MOSA_PREDICTOR_EXPLORE_FRONT_H_

#include <cstddef>
#include <vector>

namespace mosa::predict {

// Less is better. What nobody asks for is 0 for all.
struct Objectives {
  double time_s = 0;
  double node_hours = 0;
  double joules = 0;
  bool operator==(const Objectives&) const = default;
};

// True if `a` is nowhere worse than `b`, and somewhere better.
bool Dominates(const Objectives& a, const Objectives& b);

// Objectives of which none dominates another, each once; more come one after the other.
class Front {
 public:
  void Add(const Objectives& objectives);
  // True if one of them dominates these.
  bool DominatesAny(const Objectives& objectives) const;
  bool Contains(const Objectives& objectives) const;
  const std::vector<Objectives>& members() const { return members_; }

 private:
  std::vector<Objectives> members_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_FRONT_H_
