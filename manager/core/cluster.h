// The cluster's own record and counters, and the time after a restart in which sessions and nodes
// are awaited.
#ifndef MOSA_MANAGER_CORE_CLUSTER_H_
#define MOSA_MANAGER_CORE_CLUSTER_H_

#include <optional>
#include <string>
#include <vector>

#include "manager/core/records.h"
#include "manager/core/recovery.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/placement/copies.h"

namespace mosa::manager {

struct Cluster {
  Cluster(ManagerOptions given, Step& step) : options(std::move(given)), step_(step) {}

  Status StillRestarting() const;
  void WriteCluster();
  void BeginEpoch(Node& node);
  FileIdRangeReply TakeFileIds();

  const ManagerOptions options;
  ClusterRecord record;
  CountersRecord counters;
  Recovery recovery;
  std::optional<Time> grace_end;
  SetStorePressure store_pressure;
  CopiesForecast copies_forecast;
  std::vector<std::string> load_log;  // Messages from loading, for the first step's log.

 private:
  Step& step_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_CLUSTER_H_
