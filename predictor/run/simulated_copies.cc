#include "predictor/run/simulated_copies.h"

#include <fmt/format.h>

#include "common/model/ranges.h"
#include "predictor/run/simulated_manager.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kStretchBytes = 1 << 20;
constexpr uint64_t kRequestBytes = 128;
constexpr Duration kReportEvery = Seconds(1);

}  // namespace

void SimulatedCopies::Order(NodeId node, const CopyOrder& order) {
  Task& task = tasks_[{node, order.file}];
  // Another version, unless it is that of the bytes which were followed while they were written.
  // What was dropped is to be fetched again.
  if ((task.order.data_version != order.data_version && !task.order.follow) ||
      manager_.StoredOn(node, order.file) == 0)
    task.begin = 0;
  task.order = order;
  task.cancelled = false;
  changed_.Give();
  if (task.runs) return;
  task.runs = true;
  des::Spawn(loop_, Carry({node, order.file}));
}

void SimulatedCopies::Cancel(NodeId node, FileId file) {
  const auto task = tasks_.find({node, file});
  if (task == tasks_.end()) return;
  task->second.cancelled = true;
  changed_.Give();
}

des::Activity<void> SimulatedCopies::Carry(Key key) {
  Task& task = tasks_[key];
  Time reported = loop_.now();
  while (!task.cancelled) {
    const bool follow = task.order.follow;
    const uint64_t limit = follow ? manager_.WrittenOf(key.second) : task.order.size_bytes;
    if (task.begin < limit) {
      const uint64_t order = task.order.order;
      const bool has_room = co_await FetchNext(key, limit);
      if (!has_room) {
        co_await Report(key, true);
        if (task.order.order == order) break;
        continue;
      }
      if (loop_.now() - reported < kReportEvery) continue;
      reported = loop_.now();
      co_await Report(key);
    } else if (follow) {
      co_await changed_.Wait();
    } else {
      const uint64_t order = task.order.order;
      co_await Report(key);
      if (task.order.order == order) break;
    }
  }
  task.runs = false;
}

des::Activity<bool> SimulatedCopies::FetchNext(Key key, uint64_t limit) {
  Task& task = tasks_[key];
  const Piece piece = FirstPiece(task.order.sources, {task.begin, limit}, kStretchBytes);
  const uint64_t bytes = piece.range.size();
  const NodeId source = piece.nodes.empty() ? kNoNode : piece.nodes.front();
  if (source != kNoNode && source != key.first) {
    const MachineIndex from = manager_.MachineOf(source);
    const MachineIndex to = manager_.MachineOf(key.first);
    const Time asked = loop_.now();
    co_await loop_.Sleep(machines_.MessageDelay(to, from, kRequestBytes));
    const Time came = loop_.now();
    co_await machines_.Transfer(from, to, bytes, platform_.node.read.Of(bytes));
    machines_.residence().Add(Daemon::kStorage, from, "read", loop_.now() - came, to);
    machines_.residence().Add(Daemon::kStorage, to, "copy.read", loop_.now() - asked, from);
    if (task.fetched_bytes == 0) co_await machines_.Work(to, platform_.node.make.Call());
    co_await machines_.Work(to, platform_.node.write.Of(bytes));
    if (!manager_.StoreCopy(key.first, key.second, bytes)) co_return false;
    task.fetched_bytes += bytes;
  }
  task.begin = piece.range.end;
  co_return true;
}

des::Activity<void> SimulatedCopies::Report(Key key, bool is_full) {
  const Task& task = tasks_[key];
  CopyReport report;
  report.file = key.second;
  report.order = task.order.order;
  report.data_version = task.order.data_version;
  report.copied_bytes = report.fetched_bytes = task.fetched_bytes;
  report.allocated_bytes = manager_.StoredOn(key.first, key.second);
  report.done = !is_full && !task.order.follow && task.begin >= task.order.size_bytes;
  if (is_full)
    report.failure = Failure{StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                             fmt::format("node {} is full", manager_.NameOf(key.first))};
  co_await loop_.Sleep(
      machines_.MessageDelay(manager_.MachineOf(key.first), machines_.manager(), kRequestBytes));
  manager_.ReportCopy(key.first, report);
}

}  // namespace mosa::predict
