// How long one decision of the scheduler takes: 10,000 ready tasks, 100 hosts. A decision is a task
// made ready, a host chosen, and a slot given back.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "common/base/rng.h"
#include "predictor/workflow/scheduler.h"

namespace mosa::predict {
namespace {

constexpr uint32_t kHosts = 100;
constexpr uint32_t kTasks = 10'000;

// Two inputs, each striped over `width` hosts or copied to as many; every tenth task has none.
ReadyTask MakeTask(uint32_t index, uint32_t width, bool copies, Rng& rng) {
  ReadyTask task;
  task.task = TaskIndex{index};
  task.levels_to_end = static_cast<uint32_t>(rng.Below(4));
  if (index % 10 == 0) return task;
  task.input_bytes = 1 + rng.Below(64 << 20);
  std::vector<uint64_t> held(kHosts, 0);
  for (int file = 0; file < 2; ++file) {
    const auto first = static_cast<uint32_t>(rng.Below(kHosts));
    for (uint32_t k = 0; k < width; ++k)
      held[(first + k) % kHosts] += task.input_bytes / 2 / (copies ? 1 : width);
  }
  for (uint32_t host = 0; host < kHosts; ++host) {
    if (held[host] > 0) task.held.push_back({HostIndex{host}, held[host]});
  }
  return task;
}

void Decide(benchmark::State& state, System system, uint32_t width, bool copies) {
  Rng rng(1);
  std::vector<ReadyTask> tasks;
  for (uint32_t i = 0; i < kTasks; ++i) tasks.push_back(MakeTask(i, width, copies, rng));
  Scheduler scheduler(system, std::vector<SchedulerHost>(kHosts, SchedulerHost{.slots = 2}));
  Time now;
  for (const ReadyTask& task : tasks) scheduler.AddReady(task, now);
  std::deque<HostIndex> busy;
  for (auto unused : state) {
    now = now + Microseconds(50);
    if (const auto next = scheduler.Next(now)) {
      busy.push_back(next->host);
      scheduler.AddReady(tasks[next->task.value], now);
    }
    if (busy.size() > kHosts) {
      scheduler.Release(busy.front(), {});
      busy.pop_front();
    }
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(Decide, dss, System::kDss, 4, false);
BENCHMARK_CAPTURE(Decide, wass_on_one_host, System::kWass, 1, false);
BENCHMARK_CAPTURE(Decide, wass_striped_over_4, System::kWass, 4, false);
BENCHMARK_CAPTURE(Decide, wass_striped_over_all, System::kWass, kHosts, false);
BENCHMARK_CAPTURE(Decide, wass_8_copies, System::kWass, 8, true);

}  // namespace
}  // namespace mosa::predict

BENCHMARK_MAIN();
