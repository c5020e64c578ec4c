// Room on nodes: grants to mounts, and what mounts report that they have stored.
//
// Invariant: a node's granted_bytes is the sum of all sessions' grants on it.
#ifndef MOSA_MANAGER_CORE_GRANTS_H_
#define MOSA_MANAGER_CORE_GRANTS_H_

#include <cstdint>

#include "manager/core/cluster.h"
#include "manager/core/file_table.h"
#include "manager/core/node_table.h"
#include "manager/core/quotas.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"

namespace mosa::manager {

class Grants {
 public:
  Grants(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes, SessionTable& sessions,
         Quotas& quotas)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        quotas_(quotas) {}

  void Release(Session& session);
  void ReportConsumed(Session& session, NodeId node, uint64_t bytes);
  Reply Apply(const GrantRequest& request);
  Reply Apply(const StatFilesystemRequest& request);

 private:
  void GiveBack(Session& session, NodeId node, uint64_t bytes);
  bool RecallGrants(Node& node, ClientId except);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  Quotas& quotas_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_GRANTS_H_
