// What it costs a daemon to count a request, and to log it: TimedRequest around nothing. A count is
// two readings of the clock and three atomic operations; a record beside that an id, and 64 bytes
// into the thread's ring.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/base/check.h"
#include "common/base/duration_table.h"
#include "common/base/request_log.h"

namespace mosa {
namespace {

constexpr DurationTable::ClassId kClass{0};

void BM_Clock(benchmark::State& state) {
  const SystemClock clock;
  for (auto _ : state) benchmark::DoNotOptimize(clock.Monotonic());
}
BENCHMARK(BM_Clock);

void BM_Counted(benchmark::State& state) {
  RequestLog log;
  DurationTable table({"request"}, 0, &log);
  for (auto _ : state) const TimedRequest one(&table, kClass);
}
BENCHMARK(BM_Counted);

// As fast as that the ring is full most of the time: what finds no room costs as much but 64 bytes.
void BM_Logged(benchmark::State& state) {
  const std::string directory =
      std::filesystem::temp_directory_path() / ("record_bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  RequestLog log;
  DurationTable table({"request"}, 0, &log);
  MOSA_CHECK(log.Start({.directory = directory, .component = "storage", .host = "h1"}).ok());
  MOSA_CHECK(log.Settled().is_on);
  for (auto _ : state) const TimedRequest one(&table, kClass);
  log.Stop();
  MOSA_CHECK(log.Settled().fault.empty());
  state.counters["dropped"] = static_cast<double>(log.state().dropped);
  std::filesystem::remove_all(directory);
}
BENCHMARK(BM_Logged)->Iterations(100'000);

}  // namespace
}  // namespace mosa

BENCHMARK_MAIN();
