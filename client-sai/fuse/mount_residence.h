// What a mount measures of its requests (common/model/residence.h): the kernel's, by operation,
// from their arrival here until their worker is free (a lock that is waited for frees it at once);
// its own to the manager; and its own to storage nodes, by node; waits for what is fetched ahead.
// Thread-safe.
#ifndef MOSA_CLIENT_SAI_FUSE_MOUNT_RESIDENCE_H_
#define MOSA_CLIENT_SAI_FUSE_MOUNT_RESIDENCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/residence.h"
#include "common/observe/duration_table.h"

namespace mosa::sai {

// The class of a request of the kernel, and the names of all.
DurationTable::ClassId KernelRequestKind(uint32_t opcode);
std::vector<std::string> KernelRequestNames();

struct MountResidence {
  // Nodes that a row of their own is kept of.
  static constexpr size_t kNodesMax = 128;

  MountResidence();

  const Time started = SystemClock().Now();
  RequestLog log;
  DurationTable kernel;
  DurationTable manager;
  DurationTable nodes;
  DurationTable waits;
};

// `stats_json`: Filesystem::StatsJson, whose numbers become amounts.
ResidenceSnapshot SnapshotOf(const MountResidence& residence, const std::string& stats_json);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_MOUNT_RESIDENCE_H_
