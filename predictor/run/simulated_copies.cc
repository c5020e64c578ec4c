#include "predictor/run/simulated_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "predictor/run/simulated_manager.h"

namespace mosa::predict {
namespace {

// As of the node's copier (storage-node/core/copy_task.h).
constexpr uint64_t kFetchBytes = 128 << 10;
constexpr size_t kFetchesPerSourceMax = 4;
constexpr uint64_t kRequestBytes = 128;
constexpr Duration kReportEvery = Seconds(1);

}  // namespace

void SimulatedCopies::Order(NodeId node, const CopyOrder& order) {
  const Key key{order.file, node};
  Task& task = tasks_.try_emplace(key, loop_).first->second;
  // Another version, unless it is that of the bytes which were followed while they were written.
  // What was dropped is to be fetched again.
  if ((task.order.data_version != order.data_version && !task.order.follow) ||
      (task.under_way.empty() && manager_.StoredOn(node, order.file) == 0))
    task.GoOnAt(0);
  task.order = order;
  task.at_once = kFetchesPerSourceMax * order.sources.Nodes().size();
  task.is_full = task.cancelled = false;
  task.changed.Give();
  if (task.runs) return;
  task.runs = true;
  des::Spawn(loop_, Carry(key));
}

void SimulatedCopies::Cancel(NodeId node, FileId file) {
  const auto task = tasks_.find({file, node});
  if (task == tasks_.end()) return;
  task->second.cancelled = true;
  task->second.GoOnAt(task->second.here_end());
  task->second.changed.Give();
}

// Who copies it may wait for that, from the writer's node or from one that copies it too.
void SimulatedCopies::NoteWritten(FileId file) {
  for (auto task = tasks_.lower_bound({file, NodeId{}});
       task != tasks_.end() && task->first.file == file; ++task)
    if (task->second.runs) task->second.changed.Give();
}

des::Activity<void> SimulatedCopies::Carry(Key key) {
  Task& task = at(key);
  Time reported = loop_.now();
  while (!task.cancelled) {
    const std::optional<Piece> piece = Next(key);
    if (piece) {
      task.under_way.insert(piece->range.begin);
      task.asked_end = piece->range.end;
      des::Spawn(loop_, Fetch(key, *piece));
    }
    const bool has_all =
        task.under_way.empty() && !task.order.follow && task.asked_end >= task.order.size_bytes;
    if (has_all || task.is_full) {
      const uint64_t order = task.order.order;
      co_await Report(key);
      if (task.order.order == order) break;
    } else if (loop_.now() - reported >= kReportEvery) {
      reported = loop_.now();
      co_await Report(key);
    } else if (!piece) {
      co_await task.changed.Wait();
    }
  }
  task.runs = false;
  NoteWritten(key.file);
}

std::optional<Piece> SimulatedCopies::Next(Key key) {
  const Task& task = at(key);
  const CopyOrder& order = task.order;
  const uint64_t limit = order.follow ? manager_.WrittenOf(key.file) : order.size_bytes;
  if (task.is_full || task.asked_end >= limit || task.under_way.size() >= task.at_once)
    return std::nullopt;
  const uint64_t end = std::min(limit, (task.asked_end / kFetchBytes + 1) * kFetchBytes);
  Piece piece = FirstPiece(order.sources, {task.asked_end, end}, kFetchBytes);
  const NodeId source = piece.nodes.empty() ? kNoNode : piece.nodes.front();
  const auto relay = tasks_.find({key.file, source});
  if (relay != tasks_.end() && relay->second.runs && source != key.node &&
      relay->second.here_end() < piece.range.end)
    return std::nullopt;
  return piece;
}

des::Activity<void> SimulatedCopies::Fetch(Key key, Piece piece) {
  Task& task = at(key);
  const uint32_t round = task.round;
  const uint64_t bytes = piece.range.size();
  const NodeId source = piece.nodes.empty() ? kNoNode : piece.nodes.front();
  if (source != kNoNode && source != key.node) {
    const MachineIndex from = manager_.MachineOf(source);
    const MachineIndex to = manager_.MachineOf(key.node);
    const Time asked = loop_.now();
    co_await loop_.Sleep(machines_.MessageDelay(to, from, kRequestBytes));
    const Time came = loop_.now();
    co_await machines_.Work(from, platform_.node.read.Of(bytes));
    co_await machines_.Transfer(from, to, bytes);
    machines_.residence().Add(Daemon::kStorage, from, "read", loop_.now() - came, to);
    machines_.residence().Add(Daemon::kStorage, to, "copy.read", loop_.now() - asked, from);
    co_await machines_.Work(to, platform_.node.write.Of(bytes));
    if (task.round != round) co_return;
    if (!manager_.StoreCopy(key.node, key.file, bytes)) {
      task.GoOnAt(task.here_end());
      task.is_full = true;
      task.changed.Give();
      co_return;
    }
    task.fetched_bytes += bytes;
  }
  task.under_way.erase(piece.range.begin);
  NoteWritten(key.file);
}

des::Activity<void> SimulatedCopies::Report(Key key) {
  const Task& task = at(key);
  CopyReport report;
  report.file = key.file;
  report.order = task.order.order;
  report.data_version = task.order.data_version;
  report.copied_bytes = report.fetched_bytes = task.fetched_bytes;
  report.allocated_bytes = manager_.StoredOn(key.node, key.file);
  report.done = !task.is_full && !task.order.follow && task.here_end() >= task.order.size_bytes;
  if (task.is_full)
    report.failure = Failure{StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                             fmt::format("node {} is full", manager_.NameOf(key.node))};
  co_await loop_.Sleep(
      machines_.MessageDelay(manager_.MachineOf(key.node), machines_.manager(), kRequestBytes));
  manager_.ReportCopy(key.node, report);
}

}  // namespace mosa::predict
