// How busy a run's machines were, of what is made up here and of this machine's kernel.
#include "tools/runner/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mosa::cli {
namespace {

DaemonResidence DaemonOn(const std::string& host, uint64_t machine, uint64_t own_s,
                         const char* component = "storage") {
  constexpr uint64_t kSecond = 1'000'000'000;
  DaemonResidence daemon{.component = component,
                         .host = host,
                         .id = host,
                         .failure = {},
                         .since_start = false,
                         .between = Seconds(5),
                         .snapshot = {}};
  daemon.snapshot.amounts = {
      {"processor_ns", own_s * kSecond, true}, {"machine_id", machine, false},
      {"machine_processors", 4, false},        {"machine_busy_ns", 6 * kSecond, true},
      {"machine_stolen_ns", 0, true},          {"machine_waited_ns", kSecond, true}};
  return daemon;
}

// Two hosts on the runner's machine, and one that is reached by a command.
struct ThreeHosts {
  RunRecord record;
  RunnerLoad before, after;
  ClusterResidence during{.cluster = "c", .names = {}, .daemons = {}};

  ThreeHosts() {
    record.start = {1000};
    record.hosts.resize(3);
    for (size_t i = 0; i < 3; ++i)
      record.hosts[i].name = std::string(1, static_cast<char>('a' + i));
    record.hosts[2].exec = {"ssh", "c"};
    record.tasks.resize(2);
    Attempt attempt;
    attempt.processor = Seconds(2);
    for (const auto& [host, start] : {std::pair("a", 2000), {"b", 3000}, {"b", 10}}) {
      attempt.host = host;
      attempt.start = {start};
      record.tasks[1].attempts.push_back(attempt);
    }
    before.use = {
        .machine = 7, .processors = 2, .busy_ns = 5, .stolen_ns = 5, .waited_ns = 0, .own_ns = 5};
    after = before;
    after.taken = Time() + Seconds(8);
    after.use.busy_ns += 12'000'000'000;
    after.use.stolen_ns += 1'000'000'000;
    after.use.own_ns += 5'000'000'000;
    during.daemons = {DaemonOn("-", 7, 1, "manager"), DaemonOn("a", 7, 1), DaemonOn("c", 9, 1)};
  }
  nlohmann::json Machines(bool asked = true) const {
    return ToJson(MachinesOfRun(record, before, after, asked ? &during : nullptr));
  }
};

TEST(MachinesOfRun, TakeOwnWorkOffAllWork) {
  const auto machines = ThreeHosts().Machines();
  ASSERT_EQ(machines.size(), 2U);
  EXPECT_EQ(machines[0], nlohmann::json({{"hosts", {"a", "b"}},
                                         {"runner", true},
                                         {"manager", true},
                                         {"processors", 2},
                                         {"seconds", 8.0},
                                         {"busy_s", 12.0},
                                         {"stolen_s", 1.0},
                                         {"daemons_s", 2.0},
                                         {"tasks_s", 4.0},
                                         {"others_s", 6.0}}));  // The runner had one of its own.
  EXPECT_EQ(machines[1]["hosts"], nlohmann::json({"c"}));
  EXPECT_EQ(machines[1]["busy_s"], 6.0);
  EXPECT_EQ(machines[1]["seconds"], 5.0);
  EXPECT_EQ(machines[1]["waited_s"], 1.0);
  EXPECT_EQ(machines[1]["manager"], false);
  ThreeHosts apart;  // Storage on a machine without tasks.
  apart.during.daemons.push_back(DaemonOn("s", 5, 1));
  EXPECT_EQ(apart.Machines()[0]["hosts"], nlohmann::json({"s"}));
  EXPECT_EQ(apart.Machines()[0]["others_s"], 5.0);
}

bool SaysOthers(const nlohmann::json& machines) {
  return std::ranges::any_of(machines, [](const auto& each) { return each.contains("others_s"); });
}

// Its tasks are on any machine, and so is a daemon that has no name.
TEST(MachinesOfRun, SayNothingOfAnyWhereAHostIsOnNoneThatIsKnown) {
  ThreeHosts unnamed;
  unnamed.record.hosts[2].name = "10.0.0.3";
  EXPECT_FALSE(SaysOthers(unnamed.Machines()));
  ThreeHosts nameless;
  nameless.during.daemons[2].host = "-";
  EXPECT_FALSE(SaysOthers(nameless.Machines()));
  ThreeHosts alone;
  EXPECT_FALSE(SaysOthers(alone.Machines(false)));
  alone.record.hosts.pop_back();
  EXPECT_TRUE(SaysOthers(alone.Machines(false)));
  ThreeHosts mount;
  mount.during.daemons.push_back(DaemonOn("-", 0, 0, "mount"));
  mount.during.daemons.back().failure = "it is gone";
  EXPECT_FALSE(SaysOthers(mount.Machines()));
}

TEST(MachinesOfRun, SayNothingOfOthersWhereTheKernelTookBackWhatItSaid) {
  ThreeHosts stolen;
  stolen.after.use.stolen_ns = 0;
  EXPECT_FALSE(stolen.Machines()[0].contains("others_s"));
  EXPECT_EQ(stolen.Machines()[0]["stolen_s"], 0.0);
  ThreeHosts daemon;
  daemon.during.daemons.push_back(DaemonOn("s", 5, 1));
  std::erase_if(daemon.during.daemons.back().snapshot.amounts,
                [](const auto& amount) { return amount.name == "machine_stolen_ns"; });
  EXPECT_FALSE(daemon.Machines()[0].contains("others_s"));
}

TEST(MachinesOfRun, SayNothingOfOthersWhereOwnWorkIsNotKnown) {
  EXPECT_FALSE(ThreeHosts().Machines()[1].contains("others_s"));  // Tasks by a command.
  ThreeHosts failed;
  failed.during.daemons.push_back(DaemonOn("d", 0, 0));  // Wherever it is.
  EXPECT_FALSE(failed.Machines()[0].contains("others_s"));
  failed.during.daemons.back() = DaemonOn("c", 9, 1);
  failed.during.daemons.back().failure = "it is gone";
  EXPECT_TRUE(failed.Machines()[0].contains("others_s"));
  failed.during.daemons.back().host = "a";
  EXPECT_FALSE(failed.Machines()[0].contains("others_s"));
  ThreeHosts restarted;
  restarted.during.daemons[0].since_start = true;
  EXPECT_FALSE(restarted.Machines()[0].contains("others_s"));
  ThreeHosts unknown;
  unknown.before.use = unknown.after.use = {};
  EXPECT_TRUE(unknown.Machines(false).empty());
}

// What daemons say of their machine's kernel, too.
TEST(MachinesOfRun, SayNothingOfOthersWhereADaemonsKernelTookItBack) {
  const auto with_stolen = [](uint64_t stolen_ns) {
    ThreeHosts hosts;
    hosts.during.daemons = {DaemonOn("s", 5, 1)};
    for (ResidenceAmount& amount : hosts.during.daemons[0].snapshot.amounts)
      if (amount.name == "machine_stolen_ns") amount.value = stolen_ns;
    return hosts;
  };
  ThreeHosts hosts = with_stolen(3'000'000'000);
  hosts.record.hosts.pop_back();
  const ClusterResidence earlier = with_stolen(4'000'000'000).during;
  hosts.during = Since(hosts.during, earlier);
  EXPECT_FALSE(hosts.Machines()[0].contains("others_s"));
  hosts.during = Since(earlier, with_stolen(3'000'000'000).during);
  EXPECT_TRUE(hosts.Machines()[0].contains("others_s"));
  EXPECT_EQ(hosts.Machines()[0]["stolen_s"], 1.0);
}

// One that the kernel of this machine gives.
TEST(ProcessorUse, Grows) {
  const ProcessorUse before = ReadProcessorUse();
  ASSERT_NE(before.machine, 0U);
  EXPECT_LT(before.machine, uint64_t{1} << 53);
  EXPECT_GE(before.processors, 1U);
  volatile uint64_t sum = 0;
  ProcessorUse after = before;
  while (after.own_ns < before.own_ns + 30'000'000 || after.busy_ns == before.busy_ns) {
    for (uint64_t i = 0; i < 1'000'000; ++i) sum = sum + i;
    after = ReadProcessorUse();
  }
  EXPECT_EQ(after.machine, before.machine);
  EXPECT_GE(after.waited_ns, before.waited_ns);
}

}  // namespace
}  // namespace mosa::cli
