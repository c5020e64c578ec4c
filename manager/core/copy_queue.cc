#include "manager/core/copy_queue.h"

#include <algorithm>

#include "manager/core/file_bytes.h"

namespace mosa::manager {

void CopyQueue::ReviewLater(FileId file, const Inode& inode) {
  if (!inode.bytes || (inode.hints == 0 && inode.bytes->copies.empty())) return;
  copy_.reviews.insert(file);
}

void CopyQueue::StartScan() {
  copy_.scan_again = copy_.scan_next.has_value();
  if (!copy_.scan_next) {
    copy_.scan_next = FileId(0);
    for (auto& [id, node] : nodes_.by_id) node.files_counted = 0;
  }
  step_.Schedule(step_.now + kNextSlice);
}

// A reader with an older layout would take a missing object for a hole. So wait until such readers
// have let go of the layout.
void CopyQueue::FindLeftovers(FileId file, FileBytes& bytes) {
  const std::set<NodeId> named = NamedNodes(bytes);
  // Also what a node has lost: it may have begun to copy the file again.
  for (const NodeObject& object : bytes.objects)
    if (!named.contains(object.node) && !nodes_.IsUncutDrop(file, object.node))
      copy_.leftovers[file].insert(object.node);
  if (copy_.leftovers.contains(file)) copy_.leftover_checks.insert(file);
}

// Returns the nodes whose last order for the file may still change bytes there, and those that have
// yet to drop what they hold. New bytes must not be placed on them yet.
std::vector<NodeId> CopyQueue::StillOrdered(FileId file) const {
  std::vector<NodeId> nodes;
  if (const Inode* const inode = files_.Find(file)) nodes = UncutNodesOf(*inode);
  for (const auto& [node, task] : copy_.orders.Of(file))
    if (task.running()) nodes.push_back(node);
  if (const auto found = copy_.cancelled.find(file); found != copy_.cancelled.end())
    for (const auto& [node, until] : found->second)
      if (until > step_.now) nodes.push_back(node);
  return nodes;
}

void CopyQueue::EndTask(FileId file, NodeId id) {
  const CopyTask* task = copy_.orders.Find(file, id);
  const Node* node = nodes_.Find(id);
  if (task && task->running() && node && node->connected) {
    step_.SendOrder(id, CancelCopyOrder{file});
    copy_.orders.NoteRelayEnded(file, id);
    copy_.cancelled[file][id] = step_.now + kCancelArrivesWithin;
  }
  copy_.orders.Finish(file, id);
}

// Called when the file is gone, or has no bytes left to copy.
void CopyQueue::Forget(FileId file) {
  std::vector<NodeId> nodes;
  for (const auto& [node, task] : copy_.orders.Of(file)) nodes.push_back(node);
  for (const NodeId node : nodes) EndTask(file, node);
  copy_.orders.ForgetFile(file);
  copy_.full.erase(file);
  copy_.replaced.erase(file);
}

// The node has forgotten its orders. Copies that were fetched from it must be ordered again.
void CopyQueue::ForgetBy(NodeId node) {
  for (const FileId file : copy_.orders.ForgetNode(node)) copy_.reviews.insert(file);
}

void CopyQueue::Retry(FileId file, Time at) {
  const auto [known, is_new] = copy_.retry_times.try_emplace(file, at);
  if (!is_new && known->second <= at) return;
  copy_.retries.erase({known->second, file});
  known->second = at;
  copy_.retries.emplace(at, file);
  step_.Schedule(at);
}

// A silent node may respond again, or its copies may soon go to another node.
bool CopyQueue::MayGetCopy(FileId file, NodeId id) const {
  const Node* node = nodes_.Find(id);
  if (!node || node->given_up) return false;
  const CopyTask* task = copy_.orders.Find(file, id);
  return !task || task->running() || task->retry_at - step_.now <= kFailedFor;
}

}  // namespace mosa::manager
