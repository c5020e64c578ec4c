// The request durations that a mount measures (common/model/residence.h). They cover the kernel's
// requests by operation, from arrival until the worker is free (a wait for a lock frees it at
// once); requests to the manager; requests to storage nodes, by node; and waits for prefetched
// data. Thread-safe.
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

// The class of a kernel request, and the names of all classes.
DurationTable::ClassId KernelRequestKind(uint32_t opcode);
std::vector<std::string> KernelRequestNames();

struct MountResidence {
  // Limit on nodes with a row of their own.
  static constexpr size_t kNodesMax = 128;

  MountResidence();

  const Time started = SystemClock().Now();
  RequestLog log;
  DurationTable kernel;
  DurationTable manager;
  DurationTable nodes;
  DurationTable waits;
};

// `stats_json`: from Filesystem::StatsJson; its numbers become amounts.
ResidenceSnapshot SnapshotOf(const MountResidence& residence, const std::string& stats_json);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_MOUNT_RESIDENCE_H_
