// The event loop and its resources: rows of arrivals with known departures, and queues with a
// closed form for the mean.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "predictor/des/activity.h"
#include "predictor/des/event_loop.h"
#include "predictor/des/event_queue.h"
#include "predictor/des/fifo_server.h"
#include "predictor/des/shared_server.h"
#include "predictor/des/waiting.h"

namespace mosa::des {
namespace {

struct Arrival {
  int64_t at_ns;
  int64_t service_ns;
};

Activity<void> UseFifo(EventLoop& loop, FifoServer& server, Arrival arrival, int64_t& end_ns) {
  co_await loop.Until(Time{arrival.at_ns});
  co_await server.Serve(Nanoseconds(arrival.service_ns));
  end_ns = loop.now().ns;
}

Activity<void> UseShared(EventLoop& loop, SharedServer& server, Arrival arrival, int64_t& end_ns) {
  co_await loop.Until(Time{arrival.at_ns});
  co_await server.Work(Nanoseconds(arrival.service_ns));
  end_ns = loop.now().ns;
}

std::vector<int64_t> FifoEnds(uint32_t servers, const std::vector<Arrival>& arrivals) {
  std::vector<int64_t> ends(arrivals.size());
  EventLoop loop;
  FifoServer server(loop, servers);
  for (size_t i = 0; i < arrivals.size(); ++i)
    Spawn(loop, UseFifo(loop, server, arrivals[i], ends[i]));
  loop.Run();
  return ends;
}

std::vector<int64_t> CreditedEnds(uint32_t servers, const std::vector<Arrival>& arrivals,
                                  Duration credit) {
  std::vector<int64_t> ends(arrivals.size());
  EventLoop loop;
  SharedServer server(loop, servers, credit);
  for (size_t i = 0; i < arrivals.size(); ++i)
    Spawn(loop, UseShared(loop, server, arrivals[i], ends[i]));
  loop.Run();
  return ends;
}

std::vector<int64_t> SharedEnds(uint32_t servers, const std::vector<Arrival>& arrivals) {
  return CreditedEnds(servers, arrivals, Duration());
}

struct FifoRow {
  const char* what;
  uint32_t servers;
  std::vector<Arrival> arrivals;
  std::vector<int64_t> ends;
};

TEST(FifoServer, ServesInTheOrderOfArrival) {
  const FifoRow rows[] = {
      {"alone", 1, {{5, 10}}, {15}},
      {"the second waits", 1, {{0, 10}, {3, 5}}, {10, 15}},
      {"a tie goes by sequence", 1, {{0, 10}, {0, 1}}, {10, 11}},
      {"idle in between", 1, {{0, 10}, {20, 5}}, {10, 25}},
      {"two at once, the third behind the first to end", 2, {{0, 10}, {0, 4}, {1, 6}}, {10, 4, 10}},
      {"nothing to do takes its turn", 1, {{0, 10}, {2, 0}}, {10, 10}},
  };
  for (const FifoRow& row : rows)
    EXPECT_EQ(FifoEnds(row.servers, row.arrivals), row.ends) << row.what;
}

TEST(SharedServer, ServesAllAtOnce) {
  const FifoRow rows[] = {
      {"alone", 1, {{5, 10}}, {15}},
      {"two equal ones take twice as long", 1, {{0, 100}, {0, 100}}, {200, 200}},
      {"the short one ends first", 1, {{0, 100}, {0, 50}}, {150, 100}},
      // 0-40: alone (60 left). 40-100: shared (30 left, the other ends). Then alone.
      {"one comes in between", 1, {{0, 100}, {40, 30}}, {130, 100}},
      {"nobody gets more than one core", 2, {{0, 100}, {0, 50}}, {100, 50}},
      {"three on two cores", 2, {{0, 90}, {0, 90}, {0, 90}}, {135, 135, 135}},
      {"idle in between", 1, {{0, 10}, {50, 10}}, {10, 60}},
      {"no work takes no time", 1, {{0, 10}, {2, 0}}, {10, 2}},
  };
  for (const FifoRow& row : rows)
    EXPECT_EQ(SharedEnds(row.servers, row.arrivals), row.ends) << row.what;
}

Activity<void> Use(SharedServer& server, Duration work) { co_await server.Work(work); }

TEST(SharedServer, DoesAtOnceWhatItHasCreditFor) {
  const FifoRow rows[] = {
      {"full at the beginning", 1, {{0, 100}}, {70}},
      {"less than the credit takes no time", 1, {{5, 20}}, {5}},
      {"and leaves the rest to the next", 1, {{5, 20}, {5, 20}}, {5, 15}},
      {"the next has none when it is used up", 1, {{0, 100}, {0, 70}}, {140, 140}},
      {"it comes back while idle", 1, {{0, 30}, {10, 30}}, {0, 30}},
      {"to what it was", 1, {{0, 100}, {1000, 100}}, {70, 1070}},
      {"not while busy", 1, {{0, 100}, {69, 30}, {80, 30}}, {71, 120, 130}},
  };
  for (const FifoRow& row : rows)
    EXPECT_EQ(CreditedEnds(row.servers, row.arrivals, Nanoseconds(30)), row.ends) << row.what;
  EventLoop loop;
  SharedServer server(loop, 1, Nanoseconds(30));
  Spawn(loop, Use(server, Nanoseconds(100)));
  loop.At(Time{20}, [&] { EXPECT_EQ(server.done().ns, 50) << "what was done at once is done"; });
  loop.Run();
  EXPECT_EQ(server.Backlog().ns, 0);
}

Activity<void> UseOfWeight(EventLoop& loop, SharedServer& server, Duration work, int64_t weight,
                           int64_t& end_ns) {
  Join join;
  server.Begin(work, join, weight);
  co_await join.All();
  end_ns = loop.now().ns;
}

TEST(SharedServer, GivesSharesInProportionToWeights) {
  constexpr int64_t kEven = SharedServer::kEvenWeight;
  const struct {
    const char* what;
    std::vector<std::pair<int64_t, int64_t>> work_and_weight;
    std::vector<int64_t> ends;
  } rows[] = {
      {"alone, whatever its weight", {{100, kEven / 4}}, {100}},
      {"even ones, however heavy", {{100, 3 * kEven}, {100, 3 * kEven}}, {200, 200}},
      // 0-120: three to one; 90 and 30 are done. Then the other alone.
      {"three to one", {{90, 3 * kEven}, {90, kEven}}, {120, 180}},
      // 0-60: one, two and three sixths. Then one to two: 10 and 20. Then alone.
      {"one to two to three", {{30, kEven}, {40, 2 * kEven}, {30, 3 * kEven}}, {100, 90, 60}},
  };
  for (const auto& row : rows) {
    EventLoop loop;
    SharedServer server(loop, 1);
    std::vector<int64_t> ends(row.ends.size());
    for (size_t i = 0; i < ends.size(); ++i)
      Spawn(loop, UseOfWeight(loop, server, Nanoseconds(row.work_and_weight[i].first),
                              row.work_and_weight[i].second, ends[i]));
    loop.Run();
    for (size_t i = 0; i < ends.size(); ++i)
      EXPECT_LE(std::abs(ends[i] - row.ends[i]), 1) << row.what << ": " << ends[i];
    EXPECT_EQ(server.Backlog().ns, 0) << row.what;
  }
}

TEST(SharedServer, KnowsWhatIsDoneAndWhatIsLeft) {
  EventLoop loop;
  SharedServer server(loop, 1);
  Spawn(loop, Use(server, Nanoseconds(100)));
  Spawn(loop, Use(server, Nanoseconds(50)));
  Spawn(loop, Use(server, Nanoseconds(7)));
  struct Look {
    int64_t at_ns, done_ns, left_ns;
  };
  static std::vector<Look> looks;
  looks.clear();
  for (const int64_t at : {1, 60, 157, 500})
    loop.At(Time{at}, [&loop, &server] {
      looks.push_back({loop.now().ns, server.done().ns, server.Backlog().ns});
    });
  loop.Run();
  ASSERT_EQ(looks.size(), 4u);
  for (const Look& look : looks) {
    EXPECT_LE(look.done_ns, look.at_ns + 2);
    EXPECT_GE(look.done_ns, std::min<int64_t>(look.at_ns, 157) - 2);
    EXPECT_EQ(look.done_ns + look.left_ns, 157);
  }
  EXPECT_EQ(looks.back().left_ns, 0);
}

int64_t Exponential(Rng& rng, double mean_ns) {
  const double uniform = (static_cast<double>(rng.Below(1 << 30)) + 0.5) / (1 << 30);
  return std::llround(-mean_ns * std::log(uniform));
}

// Mean time in the system of `count` Poisson arrivals at a load of 0.7.
template <typename Ends>
double MeanTime(uint64_t seed, size_t count, const Ends& ends_of) {
  Rng rng(seed);
  std::vector<Arrival> arrivals;
  int64_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    at += Exponential(rng, 1'000'000);
    arrivals.push_back({at, Exponential(rng, 700'000)});
  }
  const std::vector<int64_t> ends = ends_of(1, arrivals);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(ends[i] - arrivals[i].at_ns);
  return sum / static_cast<double>(count);
}

// M/M/1: mean service / (1 - load), for FIFO and for processor sharing. The closed form must lie
// within four standard errors of the mean of 10 runs.
TEST(Queues, MeetTheClosedFormOfOneServer) {
  constexpr double kExpected = 700'000 / (1 - 0.7);
  for (const auto& ends_of : {FifoEnds, SharedEnds}) {
    std::vector<double> means;
    double mean = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      means.push_back(MeanTime(seed, 20'000, ends_of));
      mean += means.back() / 10;
    }
    double variance = 0;
    for (const double each : means) variance += (each - mean) * (each - mean) / 9;
    const double error = std::sqrt(variance / 10);
    EXPECT_NEAR(mean, kExpected, 4 * error);
    EXPECT_LT(error, 0.04 * kExpected);
  }
}

// Work is conserved: in any order, a busy server ends when all work is done.
TEST(SharedServer, LosesNoWork) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    std::vector<Arrival> arrivals;
    int64_t work = 0;
    for (int i = 0; i < 200; ++i) {
      arrivals.push_back({static_cast<int64_t>(rng.Below(1000)),
                          static_cast<int64_t>(10'000 + rng.Below(1'000'000))});
      work += arrivals.back().service_ns;
    }
    arrivals[0].at_ns = 0;
    int64_t last = 0;
    for (const int64_t end : SharedEnds(1, arrivals)) last = std::max(last, end);
    EXPECT_NEAR(static_cast<double>(last), static_cast<double>(work), 1000) << "seed " << seed;
  }
}

Activity<uint64_t> Twice(EventLoop& loop, uint64_t number) {
  co_await loop.Sleep(Nanoseconds(5));
  co_return number * 2;
}

Activity<void> Sum(EventLoop& loop, uint64_t& sum) {
  for (uint64_t i = 1; i <= 3; ++i) sum += co_await Twice(loop, i);
}

TEST(Activity, AwaitsOthersAndTheirValues) {
  EventLoop loop;
  uint64_t sum = 0;
  Spawn(loop, Sum(loop, sum));
  loop.Run();
  EXPECT_EQ(sum, 12U);
  EXPECT_EQ(loop.now().ns, 15);
}

struct CountsItsEnd {
  explicit CountsItsEnd(int* ended) : count(ended) {}
  ~CountsItsEnd() { ++*count; }
  int* count;
};

Activity<uint64_t> AtOnce(uint64_t number) { co_return number; }

// Each waits now and then, so that its waiter is resumed by the loop and goes on from there.
Activity<void> CallMany(EventLoop& loop, uint64_t calls, uint64_t& sum) {
  for (uint64_t i = 0; i < calls; ++i) {
    sum += co_await AtOnce(1);
    if (i % 1000 == 0) sum += co_await Twice(loop, 0);
  }
}

TEST(Activity, ManyThatDoNotWaitTakeNoStack) {
  EventLoop loop;
  uint64_t sum = 0;
  Spawn(loop, CallMany(loop, 2'000'000, sum));
  loop.Run();
  EXPECT_EQ(sum, 2'000'000U);
}

Activity<void> WaitForEver(Signal& signal, int* ended) {
  const CountsItsEnd counter(ended);
  co_await signal.Wait();
}
Activity<void> WaitInAnother(Signal& signal, int* ended) {
  const CountsItsEnd counter(ended);
  co_await WaitForEver(signal, ended);
}

TEST(Activity, EndsWithItsLoop) {
  int ended = 0;
  {
    EventLoop loop;
    Signal signal(loop);
    Spawn(loop, WaitForEver(signal, &ended));
    Spawn(loop, WaitInAnother(signal, &ended));
    loop.Run();
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 3);
}

Activity<void> UseSlot(EventLoop& loop, Slots& slots, Group& group, int64_t& end_ns) {
  group.Begin();
  co_await slots.Take();
  co_await loop.Sleep(Nanoseconds(10));
  slots.Return();
  end_ns = loop.now().ns;
  group.End();
}
Activity<void> AwaitAll(EventLoop& loop, Group& group, int64_t& end_ns) {
  while (group.under_way() > 0) co_await group.changed().Wait();
  end_ns = loop.now().ns;
}

TEST(Waiting, FewGoOnAtATimeAndSomebodyWaitsForAll) {
  EventLoop loop;
  Slots slots(loop, 2);
  Group group(loop);
  std::vector<int64_t> ends(5);
  int64_t all = 0;
  for (int64_t& end : ends) Spawn(loop, UseSlot(loop, slots, group, end));
  Spawn(loop, AwaitAll(loop, group, all));
  loop.Run();
  EXPECT_EQ(ends, (std::vector<int64_t>{10, 10, 20, 20, 30}));
  EXPECT_EQ(all, 30);
}

Activity<void> NoteWhen(Signal& signal, std::vector<int>& list, int what) {
  co_await signal.Wait();
  list.push_back(what);
}

// A lone waiter resumes in the same event, unless something else was scheduled before.
TEST(Signal, GivenLastNeedsNoEventForTheLastWhoWaits) {
  EventLoop loop;
  Signal signal(loop);
  std::vector<int> order;
  struct Both {
    Signal& signal;
    std::vector<int>& order;
  } both{signal, order};
  Spawn(loop, NoteWhen(signal, order, 1));
  loop.At(Time{5}, [b = &both] { b->signal.GiveLast(); });
  loop.Run();
  EXPECT_EQ(loop.events(), 1U);
  for (const int what : {3, 4}) Spawn(loop, NoteWhen(signal, order, what));
  loop.At(Time{6}, [b = &both] { b->signal.GiveLast(); });
  loop.At(Time{6}, [b = &both] { b->order.push_back(2); });
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(loop.events(), 5U);
}

Activity<void> AwaitBoth(EventLoop& loop, Join& join, int64_t& end_ns) {
  co_await join.All();
  end_ns = loop.now().ns;
}

TEST(SharedServer, ServesForAJoinAsForOneWhoWaits) {
  EventLoop loop;
  SharedServer shared(loop, 1);
  SharedServer alone(loop, 1);
  Join join;
  int64_t all = 0;
  int64_t end = 0;
  shared.Begin(Nanoseconds(100), join);
  shared.Begin(Nanoseconds(0), join);  // Done at once.
  alone.Begin(Nanoseconds(120), join);
  Spawn(loop, UseShared(loop, shared, {0, 50}, end));
  Spawn(loop, AwaitBoth(loop, join, all));
  loop.Run();
  EXPECT_EQ(end, 100);
  EXPECT_EQ(all, 150);
  Join nothing;
  Spawn(loop, AwaitBoth(loop, nothing, all));
  EXPECT_EQ(all, 150);  // All() did not wait.
}

// Compares with a map ordered by time and then by sequence. New entries are due at the same time,
// soon, or much later.
TEST(EventQueue, GivesTheEarliestFirstAndTiesInTheOrderOfAdding) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    int64_t now_ns = int64_t{1} << 60;
    EventQueue queue(now_ns);
    std::set<std::pair<int64_t, uint64_t>> expected;
    uint64_t sequence = 0;
    EventQueue::Entry next;
    do {
      for (uint64_t more = sequence < 5'000 ? rng.Below(4) : 0; more > 0; --more) {
        const int64_t at_ns =
            now_ns + static_cast<int64_t>(rng.Below(uint64_t{1} << rng.Below(40)) / 2);
        expected.emplace(at_ns, sequence);
        queue.Add({at_ns, sequence++, 0});
      }
      if (expected.empty()) continue;
      EXPECT_EQ(queue.HasMoreNow(), expected.begin()->first == now_ns);
      ASSERT_TRUE(queue.Take(next));
      ASSERT_EQ(std::pair(next.at_ns, next.sequence), *expected.begin()) << "seed " << seed;
      now_ns = next.at_ns;
      expected.erase(expected.begin());
    } while (!expected.empty() || sequence < 5'000);
    EXPECT_FALSE(queue.Take(next));
  }
}

TEST(EventQueue, ReachesToTheEndOfTime) {
  EventQueue queue(0);
  const int64_t far = int64_t{1} << 62;
  uint64_t sequence = 0;
  for (const int64_t at_ns : {INT64_MAX, far, far - 1, int64_t{0}, far, INT64_MAX})
    queue.Add({at_ns, sequence++, 0});
  std::vector<uint64_t> order;
  for (EventQueue::Entry next; queue.Take(next);) order.push_back(next.sequence);
  EXPECT_EQ(order, (std::vector<uint64_t>{3, 2, 1, 4, 0, 5}));
}

TEST(EventLoop, RunsTiesInTheOrderOfAsking) {
  EventLoop loop;
  std::vector<int> order;
  std::vector<int>* const list = &order;
  loop.At(Time{7}, [list] { list->push_back(3); });
  loop.At(Time{5}, [list] { list->push_back(1); });
  loop.At(Time{5}, [list] { list->push_back(2); });
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(loop.events(), 3U);
}

TEST(EventLoop, RunsWhatIsAskedForAtOnceBehindWhatWasAskedForEarlier) {
  EventLoop loop;
  std::vector<int> order;
  struct Both {
    EventLoop& loop;
    std::vector<int>& list;
  } both{loop, order};
  loop.At(Time{5}, [b = &both] {
    b->list.push_back(1);
    b->loop.At(Time{5}, [b] {
      b->list.push_back(3);
      b->loop.At(Time{5}, [b] { b->list.push_back(4); });
    });
    b->loop.At(Time{6}, [b] { b->list.push_back(5); });
  });
  loop.At(Time{5}, [b = &both] { b->list.push_back(2); });
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(loop.now().ns, 6);
}

Activity<void> NoteEnds(SharedServer& server, std::vector<int>& list) {
  for (const int end : {10, 20}) {
    co_await server.Work(Nanoseconds(10));
    list.push_back(end);
  }
}

// The end of work is one event. There is a second one only if something else was scheduled before.
TEST(SharedServer, LetsWhoWaitedGoOnBehindWhatWasAskedForBefore) {
  EventLoop loop;
  SharedServer server(loop, 1);
  std::vector<int> order;
  Spawn(loop, NoteEnds(server, order));
  loop.At(Time{10}, [list = &order] { list->push_back(1); });
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 10, 20}));
  EXPECT_EQ(loop.events(), 4U);
}

TEST(EventLoop, GoesOnWhereItWasStoppedAmongTies) {
  EventLoop loop;
  std::vector<int> order;
  struct Both {
    EventLoop& loop;
    std::vector<int>& list;
  } both{loop, order};
  loop.At(Time{5}, [b = &both] {
    b->loop.At(Time{5}, [b] { b->list.push_back(2); });
    b->list.push_back(1);
    b->loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1}));
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

uint64_t ResidentBytes() {
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

Activity<void> GoOnAtOnce(EventLoop& loop, uint32_t times, uint64_t& resident_bytes) {
  for (uint32_t i = 0; i < times; ++i) co_await loop.Sleep(Nanoseconds(0));
  resident_bytes = ResidentBytes();
}

TEST(EventLoop, TakesNoMemoryForWhatHasRunWhileTimeStandsStill) {
  constexpr uint32_t kTimes = 1'000'000;
  EventLoop loop;
  uint64_t first_bytes = 0;
  uint64_t second_bytes = 0;
  const uint64_t before_bytes = ResidentBytes();
  ASSERT_GT(before_bytes, 0U);
  Spawn(loop, GoOnAtOnce(loop, kTimes, first_bytes));
  Spawn(loop, GoOnAtOnce(loop, kTimes, second_bytes));
  loop.Run();
  EXPECT_EQ(loop.now().ns, 0);
  EXPECT_EQ(loop.events(), 2 * kTimes);
  EXPECT_LT(first_bytes, before_bytes + kTimes);
  EXPECT_LT(second_bytes, before_bytes + kTimes);
}

Activity<void> JoinTwice(EventLoop& loop, SharedServer& server, std::vector<int64_t>& ends_ns) {
  Join join;
  server.Begin(Nanoseconds(100), join);
  co_await join.All();
  ends_ns.push_back(loop.now().ns);
  server.Begin(Nanoseconds(100), join);
  co_await loop.Sleep(Nanoseconds(1000));
  ends_ns.push_back(loop.now().ns);
  co_await join.All();
  ends_ns.push_back(loop.now().ns);
}

TEST(SharedServer, ResumesNobodyForWorkThatIsNotAwaitedYet) {
  EventLoop loop;
  SharedServer server(loop, 1);
  std::vector<int64_t> ends_ns;
  Spawn(loop, JoinTwice(loop, server, ends_ns));
  loop.Run();
  EXPECT_EQ(ends_ns, (std::vector<int64_t>{100, 1100, 1100}));
}

uint64_t DigestOf(uint64_t seed) {
  Rng rng(seed);
  EventLoop loop;
  FifoServer fifo(loop, 3);
  SharedServer shared(loop, 2);
  std::vector<int64_t> ends(2000);
  for (size_t i = 0; i < ends.size(); ++i) {
    const Arrival arrival{static_cast<int64_t>(rng.Below(1'000'000)),
                          static_cast<int64_t>(rng.Below(2'000))};
    Spawn(loop, i % 2 == 0 ? UseFifo(loop, fifo, arrival, ends[i])
                           : UseShared(loop, shared, arrival, ends[i]));
  }
  loop.Run();
  return loop.digest();
}

TEST(EventLoop, RepeatsItselfExactly) {
  EXPECT_EQ(DigestOf(1), DigestOf(1));
  EXPECT_NE(DigestOf(1), DigestOf(2));
}

}  // namespace
}  // namespace mosa::des
