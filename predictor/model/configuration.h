// Configuration: the deployment that a prediction is about. Plain values; every field may be varied
// by itself.
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
// The placement of a class of files is what the workflow and its graph say.
inline constexpr std::string_view kPlacementByDefault = "default";

// How a host differs from what the platform says of all.
struct HostChange {
  std::optional<uint32_t> cores;
  std::optional<double> speed;  // Speed of its cores, relative to the platform's.
  // Are given, not measured: draws leave them as they are.
  std::optional<uint64_t> out_bytes_per_second;
  std::optional<uint64_t> in_bytes_per_second;
  std::optional<uint64_t> page_cache_bytes;
  std::optional<uint64_t> store_bytes;  // The limit of its node. 0: it keeps nothing.
  auto operator<=>(const HostChange&) const = default;
};

struct Configuration {
  uint32_t hosts = 4;  // That run tasks; each has a mount.
  // 0: every host has a storage node as well. Else so many further hosts have them, and no tasks.
  uint32_t storage_hosts = 0;
  bool manager_apart = false;  // On a host of its own; else on the first that runs tasks.
  uint32_t slots = 0;          // Tasks at a time on each host. 0: one per core.
  System system = System::kWass;
  uint64_t chunk_bytes = 1 << 20;
  uint32_t stripe_width = 0;         // 0: all nodes.
  uint32_t replicas = 1;             // For every file that has no hint for it.
  std::string placement = "stripe";  // For every file that has no hint for it: stripe or local.
  // For classes of outputs, given as a hint; so it has no effect where system is dss. By ":GLOB",
  // below the run's directory, or "@STAGE", what its tasks write.
  std::map<std::string, std::string> class_placements;
  uint64_t store_bytes = 0;  // The limit of each node. 0: as the platform says.
  uint64_t seed = 1;         // The cluster's: where files without hints begin.
  // Hosts unlike the others, by number from 0: those that run tasks come first, then those with
  // storage alone, then the manager's own.
  std::map<uint32_t, HostChange> unequal_hosts;
  auto operator<=>(const Configuration&) const = default;
};

// How many storage nodes there are.
uint32_t NodesOf(const Configuration& configuration);
// Tasks at a time on each host, if it is as the platform says.
uint32_t SlotsOf(const Platform& platform, const Configuration& configuration);
// Host `index` as it is, and tasks at a time on it.
HostPlatform HostOf(const Platform& platform, const Configuration& configuration, uint32_t index);
uint32_t SlotsOf(const Platform& platform, const Configuration& configuration, uint32_t index);

// One sentence: what is wrong, and what may be said instead.
Status Check(const Configuration& configuration);
// The same of what `platform` does not allow.
Status CheckOn(const Platform& platform, const Configuration& configuration);

// "hosts=19,storage=5,chunk=256K,system=dss" on top of `base`. Names: hosts, storage, manager
// (apart or shared), slots, system (dss or wass), chunk, stripe, replicas, placement, store, seed;
// for classes of files, as in "placement:projected/*.fits=local" or "placement@project=default", a
// hint's placement or default; and for hosts that are unlike others, as in "h3.speed=0.5" or
// "h5-8.link=12M": cores, speed, link (bytes per second in both directions), out, in, cache, store.
// Checked.
Result<Configuration> ParseConfiguration(std::string_view text, const Configuration& base = {});
// The same form onto `into`, whether it can be or not.
Status SetFields(std::string_view text, Configuration& into);
// Sets one field by its name in that form; nothing else is looked at.
Status SetField(std::string_view name, std::string_view value, Configuration& into);
// The same form, all fields.
std::string ToText(const Configuration& configuration);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_CONFIGURATION_H_
