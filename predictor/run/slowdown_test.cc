// A part that is slower makes workflows that use it longer, and no other part does.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

constexpr const char* kThreeHosts = "hosts=3,slots=1,manager=apart,system=dss";

// Files with chunks on all hosts, written and read by all.
Workflow Striped() {
  WorkflowMaker maker;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i), next = std::to_string((i + 1) % 6);
    maker.File("a." + n, 6 * kMiB).File("b." + n, 2 * kMiB);
    maker.Task("make_" + n, {}, {"a." + n}, Milliseconds(50));
    maker.Task("turn_" + n, {"a." + n, "a." + next}, {"b." + n}, Milliseconds(50));
  }
  return maker.Build();
}

double TurnaroundSeconds(const Workflow& workflow, const std::string& configuration,
                         const Slowdown& slower) {
  const Prediction prediction =
      MustPredict(workflow, BusyPlatform(), configuration, {.slower = slower});
  EXPECT_FALSE(prediction.failure) << *prediction.failure;
  return static_cast<double>(prediction.turnaround.ns) / 1e9;
}

TEST(SlowdownTest, EachMakesTheWorkflowLonger) {
  using Slow = std::function<void(Slowdown&)>;
  const auto on_host = [](const std::function<void(HostSlowdown&)>& slow) -> Slow {
    return [slow](Slowdown& slower) { slow(slower.hosts[1]); };
  };
  const std::pair<const char*, Slow> rows[] = {
      {"out", on_host([](HostSlowdown& host) { host.out = 4; })},
      {"in", on_host([](HostSlowdown& host) { host.in = 4; })},
      {"work", on_host([](HostSlowdown& host) { host.work = 8; })},
      {"quota", on_host([](HostSlowdown& host) { host.quota = 8; })},
      {"tasks", on_host([](HostSlowdown& host) { host.tasks = 8; })},
      {"latency", on_host([](HostSlowdown& host) { host.latency = Milliseconds(10); })},
      {"node wait", on_host([](HostSlowdown& host) { host.node_wait = Milliseconds(50); })},
      {"mount wait", on_host([](HostSlowdown& host) { host.mount_wait = Milliseconds(20); })},
      {"node pause", on_host([](HostSlowdown& host) { host.node_pause = 0.8; })},
      {"mount pause", on_host([](HostSlowdown& host) { host.mount_pause = 0.8; })},
      {"objects", on_host([](HostSlowdown& host) { host.object_ns_per_byte = 100; })},
      {"manager wait", [](Slowdown& slower) { slower.manager_wait = Milliseconds(20); }},
      {"manager work", [](Slowdown& slower) { slower.manager_work = Milliseconds(5); }},
      {"manager log", [](Slowdown& slower) { slower.manager_log = Milliseconds(20); }},
      {"manager pause", [](Slowdown& slower) { slower.manager_pause = 0.8; }},
  };
  const Workflow workflow = Striped();
  const double usual_s = TurnaroundSeconds(workflow, kThreeHosts, {});
  for (const auto& [what, slow] : rows) {
    Slowdown slower;
    slow(slower);
    EXPECT_GT(TurnaroundSeconds(workflow, kThreeHosts, slower), 1.1 * usual_s) << what;
  }
  EXPECT_EQ(TurnaroundSeconds(workflow, kThreeHosts, {}), usual_s) << "the same again";
}

// A mount gets the descriptors of its own host's objects from the storage node there.
TEST(SlowdownTest, AMountWaitsForTheNodeOfItsOwnHost) {
  WorkflowMaker maker;
  maker.File("here", 4 * kMiB, {{"placement", "local"}});
  maker.Task("make", {}, {"here"}, Milliseconds(10)).Task("use", {"here"}, {}, Milliseconds(10));
  const Workflow workflow = maker.Build();
  const std::string one = "hosts=1,slots=1,manager=apart,system=wass";
  Slowdown slower;
  slower.hosts[0].node_wait = Milliseconds(200);
  EXPECT_GT(TurnaroundSeconds(workflow, one, slower), TurnaroundSeconds(workflow, one, {}) + 0.15);
}

}  // namespace
}  // namespace mosa::predict
