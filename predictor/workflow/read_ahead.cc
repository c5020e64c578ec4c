#include "predictor/workflow/read_ahead.h"

namespace mosa::predict {

ReadAhead::ReadAhead(const Workflow& workflow, uint32_t hosts)
    : workflow_(workflow), hosts_(hosts), started_(workflow.tasks.size(), false) {}

void ReadAhead::AddFile(PathIndex file, uint64_t size_bytes,
                        const std::map<HostIndex, uint64_t>& held) {
  const WorkflowFile& known = workflow_.at(file);
  if (!workflow_.reads_ahead || size_bytes < kFileBytesMin) return;
  if (known.is_directory || !IsOnTheStore(known)) return;
  sizes_[file] = size_bytes;
  for (const TaskIndex task : known.consumers) {
    const auto& planned = workflow_.at(task).planned;
    if (!planned || started_[task.value] || planned->host.value >= hosts_.size()) continue;
    const auto own = held.find(planned->host);
    if (own != held.end() && own->second >= size_bytes) continue;
    Host& host = hosts_[planned->host.value];
    host.wanted.insert(WantOf(task, file));
    host.wanted_by[file].insert(task);
  }
}

void ReadAhead::RemoveFile(PathIndex file) {
  if (sizes_.erase(file) == 0) return;
  for (Host& host : hosts_) {
    for (const TaskIndex task : workflow_.at(file).consumers) RemoveWant(host, task, file);
    Forget(host, file);
    if (host.reading == file) host.is_stale = true;
  }
}

void ReadAhead::Start(TaskIndex task, HostIndex host) {
  started_[task.value] = true;
  const auto& planned = workflow_.at(task).planned;
  if (!planned || planned->host.value >= hosts_.size()) return;
  Host& there = hosts_[planned->host.value];
  for (const PathIndex input : workflow_.at(task).inputs) {
    if (planned->host == host) {
      const auto ahead = there.ahead.find(input);
      if (ahead != there.ahead.end()) used_bytes_ += ahead->second;
      if (there.reading == input) there.is_used = true;
      Forget(there, input);
    }
    RemoveWant(there, task, input);
  }
}

std::optional<PathIndex> ReadAhead::Next(HostIndex index) {
  Host& host = hosts_[index.value];
  if (host.reading) return std::nullopt;
  if (host.wanted.empty()) return std::nullopt;
  const PathIndex file = std::get<PathIndex>(*host.wanted.begin());
  if (host.ahead_bytes > 0 && host.ahead_bytes + sizes_.at(file) > kAheadBytesMax)
    return std::nullopt;
  // One reading serves all tasks that want the file.
  for (const TaskIndex task : workflow_.at(file).consumers) host.wanted.erase(WantOf(task, file));
  host.reading = file;
  host.is_used = host.is_stale = false;
  return file;
}

void ReadAhead::End(HostIndex index, bool has_read) {
  Host& host = hosts_[index.value];
  if (!host.reading) return;
  const PathIndex file = *host.reading;
  host.reading.reset();
  const auto size = sizes_.find(file);
  if (!has_read || host.is_stale || size == sizes_.end()) return;
  read_bytes_ += size->second;
  if (host.is_used) used_bytes_ += size->second;
  if (host.is_used || !host.wanted_by.contains(file)) return;
  host.ahead[file] = size->second;
  host.ahead_bytes += size->second;
}

// The task has started, or the file is gone. What nobody wants any more is not ahead of anybody.
void ReadAhead::RemoveWant(Host& host, TaskIndex task, PathIndex file) {
  host.wanted.erase(WantOf(task, file));
  const auto by = host.wanted_by.find(file);
  if (by == host.wanted_by.end()) return;
  by->second.erase(task);
  if (!by->second.empty()) return;
  host.wanted_by.erase(by);
  Forget(host, file);
}

void ReadAhead::Forget(Host& host, PathIndex file) {
  const auto ahead = host.ahead.find(file);
  if (ahead == host.ahead.end()) return;
  host.ahead_bytes -= ahead->second;
  host.ahead.erase(ahead);
}

}  // namespace mosa::predict
