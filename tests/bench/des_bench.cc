// How fast simulated time passes: events of the bare loop with so many under way, and of the two
// kinds of queues.
#include <benchmark/benchmark.h>

#include "common/base/rng.h"
#include "predictor/des/activity.h"
#include "predictor/des/event_loop.h"
#include "predictor/des/fifo_server.h"
#include "predictor/des/shared_server.h"

namespace mosa::des {
namespace {

constexpr int64_t kRounds = 100;

struct Hopper {
  EventLoop& loop;
  Rng rng;
  int64_t left;
  void Hop() {
    if (--left < 0) return;
    Hopper* const self = this;
    loop.After(Nanoseconds(static_cast<int64_t>(rng.Below(1'000'000))), [self] { self->Hop(); });
  }
};

void BM_Events(benchmark::State& state) {
  const int64_t pending = state.range(0);
  uint64_t events = 0;
  for (auto _ : state) {
    EventLoop loop;
    Hopper hopper{loop, Rng(1), pending * kRounds};
    for (int64_t i = 0; i < pending; ++i) hopper.Hop();
    loop.Run();
    events += loop.events();
  }
  state.SetItemsProcessed(static_cast<int64_t>(events));
}
BENCHMARK(BM_Events)->Arg(100)->Arg(10'000)->Unit(benchmark::kMillisecond);

template <typename Server>
auto Use(Server& server, Duration work) {
  if constexpr (std::is_same_v<Server, FifoServer>)
    return server.Serve(work);
  else
    return server.Work(work);
}

template <typename Server>
Activity<void> UseAgain(Server& server, uint64_t seed) {
  Rng rng(seed);
  for (int64_t i = 0; i < kRounds; ++i)
    co_await Use(server, Nanoseconds(static_cast<int64_t>(1 + rng.Below(1000))));
}

template <typename Server>
void BM_Services(benchmark::State& state) {
  for (auto _ : state) {
    EventLoop loop;
    Server server(loop, 2);
    for (int64_t i = 0; i < state.range(0); ++i)
      Spawn(loop, UseAgain(server, static_cast<uint64_t>(i)));
    loop.Run();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * state.range(0) * kRounds);
}
BENCHMARK(BM_Services<FifoServer>)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Services<SharedServer>)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mosa::des

BENCHMARK_MAIN();
