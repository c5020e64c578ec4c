#include "manager/service/default_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/base/units.h"
#include "manager/core/runs.h"

namespace mosa::manager {
namespace {

constexpr uint64_t kNamesMin = 10'000;
// The program, RocksDB, the cache of inline files, and all requests, replies and messages in
// progress.
constexpr uint64_t kFixedBytes = 2560 * kMiB;
constexpr uint64_t kTaskBytes = RunLimits{}.tasks_max * kTaskMemoryBytes;

// RocksDB keeps up to 256 tables open, besides logs, connections for metrics, and this program's
// files.
constexpr uint64_t kKeptDescriptorsMin = 512;
constexpr uint64_t kKeptShare = 8;
constexpr uint64_t kConnectionsMax = 32'768;
constexpr uint64_t kAddressShare = 4;
constexpr uint64_t kPerAddressMin = 256;

uint64_t ShareOf(uint64_t limit, uint32_t percent) {
  return limit / 100 * percent + limit % 100 * percent / 100;
}

}  // namespace

DefaultLimits LimitsFor(const Room& room, const ChosenLimits& chosen) {
  DefaultLimits limits;
  Amounts& all = limits.quotas.all;
  all.names = chosen.names.value_or(std::max(std::min(room.memory_bytes / 4 / kNameMemoryBytes,
                                                      room.directory_bytes / kNameDirectoryBytes),
                                             kNamesMin));
  all.inline_bytes = chosen.inline_bytes.value_or(room.directory_bytes / 4);
  all.attribute_bytes = chosen.attribute_bytes.value_or(
      std::max(std::min(room.memory_bytes / 16, room.directory_bytes / 8), kMiB));
  limits.quotas.per_user = {
      .names = ShareOf(all.names, room.user_share_percent),
      .inline_bytes = ShareOf(all.inline_bytes, room.user_share_percent),
      .attribute_bytes = ShareOf(all.attribute_bytes, room.user_share_percent)};
  limits.text_bytes = std::max(std::min(room.memory_bytes / 32, room.directory_bytes / 8), kMiB);
  limits.memory_bytes = kFixedBytes + kTaskBytes + all.names * kNameMemoryBytes +
                        (all.attribute_bytes + limits.text_bytes) / 4 * 5;
  return limits;
}

DoorLimits DoorLimitsFor(uint64_t descriptors_max) {
  const uint64_t kept =
      std::min(std::max(descriptors_max / kKeptShare, kKeptDescriptorsMin), descriptors_max / 2);
  const uint64_t all = std::clamp<uint64_t>(descriptors_max - kept, 1, kConnectionsMax);
  return {.connections_max = all,
          .per_address_max = std::min(std::max(all / kAddressShare, kPerAddressMin), all)};
}

uint64_t RaiseDescriptorLimit() {
  constexpr uint64_t kUnknown = 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnknown;
  const rlimit most{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (limit.rlim_cur < limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &most) == 0) limit = most;
  return limit.rlim_cur;
}

uint64_t MemoryBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  constexpr uint64_t kUnknownBytes = uint64_t{4} << 30;
  if (pages <= 0 || page_bytes <= 0) return kUnknownBytes;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  if (!(file >> all_pages >> resident_pages)) return 0;
  return resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace mosa::manager
