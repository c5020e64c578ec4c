#include "manager/core/orphans.h"

#include "manager/core/file_bytes.h"

namespace mosa::manager {

// Drops a nameless file once no client has it open or may have it open.
void Orphans::CheckOrphan(FileId file) {
  const auto found = files_.orphans.find(file);
  if (found == files_.orphans.end() || cluster_.grace_end) return;
  if (!found->second.empty() || recalls_.IsRecalled(file) || sessions_.write_opens.contains(file))
    return;
  if (const auto until = files_.lingering.find(file);
      until != files_.lingering.end() && until->second > step_.now)
    return;
  DropInode(file);
}

void Orphans::DropInode(FileId file) {
  Inode& inode = *files_.Find(file);
  copy_queue_.Forget(file);
  copy_.leftovers.erase(file);
  if (inode.bytes) {
    if (!groups_.empty()) groups_.Leave(hints_.GroupOf(inode), step_.effects.writes);
    for (const NodeId id : UncutNodesOf(inode))
      if (Node* const node = nodes_.Find(id)) node->uncut.erase(file);
    nodes_.OrderDrop(*inode.bytes, file);
    placing_.DropInline(file, inode);
    hints_.SetReason(*inode.bytes, "");
  }
  files_.freezes.erase(file);
  if (const auto found = files_.xattrs.find(file); found != files_.xattrs.end()) {
    for (const auto& [name, value] : found->second.values())
      step_.effects.writes.Delete(XattrKey(file, name));
    files_.xattrs.erase(found);
  }
  std::vector<LockTable::Waiting> orphaned;
  locks_.Forget(file, orphaned);
  answers_.AnswerLocks(orphaned, Gone(file));
  for (const ClientId client : interests_.Of(file, inode, ClientId()))
    interests_.Drop(*sessions_.Find(client), file, inode);
  texts_.Drop(inode.task);
  texts_.Drop(inode.hints);
  quotas_.Recharge(inode.charged, {});
  files_.symlinks.erase(file);
  files_.directories.erase(file);
  files_.orphans.erase(file);
  fences_.ForgetFile(file);
  files_.lingering.erase(file);
  files_.uncommitted.erase(file);
  files_.abandoned.erase(file);
  staging_.Forget(file);
  delegations_.Forget(file);
  files_.inodes.erase(file);
  step_.dirty.erase(file);
  step_.touched.erase(file);
  step_.effects.writes.Delete(InodeKey(file));
}

}  // namespace mosa::manager
