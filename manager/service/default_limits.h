// Default limits on what clients can make grow, derived from the machine's resources.
#ifndef MOSA_MANAGER_SERVICE_DEFAULT_LIMITS_H_
#define MOSA_MANAGER_SERVICE_DEFAULT_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "manager/core/quotas.h"

namespace mosa::manager {

// Approximate cost of one file, in memory with its name and the mounts' interest, and in the data
// directory with the overhead of compaction.
inline constexpr uint64_t kNameMemoryBytes = 640;
inline constexpr uint64_t kNameDirectoryBytes = 1024;

struct Room {
  uint64_t memory_bytes = 0;     // Memory of the machine.
  uint64_t directory_bytes = 0;  // Size of the data directory's file system.
  uint32_t user_share_percent = 100;
};

// Total limits, of which each user gets a share. Absent: the default.
struct ChosenLimits {
  std::optional<uint64_t> names, inline_bytes, attribute_bytes;
};

struct DefaultLimits {
  QuotaOptions quotas;
  uint64_t text_bytes = 0;
  // Maximum memory of the manager's process when all of its limits are reached.
  uint64_t memory_bytes = 0;
};
DefaultLimits LimitsFor(const Room& room, const ChosenLimits& chosen);

struct DoorLimits {
  size_t connections_max = 0;
  size_t per_address_max = 0;  // IPv6 addresses count by their /64 network.
};
// Returns the limits for a process that may open so many descriptors.
DoorLimits DoorLimitsFor(uint64_t descriptors_max);
// Raises this process's soft descriptor limit to the hard limit, and returns the resulting limit.
uint64_t RaiseDescriptorLimit();

// The machine's memory, and this process's resident memory.
uint64_t MemoryBytes();
uint64_t ResidentBytes();

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_DEFAULT_LIMITS_H_
