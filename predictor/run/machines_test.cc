#include "predictor/run/machines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace mosa::predict {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

// Links of 10 MB/s. Each stream has a queue of 5 ms; a host at which several meet has one of 50 ms.
Platform QueueingLinks() {
  Platform platform;
  platform.host.out_bytes_per_second = platform.host.in_bytes_per_second = 10'000'000;
  platform.network.latency_ns = 0;
  platform.network.out_queue_ns_max = 5'000'000;
  platform.network.in_queue_ns_max = 50'000'000;
  return platform;
}

des::Activity<void> Send(Machines& machines, uint32_t from, uint32_t to, uint64_t bytes) {
  co_await machines.Transfer(MachineIndex{from}, MachineIndex{to}, bytes);
}

TEST(Machines, CountWhatLinksCarryBesides) {
  des::EventLoop loop;
  Configuration configuration;
  configuration.hosts = 3;
  configuration.manager_apart = true;
  const Platform platform = QueueingLinks();
  Machines machines(loop, platform, configuration);
  machines.SendMessage(MachineIndex{0}, MachineIndex{1}, 1000);
  machines.SendMessage(MachineIndex{2}, MachineIndex{2}, 1000);  // Crosses no link.
  des::Spawn(loop, Send(machines, 0, 1, kMebibyte));
  loop.At(Time{10'000'000'000}, [&] { loop.Stop(); });
  loop.Run();
  const LinkBytes sender = machines.link(MachineIndex{0}), other = machines.link(MachineIndex{2});
  EXPECT_EQ(sender.sent, kMebibyte);
  EXPECT_EQ(machines.link(MachineIndex{1}).received, kMebibyte);
  EXPECT_GT(other.control_sent, 0u);  // Heartbeats.
  EXPECT_GT(sender.control_sent, other.control_sent + 1000);
  EXPECT_LT(sender.control_sent, other.control_sent + 1000 + kMebibyte / 100);
  uint64_t sent = 0, received = 0;
  for (uint32_t i = 0; i < machines.count(); ++i) {
    sent += machines.link(MachineIndex{i}).control_sent;
    received += machines.link(MachineIndex{i}).control_received;
  }
  EXPECT_EQ(sent, received);
}

// A node and a mount each send heartbeats.
TEST(Machines, AreHeardOfByWhatIsOnThem) {
  const auto alive_sent = [](uint32_t storage_hosts) {
    des::EventLoop loop;
    Configuration configuration;
    configuration.hosts = 2;
    configuration.storage_hosts = storage_hosts;
    configuration.manager_apart = true;
    const Platform platform = QueueingLinks();
    Machines machines(loop, platform, configuration);
    loop.At(Time{10'000'000'000}, [&] { loop.Stop(); });
    loop.Run();
    std::vector<uint64_t> sent;
    for (uint32_t i = 0; i < machines.count(); ++i)
      sent.push_back(machines.link(MachineIndex{i}).control_sent);
    return sent;
  };
  const std::vector<uint64_t> together = alive_sent(0), apart = alive_sent(3);
  ASSERT_EQ(together.size(), 3U);
  ASSERT_EQ(apart.size(), 6U);
  EXPECT_GT(apart[0], 0U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(apart[i] * 2, together[0]) << i;
  EXPECT_EQ(apart[5] * 4, together[2] * 5) << "the manager answers five instead of four";
}

// A transfer in progress counts as far as the link has carried it.
TEST(Machines, CountPartsOfTransfers) {
  des::EventLoop loop;
  const Configuration configuration;
  const Platform platform = QueueingLinks();
  Machines machines(loop, platform, configuration);
  des::Spawn(loop, Send(machines, 0, 1, kMebibyte));
  loop.At(Time{50'000'000}, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_NEAR(static_cast<double>(machines.link(MachineIndex{0}).sent), 500'000, 1000);
  loop.EndAll();
}

using Ways = std::vector<std::pair<uint32_t, uint32_t>>;

// How long a message from host 0 to host 1 waits `at_ms` after a MiB has left on each way.
double WaitsMs(const Ways& ways, int64_t at_ms, const Platform& platform = QueueingLinks()) {
  des::EventLoop loop;
  Configuration configuration;
  Machines machines(loop, platform, configuration);
  for (const auto& [from, to] : ways) des::Spawn(loop, Send(machines, from, to, kMebibyte));
  std::optional<Duration> delay;
  loop.At(Time{at_ms * 1'000'000}, [&] {
    delay = machines.MessageDelay(MachineIndex{0}, MachineIndex{1}, 0);
    loop.Stop();
  });
  loop.Run();
  loop.EndAll();
  return static_cast<double>(delay.value_or(Duration{-1}).ns) / 1e6;
}

TEST(Machines, LetMessagesWaitWhereQueuesAre) {
  const struct {
    const char* what;
    Ways ways;
    double waits_ms;
  } rows[] = {
      {"nothing is under way", {}, 0},
      {"a stream of its own sender", {{0, 1}}, 5},
      {"two of them", {{0, 1}, {0, 2}}, 10},
      {"no queue is longer than the longest",
       {{0, 2}, {0, 2}, {0, 2}, {0, 2}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}},
       50},
      {"one host sends as fast as another receives", {{2, 1}}, 0},
      {"several streams of that host are no more", {{2, 1}, {2, 1}, {2, 1}}, 0},
      {"streams of two hosts meet", {{2, 1}, {3, 1}}, 50},
      {"one of them is the sender's own", {{0, 1}, {2, 1}}, 55},
      {"they meet elsewhere", {{2, 3}, {1, 3}}, 0},
  };
  for (const auto& row : rows) EXPECT_NEAR(WaitsMs(row.ways, 10), row.waits_ms, 0.01) << row.what;
}

TEST(Machines, LetMessagesWaitNoLongerThanForWhatIsUnderWay) {
  // 2 MiB take 209.7 ms.
  const Ways meet = {{2, 1}, {3, 1}};
  EXPECT_NEAR(WaitsMs(meet, 100), 50, 0.01);
  EXPECT_NEAR(WaitsMs(meet, 200), 9.7, 0.1);
  EXPECT_NEAR(WaitsMs(meet, 300), 0, 0.01);
  Platform deep = QueueingLinks();
  deep.network.in_queue_ns_max = deep.network.out_queue_ns_max = uint64_t{1} << 60;
  EXPECT_NEAR(WaitsMs(meet, 10, deep), 199.7, 0.1) << "and the largest figure does no harm";
}

TEST(Machines, SendMessagesAsFastAsTheSlowerLinkIs) {
  const struct {
    const char* configuration;
    double expected_ms;  // For 1,000 bytes from host 0 to host 1.
  } rows[] = {{"", 0.1},
              {"h1.out=1000000", 1},
              {"h2.in=100000", 10},
              {"h1.out=1000000,h2.in=100000", 10},
              {"h1.in=100000,h2.out=100000", 0.1}};
  for (const auto& row : rows) {
    des::EventLoop loop;
    const Platform platform = QueueingLinks();
    const auto configuration = ParseConfiguration(row.configuration);
    ASSERT_TRUE(configuration.ok()) << configuration.status();
    const Machines machines(loop, platform, *configuration);
    const Duration delay = machines.MessageDelay(MachineIndex{0}, MachineIndex{1}, 1000);
    EXPECT_NEAR(static_cast<double>(delay.ns) / 1e6, row.expected_ms, 1e-6) << row.configuration;
  }
}

TEST(Machines, LetBurstsThroughLinksThatWereIdle) {
  const struct {
    const char* what;
    Ways ways;
    double ends_ms;  // For the last MiB: 104.86 ms without bursts, each burst being 25 ms.
  } rows[] = {{"both directions have their own", {{0, 1}}, 79.86},
              {"which two streams share", {{0, 1}, {0, 2}}, 184.72},
              {"as they do where they meet", {{0, 2}, {1, 2}}, 184.72}};
  Platform bursting = QueueingLinks();
  bursting.network.burst_bytes = 250'000;
  for (const auto& row : rows) {
    des::EventLoop loop;
    Machines machines(loop, bursting, Configuration());
    for (const auto& [from, to] : row.ways) des::Spawn(loop, Send(machines, from, to, kMebibyte));
    loop.Run();
    EXPECT_NEAR(static_cast<double>(loop.now().ns) / 1e6, row.ends_ms, 0.01) << row.what;
  }
}

TEST(Machines, WorkAtBothEndsOnBytesThatAreUnderWay) {
  const struct {
    const char* what;
    uint32_t shared_cores, to;
    int64_t sending_ms, receiving_ms;
    double ends_ms;  // For a MiB, which the link carries in 104.86 ms.
  } rows[] = {{"the link is the limit", 0, 1, 90, 100, 104.86},
              {"the sender is", 0, 1, 200, 150, 200},
              {"the receiver is", 0, 1, 150, 200, 200},
              {"both have the same core", 1, 1, 80, 80, 160},
              {"a core each", 2, 1, 80, 80, 104.86},
              {"inside a host of one core", 0, 0, 80, 80, 160},
              {"nobody works", 0, 1, 0, 0, 104.86}};
  for (const auto& row : rows) {
    Platform platform = QueueingLinks();
    platform.shared_cores = row.shared_cores;
    platform.network.loopback_latency_ns = 0;
    des::EventLoop loop;
    Machines machines(loop, platform, Configuration());
    const auto send = [&]() -> des::Activity<void> {
      co_await machines.Transfer(MachineIndex{0}, MachineIndex{row.to}, kMebibyte,
                                 Milliseconds(row.sending_ms), Milliseconds(row.receiving_ms));
    };
    des::Spawn(loop, send());
    loop.Run();
    EXPECT_NEAR(static_cast<double>(loop.now().ns) / 1e6, row.ends_ms, 0.01) << row.what;
    double busy_s = 0;
    for (uint32_t i = 0; i <= row.to; ++i) busy_s += machines.UseOf(MachineIndex{i}).store_core_s;
    EXPECT_NEAR(busy_s, static_cast<double>(row.sending_ms + row.receiving_ms) / 1e3, 1e-6)
        << row.what;
  }
}

TEST(Machines, StretchWorkByWhatGoesOnBesideIt) {
  Platform platform = QueueingLinks();
  platform.shared_cores = 2;
  des::EventLoop loop;
  Machines machines(loop, platform, Configuration());
  const auto work = [&]() -> des::Activity<void> {
    co_await machines.Work(MachineIndex{0}, Milliseconds(10));
  };
  EXPECT_EQ(machines.Stretched(MachineIndex{0}, Milliseconds(3)), Milliseconds(3));
  for (int i = 0; i < 3; ++i) des::Spawn(loop, work());
  loop.At(Time{1'000'000}, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(machines.Stretched(MachineIndex{1}, Milliseconds(3)), Milliseconds(6)) << "four on two";
  loop.EndAll();
}

// Arrival times of three MiB that host 0 sends to hosts 1, 2 and 3.
std::vector<double> EndsMs(const Platform& platform, uint64_t seed) {
  des::EventLoop loop;
  Configuration configuration;
  configuration.seed = seed;
  Machines machines(loop, platform, configuration);
  std::vector<double> ends(3);
  const auto send = [&](uint32_t to) -> des::Activity<void> {
    co_await machines.Transfer(MachineIndex{0}, MachineIndex{to}, kMebibyte);
    ends[to - 1] = static_cast<double>(loop.now().ns) / 1e6;
  };
  for (uint32_t to = 1; to <= 3; ++to) des::Spawn(loop, send(to));
  loop.Run();
  return ends;
}

TEST(Machines, GiveStreamsTheUnevenSharesThatWereMeasured) {
  constexpr double kAllMs = 3 * 104.86;
  for (const double even : EndsMs(QueueingLinks(), 1)) EXPECT_NEAR(even, kAllMs, 0.01);
  Platform uneven = QueueingLinks();
  uneven.network.out_unevenness = 0.7;
  std::set<std::vector<double>> seen;
  double first = 0;
  constexpr int kSeeds = 200;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::vector<double> ends = EndsMs(uneven, static_cast<uint64_t>(seed));
    EXPECT_NEAR(*std::max_element(ends.begin(), ends.end()), kAllMs, 0.01)
        << "no byte is lost by it";
    EXPECT_EQ(ends, EndsMs(uneven, static_cast<uint64_t>(seed)));
    first += *std::min_element(ends.begin(), ends.end()) / kSeeds;
    seen.insert(ends);
  }
  EXPECT_GT(seen.size(), kSeeds / 2U);
  // The largest of three log-normal weights with this deviation has about half of their sum.
  EXPECT_NEAR(first, 2 * 104.86, 0.1 * 104.86);
}

}  // namespace
}  // namespace mosa::predict
