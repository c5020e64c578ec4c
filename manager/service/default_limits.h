// Limits of what clients can make grow, where nobody has chosen others: as much as the machine has
// room for.
#ifndef MOSA_MANAGER_SERVICE_DEFAULT_LIMITS_H_
#define MOSA_MANAGER_SERVICE_DEFAULT_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "manager/core/quotas.h"

namespace mosa::manager {

// About what one file takes of the manager's memory, with its name and what mounts know of it; and
// of the data directory, with what compactions leave behind.
inline constexpr uint64_t kNameMemoryBytes = 640;
inline constexpr uint64_t kNameDirectoryBytes = 1024;

struct Room {
  uint64_t memory_bytes = 0;     // The machine's.
  uint64_t directory_bytes = 0;  // The file system's that the data directory is on.
  uint32_t user_share_percent = 100;
};

// In all; each user gets a share.
struct ChosenLimits {
  std::optional<uint64_t> names, inline_bytes, attribute_bytes;
};

struct DefaultLimits {
  QuotaOptions quotas;
  uint64_t text_bytes = 0;
  // What the manager's process stays below when all of its limits are reached.
  uint64_t memory_bytes = 0;
};
DefaultLimits LimitsFor(const Room& room, const ChosenLimits& chosen);

struct DoorLimits {
  size_t connections_max = 0;
  size_t per_address_max = 0;  // IPv6 addresses count by their /64 network.
};
// What a process that may have so many descriptors can afford.
DoorLimits DoorLimitsFor(uint64_t descriptors_max);
// Raises the soft limit of this process to the hard one: the limit from now on.
uint64_t RaiseDescriptorLimit();

// This machine's memory, and what this process has of it.
uint64_t MemoryBytes();
uint64_t ResidentBytes();

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_DEFAULT_LIMITS_H_
