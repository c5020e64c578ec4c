#include "predictor/run/simulated_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/model/block_sums.h"
#include "predictor/run/simulated_manager.h"
#include "storage-node/core/copy_task.h"

namespace mosa::predict {
namespace {

constexpr node::CopyLimits kLimits;
// Bytes on the wire with headers. The first question uses a connection of its own and covers the
// maximum number of blocks, whatever the file's length. The answer has a checksum and a state for
// each.
constexpr uint64_t kBlocksAsked = kSumsBytesMax / kChecksumBlockBytes;
constexpr uint64_t kSumsBytes = kBlocksAsked * 5 + 180;
constexpr uint64_t kNothingNewBytes = 100;

}  // namespace

void SimulatedCopies::Task::DropUnderWay() {
  asked_end = has_end();
  for (const auto& [begin, end] : under_way) taken.Remove({begin, end});
  under_way.clear();
  full = false;
  ++times_dropped;
}

void SimulatedCopies::Task::BeginAnew() {
  DropUnderWay();
  taken.Clear();
  asked_end = 0;
}

void SimulatedCopies::Order(NodeId node, const CopyOrder& order) {
  const Key key{order.file, node};
  Task& task = tasks_.try_emplace(key, loop_).first->second;
  // Bytes that were followed while they were written keep their value under the final version.
  const bool is_other = task.order.data_version != order.data_version && !task.order.follow;
  const bool was_dropped =
      task.asked_end > 0 && task.under_way.empty() && manager_.StoredOn(node, order.file) == 0;
  if (is_other || was_dropped) task.BeginAnew();
  task.order = order;
  task.cancelled = task.full = false;
  task.wake.Give();
  NotePassed(key);
  if (std::exchange(task.runs, true)) return;
  des::Spawn(loop_, Carry(key));
}

void SimulatedCopies::Cancel(NodeId node, FileId file) {
  const auto task = tasks_.find({file, node});
  if (task == tasks_.end()) return;
  task->second.DropUnderWay();
  task->second.cancelled = true;
  task->second.wake.Give();
}

void SimulatedCopies::NoteWritten(FileId file) {
  for (auto task = tasks_.lower_bound({file, NodeId{}});
       task != tasks_.end() && task->first.first == file; ++task)
    if (task->second.order.follow) task->second.wake.Give();
}

des::Activity<void> SimulatedCopies::Carry(Key key) {
  Task& task = tasks_.at(key);
  Time reported = loop_.now();
  uint64_t asked_for = 0;  // Orders count from 1.
  while (!task.cancelled) {
    const uint64_t order = task.order.order;
    if (std::exchange(asked_for, order) != order) {
      co_await Ask(key, kSumsBytes);
      continue;
    }
    if (!task.full && BeginNext(key, task)) continue;
    const bool has_all = !task.order.follow && task.has_end() >= task.order.size_bytes;
    if (has_all && !task.full) co_await Ask(key, kNothingNewBytes);
    if (task.order.order != order) continue;
    if (has_all || task.full || loop_.now() - reported >= node::kCopyReportEvery) {
      reported = loop_.now();
      co_await Report(key);
      if (task.order.order == order && (has_all || task.full)) break;
      continue;
    }
    co_await task.wake.Wait();
  }
  task.runs = false;
}

bool SimulatedCopies::BeginNext(Key key, Task& task) {
  const uint64_t limit = task.order.follow ? manager_.WrittenOf(key.first) : task.order.size_bytes;
  if (task.asked_end >= limit || task.under_way.size() == kLimits.fetches_per_source_max)
    return false;
  const ByteRange rest{task.asked_end, limit};
  const Piece piece = FirstPiece(task.order.sources, rest, kLimits.fetch_bytes);
  const NodeId source = piece.nodes.empty() ? kNoNode : piece.nodes.front();
  task.waits_for = kNoNode;
  const std::vector<ByteRange> missing = task.taken.Missing(piece.range);
  if (source == kNoNode || source == key.second || missing.empty()) {
    task.asked_end = piece.range.end;
    NotePassed(key);
    return true;
  }
  const ByteRange wanted = missing.front();
  if (!Has(source, task.order, wanted)) {
    task.waits_for = source;
    return false;
  }
  task.asked_end = wanted.end;
  task.under_way.emplace(wanted.begin, wanted.end);
  task.taken.Add(wanted);
  des::Spawn(loop_, Fetch(key, source, wanted));
  return true;
}

// A relay has the bytes that were written to it, and those that arrived by the order in question or
// a later one. An earlier order may have been for other parts of the file.
bool SimulatedCopies::Has(NodeId source, const CopyOrder& order, ByteRange range) const {
  const auto relay = std::ranges::find(order.relays, source, &CopyRelay::node);
  if (relay == order.relays.end()) return true;
  const auto copier = tasks_.find({order.file, source});
  if (copier == tasks_.end() || copier->second.order.order < relay->order) return false;
  const Piece piece = FirstPiece(copier->second.order.sources, range, kLimits.fetch_bytes);
  const NodeId from = piece.nodes.empty() ? kNoNode : piece.nodes.front();
  return from == kNoNode || from == source || copier->second.has_end() >= range.end;
}

des::Activity<void> SimulatedCopies::Fetch(Key key, NodeId source, ByteRange range) {
  Task& task = tasks_.at(key);
  const uint64_t times_dropped = task.times_dropped;
  const uint64_t bytes = range.size();
  const MachineIndex from = manager_.MachineOf(source);
  const MachineIndex to = manager_.MachineOf(key.second);
  const Time asked = loop_.now();
  co_await loop_.Sleep(machines_.SendMessage(to, from, kNodeRequestBytes));
  const Time came = loop_.now();
  co_await machines_.NodeWait(from);
  co_await machines_.Objects(from, bytes);
  co_await machines_.Transfer(from, to, bytes, platform_.node.read.Of(bytes));
  machines_.residence().Add(Daemon::kStorage, from, "read", loop_.now() - came, to);
  machines_.residence().Add(Daemon::kStorage, to, "copy.read", loop_.now() - asked, from);
  if (range.begin == 0) co_await machines_.Work(to, platform_.node.make.Call());
  co_await machines_.Objects(to, bytes);
  co_await machines_.Work(to, platform_.node.write.Of(bytes));
  if (times_dropped != task.times_dropped) co_return;
  task.wake.Give();
  task.under_way.erase(range.begin);
  if (!manager_.StoreCopy(key.second, key.first, bytes)) {
    task.taken.Remove(range);
    task.asked_end = std::min(task.asked_end, range.begin);
    task.full = true;
    co_return;
  }
  task.fetched_bytes += bytes;
  NotePassed(key);
}

// Wakes the copies that wait for more of this node's bytes.
void SimulatedCopies::NotePassed(Key key) {
  for (auto task = tasks_.lower_bound({key.first, NodeId{}});
       task != tasks_.end() && task->first.first == key.first; ++task)
    if (task->second.waits_for == key.second) task->second.wake.Give();
}

des::Activity<void> SimulatedCopies::Ask(Key key, uint64_t answer_bytes) {
  const MachineIndex here = manager_.MachineOf(key.second);
  Duration longest;
  for (const NodeId source : tasks_.at(key).order.sources.Nodes()) {
    if (source == kNoNode || source == key.second) continue;
    const MachineIndex there = manager_.MachineOf(source);
    const Duration asking = machines_.SendMessage(here, there, kNodeRequestBytes);
    longest = std::max(longest, asking + machines_.SendMessage(there, here, answer_bytes));
  }
  co_await loop_.Sleep(longest);
}

des::Activity<void> SimulatedCopies::Report(Key key) {
  const Task& task = tasks_.at(key);
  CopyReport report;
  report.file = key.first;
  report.order = task.order.order;
  report.data_version = task.order.data_version;
  report.copied_bytes = report.fetched_bytes = task.fetched_bytes;
  report.allocated_bytes = manager_.StoredOn(key.second, key.first);
  report.done = !task.full && !task.order.follow && task.has_end() >= task.order.size_bytes;
  if (task.full)
    report.failure = Failure{StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                             fmt::format("node {} is full", manager_.NameOf(key.second))};
  co_await loop_.Sleep(machines_.SendMessage(manager_.MachineOf(key.second), machines_.manager(),
                                             kNodeRequestBytes));
  manager_.ReportCopy(key.second, report);
}

}  // namespace mosa::predict
