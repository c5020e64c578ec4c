// Storage nodes: which there are, which answer, what room they have, and orders to drop objects.
#ifndef MOSA_MANAGER_CORE_NODE_TABLE_H_
#define MOSA_MANAGER_CORE_NODE_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "manager/core/groups.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/placement/policy.h"

namespace mosa::manager {

struct NodeTable {
  NodeTable(Step& step, Groups& groups) : step_(step), groups_(groups) {}

  std::string NamesOf(const std::vector<NodeId>& nodes) const;
  bool IsReachable(NodeId node) const;
  bool Stays(NodeId node) const;
  uint32_t CountStayingNodes() const;
  bool Answers(NodeId node) const;
  void WriteNode(const Node& node);
  Node* Find(NodeId node);
  const Node* Find(NodeId node) const;
  NodeId NodeOfSession(const Session& session) const;
  void NoteStall(Duration time);
  Time ListedAfter(const Node& node) const;
  void ForgetWhoCameEmpty();
  Status MayDrain(const Node& node) const;
  void OrderDrop(const FileBytes& bytes, FileId file);
  void SendDrops();
  // limit - used - granted.
  uint64_t FreeBytes(const Node& node) const;
  ClusterView ViewFor(const Session* session, bool count_grants_of_others) const;
  bool IsUncutDrop(FileId file, NodeId id) const;
  Node::UncutDrop OrderUncutDrop(Node& node, FileId file, const FileBytes& bytes);
  const std::string& NameOf(NodeId node) const;

  std::map<NodeId, Node> by_id;
  std::map<std::string, NodeId, std::less<>> by_name;
  // Objects that nodes registered as shorter than their files require, and their sizes.
  std::map<NodeId, std::map<FileId, uint64_t>> cut_objects;
  std::map<NodeId, DropObjectsOrder> drops;  // Each node gets one order a step.
  Time stall_begin, stall_end;               // The latest stalls, merged if close together.

 private:
  Step& step_;
  Groups& groups_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_NODE_TABLE_H_
