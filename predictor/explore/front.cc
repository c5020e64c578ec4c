#include "predictor/explore/front.h"

#include <algorithm>

namespace mosa::predict {

bool Dominates(const Objectives& a, const Objectives& b) {
  return a != b && a.time_s <= b.time_s && a.node_hours <= b.node_hours && a.joules <= b.joules;
}

void Front::Add(const Objectives& objectives) {
  if (DominatesAny(objectives) || Contains(objectives)) return;
  std::erase_if(members_, [&](const Objectives& member) { return Dominates(objectives, member); });
  members_.push_back(objectives);
}

bool Front::DominatesAny(const Objectives& objectives) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Objectives& member) { return Dominates(member, objectives); });
}

bool Front::Contains(const Objectives& objectives) const {
  return std::find(members_.begin(), members_.end(), objectives) != members_.end();
}

}  // namespace mosa::predict
