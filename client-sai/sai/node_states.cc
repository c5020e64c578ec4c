#include "client-sai/sai/node_states.h"

namespace mosa::sai {

void NodeStates::Set(const std::vector<NodeAddress>& nodes) {
  const MutexLock lock(mutex_);
  states_.clear();
  for (const NodeAddress& node : nodes) {
    states_[node.node] = node.state;
    uint64_t& incarnation = incarnations_[node.node];
    if (incarnation != 0 && incarnation != node.incarnation) ++returned_empty_;
    incarnation = node.incarnation;
  }
}

bool NodeStates::IsAlive(NodeId node) const {
  const MutexLock lock(mutex_);
  const auto it = states_.find(node);
  return it != states_.end() &&
         (it->second == NodeState::kLive || it->second == NodeState::kDraining);
}

bool NodeStates::Answers(NodeId node) const {
  if (!IsAlive(node)) return false;
  const MutexLock lock(mutex_);
  return !unanswered_.contains(node);
}

void NodeStates::NoteCall(NodeId node, bool answered) {
  const MutexLock lock(mutex_);
  if (answered)
    unanswered_.erase(node);
  else
    unanswered_.insert(node);
}

}  // namespace mosa::sai
