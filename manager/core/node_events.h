// Messages of storage nodes: registration, reports, and a stream that ends.
#ifndef MOSA_MANAGER_CORE_NODE_EVENTS_H_
#define MOSA_MANAGER_CORE_NODE_EVENTS_H_

#include <optional>
#include <string>

#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/generations.h"
#include "manager/core/node_table.h"
#include "manager/core/recovery_rules.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/uncut_objects.h"
#include "manager/core/wait_queues.h"

namespace mosa::manager {

class NodeEvents {
 public:
  NodeEvents(Step& step, WaitQueues& queues, Cluster& cluster, NodeTable& nodes,
             SessionTable& sessions, CopyQueue& copy_queue, UncutObjects& uncut_objects,
             RecoveryRules& recovery_rules, Generations& generations)
      : step_(step),
        queues_(queues),
        cluster_(cluster),
        nodes_(nodes),
        sessions_(sessions),
        copy_queue_(copy_queue),
        uncut_objects_(uncut_objects),
        recovery_rules_(recovery_rules),
        generations_(generations) {}

  void Handle(const RegisterNode& command);
  void Handle(const NodeReport& command);
  void Handle(const NodeStreamLost& command);
  void SetNodeState(Node& node, NodeState state);
  void Handle(const DrainNode& command);

 private:
  // Returns nothing if the node may register.
  std::optional<std::string> WhyRefused(const NodeRegistration& registration) const;

  Step& step_;
  WaitQueues& queues_;
  Cluster& cluster_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyQueue& copy_queue_;
  UncutObjects& uncut_objects_;
  RecoveryRules& recovery_rules_;
  Generations& generations_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_NODE_EVENTS_H_
