// Pinned tasks: as `mosa bench patterns` runs tasks that read or write regions.
#include <algorithm>
#include <deque>
#include <utility>

#include "predictor/run/simulated_runner.h"

namespace mosa::predict {

using sai::Done;
using sai::Outcome;

// Runs each host's tasks in order, as many at a time as it has slots.
des::Activity<void> SimulatedRunner::RunPinned() {
  co_await PrepareRegions();
  begun_ = loop_.now();
  struct Host {
    std::deque<TaskIndex> waiting;
    uint32_t slots = 0;
    uint32_t running = 0;
  };
  std::vector<Host> hosts(configuration_.hosts);
  for (uint32_t i = 0; i < hosts.size(); ++i)
    hosts[i].slots = SlotsOf(platform_, configuration_, i);
  while (!prediction_.failure) {
    for (const TaskIndex task : execution_.TakeReady()) {
      at(task).start = Elapsed();
      const HostIndex host = co_await PinOf(task);
      at(task).host = host;
      hosts[host.value].waiting.push_back(task);
    }
    for (uint32_t i = 0; i < hosts.size(); ++i) {
      for (Host& host = hosts[i]; host.running < host.slots && !host.waiting.empty();
           ++host.running) {
        const TaskIndex task = host.waiting.front();
        host.waiting.pop_front();
        execution_.Start(task);
        at(task).ran = true;
        co_await machines_.Work(at(HostIndex{0}).machine(), platform_.runner.dispatch.Of(0),
                                WorkOf::kApplication);
        ++running_;
        des::Spawn(loop_, RunTask(task, HostIndex{i}));
      }
    }
    if (running_ == 0 && ended_.empty()) break;
    if (ended_.empty()) co_await wake_.Wait();
    const std::vector<Ended> ended = std::exchange(ended_, {});
    for (const Ended& each : ended) {
      --running_;
      --hosts[each.host.value].running;
      if (!prediction_.failure) execution_.Finish(each.task);
    }
  }
  // Running tasks go on to their end.
  while (running_ > ended_.size()) co_await wake_.Wait();
}

// Creates files with regions, with their hints, before the first task. Writing the first byte
// determines where all regions go.
des::Activity<void> SimulatedRunner::PrepareRegions() {
  static const std::string kTask = "prepare";
  static constexpr ByteRange kFirstByte{0, 1};
  const bool hinted = configuration_.system == System::kWass;
  SimulatedClient& client = *clients_.front();
  for (const WorkflowFile& file : workflow_.files) {
    HintMap hints;
    if (hinted) hints = file.hints;
    auto done = co_await client.PrepareOutput(file.path, hints);
    if (done.ok() && !file.producer) {
      if (hinted)
        done = co_await client.UpdateFile(file.path, kFirstByte, kTask);
      else
        done = co_await client.WriteFile(file.path, 0, kTask);
    }
    if (!done.ok()) Fail("preparing '" + file.path + "'", HostIndex{0}, done.failure(), kTask);
  }
}

// Lane k's task runs on host k, except that a task whose region has a known place runs there.
des::Activity<HostIndex> SimulatedRunner::PinOf(TaskIndex task) {
  const SyntheticTask& own = part_->tasks[task.value];
  const HostIndex lane{own.lane % configuration_.hosts};
  const auto& first = own.reads.empty() ? own.writes : own.reads;
  if (configuration_.system == System::kDss || first.empty() || !first.front().is_region)
    co_return lane;
  const std::string& path = first.front().path;
  const auto look = co_await clients_.front()->Look(path);
  const std::optional<MachineIndex> where = clients_.front()->HolderOf(path, first.front().begin);
  if (!look.ok() || !where || where->value >= configuration_.hosts) co_return lane;
  co_return HostIndex{where->value};
}

des::Activity<void> SimulatedRunner::WriteTransfers(TaskIndex task, HostIndex host) {
  for (const Transfer& transfer : part_->tasks[task.value].writes) {
    const std::string& id = workflow_.at(task).id;
    Outcome<Done> done = Done{};
    if (transfer.is_region) {
      const ByteRange region{transfer.begin, transfer.begin + transfer.bytes};
      done = co_await at(host).UpdateFile(transfer.path, region, id);
    } else {
      done = co_await at(host).WriteFile(transfer.path, transfer.bytes, id);
    }
    if (!done.ok()) {
      Fail(Describe(workflow_.at(task)), host, done.failure(), id);
      co_return;
    }
    at(task).written += transfer.bytes;
  }
}

}  // namespace mosa::predict
