// What a history's seed decides before it begins: the store, what programs do, and the faults. Many
// histories have only some kinds of faults, but these often, or programs that do some things often:
// a sequence that needs several of them is rare where everything happens.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_PLAN_H_
#define MOSA_TESTS_SIMULATION_HISTORY_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "common/base/rng.h"
#include "common/base/time.h"
#include "common/model/session.h"

namespace mosa::simulation {

// Its nodes, and the hints of all files.
struct Configuration {
  static constexpr uint64_t kNodeBytes = uint64_t{64} << 20;
  static constexpr uint64_t kSmallNodeBytes = uint64_t{1} << 20;  // At least; at most twice that.

  uint64_t node_bytes = kNodeBytes;
  uint32_t replicas = 1;
  bool eager = false;
  bool pessimistic = false;  // A close waits for all copies.
  bool apart = false;        // Nodes are on other hosts than mounts.

  static Configuration Draw(Rng& rng, uint32_t nodes) {
    Configuration drawn;
    drawn.apart = rng.Chance(350);
    if (rng.Chance(350)) drawn.node_bytes = kSmallNodeBytes + rng.Below(kSmallNodeBytes);
    if (rng.Chance(400)) return drawn;
    drawn.replicas = 2 + static_cast<uint32_t>(rng.Below(nodes - 1));
    drawn.eager = rng.Chance(400);
    drawn.pessimistic = rng.Chance(500);
    return drawn;
  }
  bool may_be_full() const { return node_bytes < kNodeBytes; }
};

enum class Action : uint8_t {
  kRemove,
  kRename,
  kTruncate,
  kRewrite,
  kChange,
  kWork,
  kRead,
  kList,
  kPeek,
  kAppend,
  kWritePart,
  kCheckPart,
  kKeep,
  kLink,
  kLock,
  kNote,
};

// What programs do, and how often.
struct Workload {
  static constexpr size_t kActions = 16;
  std::array<uint32_t, kActions> weights = {1, 1, 1, 2, 3, 2, 4, 1, 1, 2, 1, 1, 2, 1, 2, 1};
  bool few_names = false;          // All use the same ones.
  uint32_t resizes_per_mille = 0;  // So many changes of an open file make it shorter, or a hole.
  uint32_t bursts_per_mille = 0;   // So many steps are those of BurstPrograms.

  static Workload Draw(Rng& rng) {
    Workload drawn;
    if (rng.Chance(500))
      for (uint32_t& weight : drawn.weights)
        if (rng.Chance(600)) weight *= rng.Chance(400) ? 5 : 0;
    uint32_t sum = 0;
    for (const uint32_t weight : drawn.weights) sum += weight;
    if (sum == 0) drawn.weights.fill(1);
    drawn.few_names = rng.Chance(400);
    drawn.resizes_per_mille = rng.Chance(300) ? 500 : 150;
    return drawn;
  }
  void DrawBursts(Rng& rng) {
    if (rng.Chance(400)) bursts_per_mille = rng.Chance(500) ? 900 : 400;
  }
  Action Choose(Rng& rng) const {
    uint64_t sum = 0;
    for (const uint32_t weight : weights) sum += weight;
    uint64_t at = rng.Below(sum);
    size_t action = 0;
    while (at >= weights[action]) at -= weights[action++];
    return static_cast<Action>(action);
  }
};

enum class FaultKind : uint8_t {
  kPauseHost,
  kCutHost,
  kSlowHost,
  kCutPair,  // Two hosts do not hear each other.
  kKillManager,
  kPauseManager,
  kCutManager,
  kKillMount,
  kKillNode,
  kWipeNode,
  kDrainNode,  // Its files move away, and an empty node takes its place.
};

struct FaultPlan {
  static constexpr uint64_t kKinds = 11;
  std::vector<FaultKind> kinds;
  uint32_t at_once = 1;
  Duration length_min = Milliseconds(100);
  Duration length_max = Seconds(20);
  Duration gap_max = Seconds(6);
  Duration slow_max = Seconds(1);
  uint32_t aimed_per_mille = 0;  // So many begin while a program changes something.
  bool is_calm = false;          // There are quiet times between them.

  static FaultPlan Draw(Rng& rng) {
    FaultPlan drawn;
    if (rng.Chance(350)) {
      for (uint64_t i = 0; i < kKinds; ++i) drawn.kinds.push_back(static_cast<FaultKind>(i));
    } else {
      for (uint64_t i = 1 + rng.Below(3); i > 0; --i)
        drawn.kinds.push_back(static_cast<FaultKind>(rng.Below(kKinds)));
    }
    switch (rng.Below(4)) {
      case 0:
        drawn.length_max = Seconds(3);
        break;
      case 1:  // Longer than a lease, and shorter than a call waits.
        drawn.length_min = kSessionLease + Milliseconds(500);
        drawn.length_max = kWaitMax - Seconds(2);
        break;
      default:
        break;
    }
    if (rng.Chance(500)) drawn.gap_max = rng.Chance(700) ? Milliseconds(500) : Seconds(20);
    if (rng.Chance(500)) drawn.slow_max = rng.Chance(500) ? Milliseconds(100) : Seconds(4);
    if (rng.Chance(500)) drawn.aimed_per_mille = 800;
    drawn.is_calm = rng.Chance(250);
    if (!drawn.is_calm && rng.Chance(400)) drawn.at_once = 2;
    return drawn;
  }
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_PLAN_H_
