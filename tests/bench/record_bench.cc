// What it costs a daemon to count a request, and to log it: TimedRequest around nothing. A count is
// two readings of the clock and three atomic operations; a record beside that an id, and 64 bytes
// into the thread's ring. And what it costs to ask TCP what it has lost, as after each exchange on
// a bulk connection.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/base/check.h"
#include "common/base/tcp_options.h"
#include "common/base/unique_fd.h"
#include "common/observe/duration_table.h"
#include "common/observe/request_log.h"

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

void BM_LostSegments(benchmark::State& state) {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  MOSA_CHECK(bind(listener.get(), generic, size) == 0 && listen(listener.get(), 1) == 0);
  MOSA_CHECK(getsockname(listener.get(), generic, &size) == 0);
  MOSA_CHECK(connect(connected.get(), generic, size) == 0);
  for (auto _ : state) benchmark::DoNotOptimize(LostSegments(connected.get()));
}
BENCHMARK(BM_LostSegments);

}  // namespace
}  // namespace mosa

BENCHMARK_MAIN();
