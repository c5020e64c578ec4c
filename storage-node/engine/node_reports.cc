#include "storage-node/engine/node_reports.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace mosa::node {
namespace {

// Maximum number of objects of one kind per heartbeat; the next ones name the rest.
constexpr size_t kObjectsPerHeartbeat = 4096;
// A stream that does not accept messages is given up long before this.
constexpr Duration kMayBeLostWithin = Seconds(60);

std::vector<FileId> TakeSome(std::set<FileId>& files) {
  std::vector<FileId> some;
  while (!files.empty() && some.size() < kObjectsPerHeartbeat)
    some.push_back(files.extract(files.begin()).value());
  return some;
}

}  // namespace

void NodeReports::SetCorruptBlocks(FileId file, uint64_t count) {
  // Usual. An object's own damage is seen here, since its lock is held.
  if (count == 0 && damaged_count_ == 0) return;
  const SystemMutexLock lock(mutex_);
  if (count > 0) {
    corrupt_blocks_of_[file] = count;
    damaged_count_ = corrupt_blocks_of_.size();
    return;
  }
  corrupt_to_report_.erase(file);
  if (corrupt_blocks_of_.erase(file) == 0) return;
  damaged_count_ = corrupt_blocks_of_.size();
  healed_.insert(file);
  healed_to_report_.insert(file);
}

void NodeReports::NoteDamage(FileId file, uint64_t corrupt_blocks) {
  const SystemMutexLock lock(mutex_);
  corrupt_blocks_of_[file] = corrupt_blocks;
  damaged_count_ = corrupt_blocks_of_.size();
  corrupt_to_report_.insert(file);
  healed_.erase(file);
  healed_to_report_.erase(file);
}

void NodeReports::NoteUntold(FileId file) {
  const SystemMutexLock lock(mutex_);
  untold_to_report_.insert(file);
}

void NodeReports::Forget(FileId file) {
  const SystemMutexLock lock(mutex_);
  untold_to_report_.erase(file);
  untold_reported_.erase(file);
  corrupt_blocks_of_.erase(file);
  damaged_count_ = corrupt_blocks_of_.size();
  corrupt_to_report_.erase(file);
  healed_.erase(file);
  healed_to_report_.erase(file);
}

void NodeReports::NoteDropOrder(uint64_t number, const std::set<FileId>& failed) {
  const SystemMutexLock lock(mutex_);
  drops_to_repeat_.insert(failed.begin(), failed.end());
  if (number != 0) last_drop_order_ = number;
}

void NodeReports::NoteDropped(FileId file) {
  const SystemMutexLock lock(mutex_);
  drops_to_repeat_.erase(file);
}

std::set<FileId> NodeReports::drops_to_repeat() const {
  const SystemMutexLock lock(mutex_);
  return drops_to_repeat_;
}

void NodeReports::Take(Time now, NodeHeartbeat& heartbeat) {
  const SystemMutexLock lock(mutex_);
  if (drops_to_repeat_.empty()) drops_done_ = last_drop_order_;
  heartbeat.drops_done = drops_done_;
  for (const auto& [file, blocks] : corrupt_blocks_of_) heartbeat.corrupt_blocks += blocks;
  heartbeat.corrupt_objects = TakeSome(corrupt_to_report_);
  heartbeat.healed_objects = TakeSome(healed_to_report_);
  heartbeat.untold_objects = TakeSome(untold_to_report_);
  std::erase_if(untold_reported_,
                [&](const auto& each) { return now - each.second > kMayBeLostWithin; });
  for (const FileId file : heartbeat.untold_objects) untold_reported_[file] = now;
}

void NodeReports::Repeat() {
  const SystemMutexLock lock(mutex_);
  for (const auto& [file, blocks] : corrupt_blocks_of_) corrupt_to_report_.insert(file);
  healed_to_report_ = healed_;
  for (const auto& [file, reported] : std::exchange(untold_reported_, {}))
    untold_to_report_.insert(file);
  last_drop_order_ = drops_done_ = 0;
}

}  // namespace mosa::node
