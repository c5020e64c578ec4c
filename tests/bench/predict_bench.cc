// How long a prediction takes: a workflow of 100 tasks on 19 hosts, and the weak-scaled pipeline of
// the papers, a chain of three tasks per host.
#include <benchmark/benchmark.h>

#include <string>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

void PredictAgain(benchmark::State& state, const Workflow& workflow,
                  const std::string& configuration) {
  uint64_t events = 0;
  uint64_t bytes = 0;
  for (auto _ : state) {
    const Prediction prediction = MustPredict(workflow, BusyPlatform(), configuration);
    events += prediction.events;
    for (const PredictedTask& task : prediction.tasks)
      bytes += task.written + task.read_local + task.read_remote + task.read_cached;
  }
  const auto rate = benchmark::Counter::kIsRate;
  state.counters["events"] = benchmark::Counter(static_cast<double>(events), rate);
  state.counters["chunks"] = benchmark::Counter(static_cast<double>(bytes) / (1 << 20), rate);
}

void BM_HundredTasksOnNineteenHosts(benchmark::State& state) {
  const bool hints = state.range(0) == 1;
  PredictAgain(state, Pipelines(34, 30 * kMiB),
               std::string("hosts=19,slots=1,system=") + (hints ? "wass" : "dss"));
}
BENCHMARK(BM_HundredTasksOnNineteenHosts)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_PipelinePerHost(benchmark::State& state) {
  const auto hosts = static_cast<uint32_t>(state.range(0));
  const bool hints = state.range(1) == 1;
  PredictAgain(
      state, Pipelines(hosts, 30 * kMiB),
      "slots=1,hosts=" + std::to_string(hosts) + (hints ? ",system=wass" : ",system=dss,stripe=8"));
}
BENCHMARK(BM_PipelinePerHost)
    ->Args({100, 0})
    ->Args({100, 1})
    ->Args({1000, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mosa::predict

BENCHMARK_MAIN();
