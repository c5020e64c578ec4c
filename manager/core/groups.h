// Groups: files whose placement hint names a common group, and the node at which each group is
// anchored. A group is forgotten with its last bound file.
//
// Not thread-safe. Records of anchors go into the writes that a method is given.
#ifndef MOSA_MANAGER_CORE_GROUPS_H_
#define MOSA_MANAGER_CORE_GROUPS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/kv_batch.h"
#include "common/model/ids.h"

namespace mosa::manager {

// The group that a placement hint names; empty if it names none.
std::string_view GroupIn(std::string_view placement);

class Groups {
 public:
  // kNoNode: the group's next file chooses one. An empty name stands for no group throughout.
  NodeId AnchorOf(std::string_view group) const;
  void SetAnchor(std::string_view group, NodeId anchor, KvBatch& writes);
  // A file of the group was bound, or is bound no more.
  void Join(std::string_view group);
  void Leave(std::string_view group, KvBatch& writes);
  bool empty() const { return groups_.empty(); }

  // For a database that is being loaded: anchors first, then one Join for each file; then groups
  // without files are dropped.
  void Load(std::string_view group, NodeId anchor);
  void DropEmpty();

  // How many groups are anchored at each node that has any.
  const std::map<NodeId, uint32_t>& anchored() const { return anchored_; }

 private:
  struct Group {
    NodeId anchor;
    uint64_t files = 0;
  };
  void Move(Group& group, NodeId anchor);

  std::map<std::string, Group, std::less<>> groups_;
  std::map<NodeId, uint32_t> anchored_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_GROUPS_H_
