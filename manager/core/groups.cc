#include "manager/core/groups.h"

#include "manager/core/records.h"

namespace mosa::manager {
namespace {

constexpr std::string_view kCollocate = "collocate:";

}  // namespace

std::string_view GroupIn(std::string_view placement) {
  return placement.starts_with(kCollocate) ? placement.substr(kCollocate.size())
                                           : std::string_view();
}

NodeId Groups::AnchorOf(std::string_view group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? kNoNode : found->second.anchor;
}

void Groups::SetAnchor(std::string_view group, NodeId anchor, KvBatch& writes) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || found->second.anchor == anchor) return;
  Move(found->second, anchor);
  writes.Put(GroupKey(group), Encode(GroupRecord{anchor}));
}

void Groups::Join(std::string_view group) {
  if (!group.empty()) ++groups_[std::string(group)].files;
}

void Groups::Leave(std::string_view group, KvBatch& writes) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || --found->second.files > 0) return;
  Move(found->second, kNoNode);
  writes.Delete(GroupKey(group));
  groups_.erase(found);
}

void Groups::Load(std::string_view group, NodeId anchor) {
  Move(groups_[std::string(group)], anchor);
}

void Groups::DropEmpty() {
  for (auto group = groups_.begin(); group != groups_.end();) {
    if (group->second.files > 0) {
      ++group;
      continue;
    }
    Move(group->second, kNoNode);
    group = groups_.erase(group);
  }
}

void Groups::Move(Group& group, NodeId anchor) {
  if (group.anchor != kNoNode && --anchored_[group.anchor] == 0) anchored_.erase(group.anchor);
  group.anchor = anchor;
  if (anchor != kNoNode) ++anchored_[anchor];
}

}  // namespace mosa::manager
