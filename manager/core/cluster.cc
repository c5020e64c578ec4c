#include "manager/core/cluster.h"

namespace mosa::manager {

Status Cluster::StillRestarting() const {
  return AbortedError("the manager was restarted and waits for its mounts: try again in a moment");
}

void Cluster::WriteCluster() { step_.effects.writes.Put(ClusterKey(), Encode(record)); }

// Earlier statements about the node's objects refer to another incarnation, or to none.
void Cluster::BeginEpoch(Node& node) {
  node.epoch = ++counters.epoch;
  node.consumed_bytes = node.consumed_before_bytes = 0;
  node.settled_below = 0;
  node.came_empty = grace_end.has_value();
  step_.effects.writes.Put(CountersKey(), Encode(counters));
}

FileIdRangeReply Cluster::TakeFileIds() {
  const FileIdRangeReply range{FileId(record.next_file_id), kFileIdsAtOnce};
  record.next_file_id += kFileIdsAtOnce;
  step_.cluster_dirty = true;
  return range;
}

}  // namespace mosa::manager
