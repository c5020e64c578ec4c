// NodeStates: what this mount knows of the storage nodes. Thread-safe; no method blocks.
#ifndef MOSA_CLIENT_SAI_SAI_NODE_STATES_H_
#define MOSA_CLIENT_SAI_SAI_NODE_STATES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/base/sync.h"
#include "common/model/session.h"

namespace mosa::sai {

class NodeStates {
 public:
  // Takes over the manager's list.
  void Set(const std::vector<NodeAddress>& nodes);
  // As far as the manager knows. A node that drains is alive.
  bool IsAlive(NodeId node) const;
  // It is alive, and has answered the last store or the like that had time enough.
  bool Answers(NodeId node) const;
  void NoteCall(NodeId node, bool answered);
  // Counts nodes that returned empty. A read during which the count changes is repeated.
  uint64_t returned_empty() const { return returned_empty_; }

 private:
  mutable Mutex mutex_;
  std::map<NodeId, NodeState> states_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeId, uint64_t> incarnations_ ABSL_GUARDED_BY(mutex_);
  std::set<NodeId> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> returned_empty_{0};
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_NODE_STATES_H_
