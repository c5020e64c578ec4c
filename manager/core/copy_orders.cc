#include "manager/core/copy_orders.h"

#include <algorithm>
#include <utility>

namespace mosa::manager {

const std::map<NodeId, CopyTask>& CopyOrders::Of(FileId file) const {
  static const std::map<NodeId, CopyTask> none;
  const auto found = tasks_.find(file);
  return found == tasks_.end() ? none : found->second;
}

const CopyTask* CopyOrders::Find(FileId file, NodeId node) const {
  const auto& tasks = Of(file);
  const auto found = tasks.find(node);
  return found == tasks.end() ? nullptr : &found->second;
}

size_t CopyOrders::running(NodeId node) const {
  const auto found = running_.find(node);
  return found == running_.end() ? 0 : found->second.size();
}

bool CopyOrders::MayStart(FileId file, NodeId node) const {
  const auto found = running_.find(node);
  return found == running_.end() || found->second.size() < kCopyOrdersPerNode ||
         found->second.contains(file);
}

void CopyOrders::Start(FileId file, NodeId node, CopyTask task) {
  Dequeue(file, node);
  if (task.follow) {
    running_[node].erase(file);
  } else {
    running_[node].insert(file);
  }
  tasks_[file].insert_or_assign(node, std::move(task));
}

void CopyOrders::SetProgress(FileId file, NodeId node, uint64_t copied_bytes) {
  tasks_.at(file).at(node).copied_bytes = copied_bytes;
}

void CopyOrders::Finish(FileId file, NodeId node) {
  Dequeue(file, node);
  if (const auto running = running_.find(node); running != running_.end())
    running->second.erase(file);
  const auto tasks = tasks_.find(file);
  if (tasks == tasks_.end()) return;
  tasks->second.erase(node);
  if (tasks->second.empty()) tasks_.erase(tasks);
}

void CopyOrders::NoteRelayEnded(FileId file, NodeId node) {
  const auto tasks = tasks_.find(file);
  if (tasks == tasks_.end()) return;
  for (auto& [target, task] : tasks->second)
    if (std::find(task.relays.begin(), task.relays.end(), node) != task.relays.end())
      task.relay_ended = true;
}

void CopyOrders::Fail(FileId file, NodeId node, std::string why, Time retry_at) {
  CopyTask failed{.failure = std::move(why), .retry_at = retry_at};
  if (const CopyTask* task = Find(file, node)) failed.sources = task->sources;
  Finish(file, node);
  NoteRelayEnded(file, node);
  tasks_[file][node] = std::move(failed);
}

void CopyOrders::Enqueue(FileId file, NodeId node, uint32_t live_copies) {
  const auto known = queued_.find({node, file});
  const uint64_t number = known == queued_.end() ? next_in_line_++ : std::get<1>(known->second);
  Dequeue(file, node);
  const Turn turn{live_copies, number, file};
  queues_[node].insert(turn);
  queued_.emplace(std::pair(node, file), turn);
}

void CopyOrders::Dequeue(FileId file, NodeId node) {
  const auto known = queued_.find({node, file});
  if (known == queued_.end()) return;
  const auto queue = queues_.find(node);
  queue->second.erase(known->second);
  if (queue->second.empty()) queues_.erase(queue);
  queued_.erase(known);
}

std::optional<FileId> CopyOrders::TakeNext() {
  for (const auto& [node, queue] : queues_) {
    if (running(node) >= kCopyOrdersPerNode) continue;
    const FileId file = std::get<2>(*queue.begin());
    Dequeue(file, node);
    return file;
  }
  return std::nullopt;
}

void CopyOrders::ForgetFile(FileId file) {
  std::vector<NodeId> nodes;
  for (const auto& [node, task] : Of(file)) nodes.push_back(node);
  for (const auto& [node, queue] : queues_) nodes.push_back(node);
  for (const NodeId node : nodes) Finish(file, node);
}

std::vector<FileId> CopyOrders::ForgetNode(NodeId node) {
  std::vector<FileId> files;
  std::vector<std::pair<FileId, NodeId>> ended;
  for (auto& [file, tasks] : tasks_) {
    bool touched = false;
    for (auto& [target, task] : tasks) {
      const std::vector<NodeId> sources = task.sources.Nodes();
      const bool fetches = std::binary_search(sources.begin(), sources.end(), node);
      if (fetches) task.sources = {};
      if (target == node) ended.emplace_back(file, target);
      touched = touched || target == node || fetches;
    }
    if (touched) files.push_back(file);
  }
  for (const auto& [file, target] : ended) Finish(file, target);
  if (const auto queue = queues_.find(node); queue != queues_.end()) {
    for (const Turn& turn : std::set<Turn>(queue->second)) {
      files.push_back(std::get<2>(turn));
      Dequeue(std::get<2>(turn), node);
    }
  }
  return files;
}

}  // namespace mosa::manager
