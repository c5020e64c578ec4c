// Sessions of mounts, and which of them have which files open for writing.
#ifndef MOSA_MANAGER_CORE_SESSION_TABLE_H_
#define MOSA_MANAGER_CORE_SESSION_TABLE_H_

#include <cstdint>
#include <map>
#include <set>

#include "manager/core/cluster.h"
#include "manager/core/node_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"

namespace mosa::manager {

struct SessionTable {
  SessionTable(Step& step, Cluster& cluster, NodeTable& nodes)
      : step_(step), cluster_(cluster), nodes_(nodes) {}

  Session* Find(ClientId client);
  // Returns the nodes on whose hosts the file is open for writing.
  std::set<NodeId> WritersOf(FileId file) const;
  CapabilityTerms TermsFor(ClientId client) const;
  void PushNodes();  // Sends all nodes to all clients.
  bool IsOpenForWritingElsewhere(FileId file) const;

  uint64_t waiting_bytes = 0;  // A total; it must outlive what contributes to it.
  std::map<ClientId, Session> by_client;
  std::map<FileId, std::set<ClientId>> write_opens;

 private:
  Step& step_;
  Cluster& cluster_;
  NodeTable& nodes_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_SESSION_TABLE_H_
