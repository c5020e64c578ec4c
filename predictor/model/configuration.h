// Configuration: the deployment that a prediction is about. Plain values; every field can be varied
// independently.
#ifndef MOSA_PREDICTOR_MODEL_CONFIGURATION_H_
#define MOSA_PREDICTOR_MODEL_CONFIGURATION_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/scheduler.h"

namespace mosa::predict {

inline constexpr uint32_t kSimulatedHostsMax = 10'000;
inline constexpr uint64_t kChunkBytesMin = 4096;
// A class with this placement keeps what the workflow and its graph say.
inline constexpr std::string_view kPlacementByDefault = "default";

// How one host differs from the platform's.
struct HostChange {
  std::optional<uint32_t> cores;
  std::optional<uint32_t> slots;
  std::optional<uint64_t> memory_bytes;  // For its tasks; 0: no limit.
  std::optional<double> speed;           // Speed of its cores, relative to the platform's.
  // Given, not measured: draws do not vary them.
  std::optional<uint64_t> out_bytes_per_second;
  std::optional<uint64_t> in_bytes_per_second;
  std::optional<uint64_t> page_cache_bytes;
  std::optional<uint64_t> store_bytes;  // The limit of its node. 0: it stores nothing.
  auto operator<=>(const HostChange&) const = default;
};

struct Configuration {
  uint32_t hosts = 4;  // Hosts that run tasks; each has a mount.
  // 0: every host that runs tasks also has a storage node. Otherwise this many further hosts have
  // one and run no tasks.
  uint32_t storage_hosts = 0;
  bool manager_apart = false;  // On a host of its own; else on the first host that runs tasks.
  uint32_t slots = 0;          // Tasks at a time on each host. 0: one per core.
  uint64_t memory_bytes = 0;   // For the tasks of each host. 0: no limit.
  System system = System::kWass;
  uint64_t chunk_bytes = 1 << 20;
  uint32_t stripe_width = 0;         // 0: all nodes.
  uint32_t replicas = 1;             // For files without a hint about it.
  std::string placement = "stripe";  // For files without a hint about it: near, stripe or local.
  // Placements of classes of outputs, given as hints; they have no effect where system is dss. A
  // class is ":GLOB" below the run's directory, or "@STAGE" for what the stage's tasks write.
  std::map<std::string, std::string> class_placements;
  uint64_t store_bytes = 0;  // The limit of each node. 0: as the platform says.
  uint64_t seed = 1;         // The cluster's seed: it decides where files without hints begin.
  // Hosts unlike the others, by number from 0. Hosts that run tasks come first, then those with
  // storage alone, then the manager's own.
  std::map<uint32_t, HostChange> unequal_hosts;
  auto operator<=>(const Configuration&) const = default;
};

// The configuration with the cluster's seed of a draw. Draws 0 and 1 have the given one.
Configuration OfDraw(Configuration configuration, uint32_t draw);
// The number of storage nodes.
uint32_t NodesOf(const Configuration& configuration);
// Slots of a host that is as the platform says.
uint32_t SlotsOf(const Platform& platform, const Configuration& configuration);
// Host `index` with its changes applied, and its slots.
HostPlatform HostOf(const Platform& platform, const Configuration& configuration, uint32_t index);
uint32_t SlotsOf(const Platform& platform, const Configuration& configuration, uint32_t index);
uint64_t MemoryOf(const Configuration& configuration, uint32_t index);

// Returns one sentence: what is wrong, and which values are allowed.
Status Check(const Configuration& configuration);
// Likewise for what `platform` does not allow.
Status CheckOn(const Platform& platform, const Configuration& configuration);

// Parses "hosts=19,storage=5,chunk=256K,system=dss" on top of `base`, and checks the result.
//
// - Deployment: hosts, storage, manager (apart or shared), slots, memory, system (dss or wass),
//   chunk, stripe, replicas, placement, store, seed.
// - Classes of files, as in "placement:projected/*.fits=local" or "placement@project=default": a
//   hint's placement, or default.
// - Unequal hosts, as in "h3.speed=0.5" or "h5-8.link=12M": cores, slots, memory, speed, link (in
//   both directions, in bytes per second), out, in, cache, store.
Result<Configuration> ParseConfiguration(std::string_view text, const Configuration& base = {});
// Like ParseConfiguration(), but does not check that the result is possible.
Status SetFields(std::string_view text, Configuration& into);
// Sets one field by its name in that form, and checks only its value.
Status SetField(std::string_view name, std::string_view value, Configuration& into);
// All fields, in that form.
std::string ToText(const Configuration& configuration);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_CONFIGURATION_H_
