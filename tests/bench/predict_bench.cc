// How long a prediction takes, and of what size: a workflow of 100 tasks on 19 hosts, the
// weak-scaled pipeline of the papers, a chain of three tasks per host, and a Montage of the size of
// the papers' largest.
//
// `chunks`: MiB that tasks read or write or that are staged in, per second of processor; `events`:
// of the event loop. `run_cpu`: seconds of processors that the predicted run takes, with what its
// tasks compute, per second that predicting it takes. `peak_MiB`: what the process has had at most
// so far, the graph with it: a row that is to be known by itself is run by itself
// (--benchmark_filter).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>

#include "predictor/run/prediction_fixture.h"
#include "tests/bench/montage_graph.h"

namespace mosa::predict {
namespace {

uint64_t BytesOf(const Workflow& workflow, const Prediction& prediction) {
  uint64_t bytes = 0;
  for (const PredictedTask& task : prediction.tasks)
    bytes += task.written + task.read_local + task.read_remote + task.read_cached;
  for (const PathIndex file : OutsideInputs(workflow))
    bytes += workflow.at(file).size_bytes.value_or(0);
  return bytes;
}

void PredictAgain(benchmark::State& state, const Workflow& workflow,
                  const std::string& configuration) {
  double events = 0;
  double chunks = 0;
  double core_s = 0;
  for (auto _ : state) {
    const Prediction prediction = MustPredict(workflow, BusyPlatform(), configuration);
    if (prediction.failure) state.SkipWithError(prediction.failure->c_str());
    events += static_cast<double>(prediction.events);
    chunks += static_cast<double>(BytesOf(workflow, prediction)) / kMiB;
    const HostUse use = UseOfAll(prediction);
    core_s += use.application_core_s + use.store_core_s;
  }
  const auto rate = benchmark::Counter::kIsRate;
  state.counters["events"] = benchmark::Counter(events, rate);
  state.counters["chunks"] = benchmark::Counter(chunks, rate);
  state.counters["run_cpu"] = benchmark::Counter(core_s, rate);
  state.counters["events_each"] = events / static_cast<double>(state.iterations());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string SystemOf(bool hints) { return hints ? ",system=wass" : ",system=dss"; }

void BM_HundredTasksOnNineteenHosts(benchmark::State& state) {
  PredictAgain(state, Pipelines(34, 30 * kMiB), "hosts=19,slots=1" + SystemOf(state.range(0) == 1));
}
BENCHMARK(BM_HundredTasksOnNineteenHosts)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_PipelinePerHost(benchmark::State& state) {
  const auto hosts = static_cast<uint32_t>(state.range(0));
  const bool hints = state.range(1) == 1;
  PredictAgain(
      state, Pipelines(hosts, 30 * kMiB),
      "slots=1,hosts=" + std::to_string(hosts) + SystemOf(hints) + (hints ? "" : ",stripe=8"));
}
BENCHMARK(BM_PipelinePerHost)->ArgsProduct({{100, 1000}, {0, 1}})->Unit(benchmark::kMillisecond);

// 7,532 tasks, 29.5 GB written.
void BM_Montage(benchmark::State& state) {
  PredictAgain(state, MontageGraph(713, 4'800'000),
               "hosts=19,slots=1" + SystemOf(state.range(0) == 1));
}
BENCHMARK(BM_Montage)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// Linear in events: `count` chains of ever more bytes on the same hosts.
void BM_BytesOnNineteenHosts(benchmark::State& state) {
  PredictAgain(state, Pipelines(19, static_cast<uint64_t>(state.range(0)) * kMiB),
               "hosts=19,slots=1,system=dss,store=1T");
}
BENCHMARK(BM_BytesOnNineteenHosts)->Arg(30)->Arg(300)->Arg(3000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mosa::predict

BENCHMARK_MAIN();
