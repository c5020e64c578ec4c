#include "predictor/workflow/scheduler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/workflow/execution.h"
#include "predictor/workflow/random_workflow_fixture.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kRate = 100'000'000;  // 100 bytes per microsecond.
constexpr uint64_t kMegabyte = 1'000'000;

std::vector<SchedulerHost> Hosts(size_t count, uint32_t slots = 1) {
  return std::vector<SchedulerHost>(count,
                                    SchedulerHost{.slots = slots, .link_bytes_per_second = kRate});
}

ReadyTask Ready(uint32_t task, std::vector<HostBytes> held = {}, uint64_t bytes = kMegabyte) {
  ReadyTask ready;
  ready.task = TaskIndex{task};
  ready.input_bytes = bytes;
  ready.held = std::move(held);
  return ready;
}

HostBytes On(uint32_t host, uint64_t bytes = kMegabyte) { return {HostIndex{host}, bytes}; }

// "task>host" for everything that may start now.
std::string Start(Scheduler& scheduler, Time now) {
  std::string text;
  while (const auto next = scheduler.Next(now)) {
    text += fmt::format("{}{}>{}", text.empty() ? "" : " ", next->task.value, next->host.value);
  }
  return text;
}

TEST(Scheduler, GoesWhereTheBytesAre) {
  Scheduler scheduler(System::kWass, Hosts(4));
  scheduler.AddReady(Ready(0, {On(2)}), {});
  scheduler.AddReady(Ready(1, {On(0, 600'000), On(1, 400'000)}), {});
  const auto first = scheduler.Next({});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->host, HostIndex{2});
  EXPECT_EQ(first->local_bytes, kMegabyte);
  EXPECT_EQ(first->remote_bytes, 0U);
  EXPECT_EQ(first->reason, Reason::kHoldsMost);
  EXPECT_EQ(Start(scheduler, {}), "1>0");
}

TEST(Scheduler, WaitsNoLongerThanMovingTakes) {
  Scheduler scheduler(System::kWass, Hosts(2));
  scheduler.AddReady(Ready(0, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  scheduler.AddReady(Ready(1, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "");
  ASSERT_EQ(scheduler.NextChange(), Time{Milliseconds(10).ns});
  EXPECT_EQ(Start(scheduler, Time{Milliseconds(10).ns - 1}), "");
  const auto next = scheduler.Next(Time{Milliseconds(10).ns});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->host, HostIndex{1});
  EXPECT_EQ(next->reason, Reason::kWaited);
  EXPECT_EQ(next->remote_bytes, kMegabyte);
}

TEST(Scheduler, TakesTheNearHostWhenItIsFreeInTime) {
  Scheduler scheduler(System::kWass, Hosts(2));
  scheduler.AddReady(Ready(0, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  scheduler.AddReady(Ready(1, {On(0)}), {});
  scheduler.Release(HostIndex{0}, {});
  EXPECT_EQ(Start(scheduler, Time{Milliseconds(5).ns}), "1>0");
  EXPECT_EQ(scheduler.NextChange(), std::nullopt);
}

TEST(Scheduler, DoesNotWaitForAHostThatStaysBusy) {
  Scheduler scheduler(System::kWass, Hosts(2));
  scheduler.AddReady(Ready(0, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  scheduler.ExpectFree(HostIndex{0}, Time{Milliseconds(11).ns});
  scheduler.AddReady(Ready(1, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "1>1");
}

TEST(Scheduler, ASecondHolderIsWorthLessWaiting) {
  Scheduler scheduler(System::kWass, Hosts(3));
  scheduler.AddReady(Ready(0, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  scheduler.AddReady(Ready(1, {On(0), On(1, 800'000)}), {});
  EXPECT_EQ(Start(scheduler, Time{Milliseconds(2).ns - 1}), "");
  EXPECT_EQ(Start(scheduler, Time{Milliseconds(2).ns}), "1>1");
}

TEST(Scheduler, LongerPathsGoFirst) {
  Scheduler scheduler(System::kWass, Hosts(1));
  ReadyTask late = Ready(1);
  late.levels_to_end = 5;
  scheduler.AddReady(Ready(0, {On(0)}), {});
  scheduler.AddReady(late, {});
  EXPECT_EQ(scheduler.Next({})->task, TaskIndex{1});
}

TEST(Scheduler, LocalTasksGoBeforeOthersOfTheirLevel) {
  Scheduler scheduler(System::kWass, Hosts(1));
  scheduler.AddReady(Ready(0), {});
  scheduler.AddReady(Ready(1, {On(0)}), {});
  EXPECT_EQ(scheduler.Next({})->task, TaskIndex{1});
}

TEST(Scheduler, SpreadsWhatHasNoPlace) {
  Scheduler scheduler(System::kWass, Hosts(3, 2));
  for (uint32_t i = 0; i < 6; ++i) scheduler.AddReady(Ready(i, {}, 0), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0 1>1 2>2 3>0 4>1 5>2");
}

TEST(Scheduler, DssIgnoresWhereBytesAre) {
  Scheduler scheduler(System::kDss, Hosts(3));
  for (uint32_t i = 0; i < 4; ++i) scheduler.AddReady(Ready(i, {On(2)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0 1>1 2>2");
  scheduler.Release(HostIndex{1}, {});
  EXPECT_EQ(Start(scheduler, {}), "3>1");
}

TEST(Scheduler, AvoidsWhereItFailedIfThereIsAnother) {
  Scheduler scheduler(System::kWass, Hosts(2));
  ReadyTask task = Ready(0, {On(0)});
  task.avoid = {HostIndex{0}};
  scheduler.AddReady(task, {});
  EXPECT_EQ(Start(scheduler, {}), "0>1");
  scheduler.AddReady(task, {});
  EXPECT_EQ(Start(scheduler, Time{Seconds(1).ns}), "");
  scheduler.Withdraw(TaskIndex{0});
  scheduler.Remove(HostIndex{1}, {});
  scheduler.AddReady(task, {});
  EXPECT_EQ(Start(scheduler, Time{Seconds(1).ns}), "0>0");
}

TEST(Scheduler, LeavesDeadHostsAlone) {
  Scheduler scheduler(System::kWass, Hosts(2));
  scheduler.AddReady(Ready(0, {On(0)}), {});
  scheduler.Remove(HostIndex{0}, {});
  scheduler.AddReady(Ready(1, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>1");
  scheduler.Release(HostIndex{1}, {});
  EXPECT_EQ(Start(scheduler, {}), "1>1");
  scheduler.Release(HostIndex{0}, {});
  scheduler.AddReady(Ready(2), {});
  EXPECT_EQ(Start(scheduler, {}), "");
}

TEST(Scheduler, AvoidsAllWhereItFailed) {
  Scheduler scheduler(System::kWass, Hosts(4));
  ReadyTask task = Ready(0);
  task.avoid = {HostIndex{0}, HostIndex{1}, HostIndex{3}};
  scheduler.AddReady(task, {});
  EXPECT_EQ(Start(scheduler, {}), "0>2");
  task.task = TaskIndex{1};
  scheduler.AddReady(task, {});
  EXPECT_EQ(Start(scheduler, {}), "");
  scheduler.Remove(HostIndex{2}, {});
  EXPECT_EQ(Start(scheduler, {}), "1>3");
}

// No time passes: a task that waited for a lost host starts elsewhere at once.
TEST(Scheduler, WaitsForNoHostThatIsGone) {
  Scheduler scheduler(System::kWass, Hosts(3));
  scheduler.AddReady(Ready(0, {On(0)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  scheduler.AddReady(Ready(1, {On(0)}, kMegabyte), {});
  scheduler.AddReady(Ready(2, {On(0), On(1, 800'000)}), {});
  EXPECT_EQ(Start(scheduler, {}), "");
  scheduler.Remove(HostIndex{0}, {});
  EXPECT_EQ(Start(scheduler, {}), "2>1 1>2");
  EXPECT_EQ(scheduler.NextChange(), std::nullopt);
}

TEST(Scheduler, ForgetsWhatIsWithdrawn) {
  Scheduler scheduler(System::kWass, Hosts(2));
  scheduler.AddReady(Ready(0, {On(0)}), {});
  scheduler.Withdraw(TaskIndex{0});
  scheduler.Withdraw(TaskIndex{7});
  EXPECT_EQ(Start(scheduler, Time{Seconds(1).ns}), "");
  EXPECT_EQ(scheduler.NextChange(), std::nullopt);
}

// ---- whole runs of random graphs in virtual time, checked against the stated rules

class Simulation {
 public:
  Simulation(uint64_t seed, System system)
      : rng_(seed),
        workflow_(RandomWorkflow(rng_, 60)),
        execution_(workflow_, {}),
        hosts_(RandomHosts()),
        system_(system),
        scheduler_(system, hosts_),
        used_(hosts_.size(), 0),
        runs_(workflow_.tasks.size(), 0),
        places_(workflow_.files.size()) {}

  // Returns the decisions in order, so that two runs can be compared.
  std::string Run() {
    while (execution_.count(TaskState::kDone) < workflow_.tasks.size()) {
      for (const TaskIndex task : execution_.TakeReady()) Add(task);
      while (const auto next = scheduler_.Next(now_)) Begin(*next);
      CheckNothingIdles();
      if (!Advance()) break;
    }
    EXPECT_THAT(runs_, testing::Each(1));
    return decisions_;
  }

 private:
  std::vector<SchedulerHost> RandomHosts() {
    std::vector<SchedulerHost> hosts;
    for (uint64_t i = 1 + rng_.Below(6); i > 0; --i)
      hosts.push_back({static_cast<uint32_t>(1 + rng_.Below(3)), kRate * (1 + rng_.Below(4))});
    return hosts;
  }

  void Add(TaskIndex task) {
    ReadyTask ready;
    ready.task = task;
    ready.levels_to_end = workflow_.at(task).levels_to_end;
    std::map<HostIndex, uint64_t> held;
    for (const PathIndex input : workflow_.at(task).inputs) {
      const uint64_t size = workflow_.at(input).size_bytes.value_or(0);
      ready.input_bytes += size;
      ASSERT_TRUE(places_[input.value]) << "an input before it was written";
      held[*places_[input.value]] += size;
    }
    for (const auto& [host, bytes] : held) ready.held.push_back({host, bytes});
    waiting_[task] = {now_, ready.input_bytes};
    scheduler_.AddReady(ready, now_);
  }

  void Begin(const Assignment& next) {
    ASSERT_LT(used_[next.host.value], hosts_[next.host.value].slots) << "a slot twice";
    ++used_[next.host.value];
    ++runs_[next.task.value];
    execution_.Start(next.task);
    waiting_.erase(next.task);
    decisions_ += fmt::format("{}:{}>{} ", now_.ns, next.task.value, next.host.value);
    running_.emplace(now_ + Microseconds(static_cast<int64_t>(1 + rng_.Below(20'000))), next);
  }

  // While a slot is free, no task waits longer than the fastest link needs to move its input.
  void CheckNothingIdles() {
    bool free = false;
    uint64_t rate = 1;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      free = free || used_[i] < hosts_[i].slots;
      rate = std::max(rate, hosts_[i].link_bytes_per_second);
    }
    if (!free) return;
    for (const auto& [task, since] : waiting_) {
      EXPECT_EQ(system_, System::kWass);
      const auto move = static_cast<int64_t>(since.second * 1'000'000'000 / rate);
      EXPECT_LT((now_ - since.first).ns, move) << "task " << task.value;
    }
  }

  bool Advance() {
    std::optional<Time> at = waiting_.empty() ? std::nullopt : scheduler_.NextChange();
    if (!running_.empty() && (!at || running_.begin()->first <= *at)) {
      const Assignment ended = running_.begin()->second;
      now_ = running_.begin()->first;
      running_.erase(running_.begin());
      --used_[ended.host.value];
      scheduler_.Release(ended.host, {});
      for (const PathIndex output : workflow_.at(ended.task).outputs)
        places_[output.value] = ended.host;
      execution_.Finish(ended.task);
      return true;
    }
    if (at) now_ = std::max(now_, *at);
    return at.has_value();
  }

  Rng rng_;
  const Workflow workflow_;
  Execution execution_;
  const std::vector<SchedulerHost> hosts_;
  const System system_;
  Scheduler scheduler_;
  Time now_;
  std::vector<uint32_t> used_;
  std::vector<int> runs_;
  std::vector<std::optional<HostIndex>> places_;
  std::map<TaskIndex, std::pair<Time, uint64_t>> waiting_;
  std::multimap<Time, Assignment> running_;
  std::string decisions_;
};

TEST(Scheduler, RunsRandomGraphsByTheRules) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    for (const System system : {System::kDss, System::kWass}) {
      SCOPED_TRACE(fmt::format("seed {} system {}", seed, static_cast<int>(system)));
      const std::string decisions = Simulation(seed, system).Run();
      EXPECT_EQ(decisions, Simulation(seed, system).Run());
      if (HasFailure()) return;
    }
  }
}

ReadyTask PlannedOn(uint32_t task, uint32_t host, Duration patience,
                    std::vector<HostBytes> held = {}) {
  ReadyTask ready = Ready(task, std::move(held));
  ready.planned = PlannedHost{HostIndex{host}, patience};
  return ready;
}

TEST(SchedulerPlan, AHostIsWaitedForThatIsNotNearest) {
  Scheduler scheduler(System::kWass, Hosts(2));
  scheduler.AddReady(PlannedOn(0, 0, Seconds(1)), {});
  scheduler.AddReady(PlannedOn(1, 0, Seconds(1), {On(1)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  EXPECT_EQ(Start(scheduler, Time{Milliseconds(900).ns}), "");
  scheduler.Release(HostIndex{0}, {});
  const auto next = scheduler.Next(Time{Milliseconds(900).ns});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->host, HostIndex{0});
  EXPECT_EQ(next->reason, Reason::kPlanned);
  EXPECT_EQ(next->remote_bytes, kMegabyte);
}

TEST(SchedulerPlan, ATaskWhosePatienceEndsGoesWhereLeastIsMoved) {
  Scheduler scheduler(System::kWass, Hosts(3));
  scheduler.AddReady(PlannedOn(0, 0, Seconds(1)), {});
  scheduler.AddReady(PlannedOn(1, 0, Seconds(1), {On(2)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  ASSERT_EQ(scheduler.NextChange(), Time{Seconds(1).ns});
  const auto next = scheduler.Next(Time{Seconds(1).ns});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->host, HostIndex{2});
  EXPECT_EQ(next->reason, Reason::kPlanLate);
}

TEST(SchedulerPlan, ALostHostAndOneOnWhichTheTaskHasFailedAreLeft) {
  Scheduler scheduler(System::kWass, Hosts(3));
  scheduler.AddReady(PlannedOn(0, 0, Seconds(9)), {});
  scheduler.AddReady(PlannedOn(1, 0, Seconds(9), {On(1)}), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");
  scheduler.Remove(HostIndex{0}, {});
  EXPECT_EQ(Start(scheduler, {}), "1>1");
  ReadyTask failed = PlannedOn(2, 2, Seconds(9));
  failed.avoid = {HostIndex{2}};
  scheduler.Release(HostIndex{1}, {});
  scheduler.AddReady(failed, {});
  const auto next = scheduler.Next({});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->host, HostIndex{1});
  EXPECT_NE(next->reason, Reason::kPlanLate);
}

ReadyTask Large(uint32_t task, uint32_t cores, uint64_t memory_bytes = 0) {
  ReadyTask ready = Ready(task);
  ready.needs = {cores, memory_bytes};
  return ready;
}

TEST(Scheduler, ATaskTakesAsManySlotsAsItHasCores) {
  Scheduler scheduler(System::kWass, Hosts(1, 4));
  scheduler.AddReady(Large(0, 3), {});
  scheduler.AddReady(Large(1, 2), {});
  scheduler.AddReady(Ready(2), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0");  // The slot that is left is kept for task 1.
  scheduler.Release(HostIndex{0}, {.cores = 3});
  EXPECT_EQ(Start(scheduler, {}), "1>0 2>0");
  // A host with fewer slots gives all of them.
  Scheduler small(System::kWass, Hosts(1, 2));
  small.AddReady(Large(0, 16), {});
  small.AddReady(Ready(1), {});
  EXPECT_EQ(Start(small, {}), "0>0");
  small.Release(HostIndex{0}, {.cores = 16});
  EXPECT_EQ(Start(small, {}), "1>0");
}

TEST(Scheduler, SmallTasksGoOnBesideTheHostThatIsKept) {
  Scheduler scheduler(System::kWass, Hosts(2, 2));
  for (uint32_t i = 0; i < 2; ++i) scheduler.AddReady(Ready(i), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0 1>1");
  scheduler.AddReady(Large(2, 2), {});
  for (uint32_t i = 3; i < 6; ++i) scheduler.AddReady(Ready(i), {});
  EXPECT_EQ(Start(scheduler, {}), "3>1");  // h1 is kept for task 2.
  scheduler.Release(HostIndex{1}, {});
  EXPECT_EQ(Start(scheduler, {}), "4>1");
  scheduler.Release(HostIndex{0}, {});
  EXPECT_EQ(Start(scheduler, {}), "2>0");
}

TEST(Scheduler, MemoryLimitsWhatRunsAtATime) {
  std::vector<SchedulerHost> hosts = Hosts(2, 4);
  hosts[0].memory_bytes = 10;
  hosts[1].memory_bytes = 4;
  Scheduler scheduler(System::kWass, hosts);
  for (uint32_t i = 0; i < 3; ++i) scheduler.AddReady(Large(i, 1, 5), {});
  EXPECT_EQ(Start(scheduler, {}), "0>0 1>0");
  scheduler.Release(HostIndex{0}, {.cores = 1, .memory_bytes = 5});
  EXPECT_EQ(Start(scheduler, {}), "2>0");
  // The only host that can hold it is lost: it goes where it may.
  scheduler.AddReady(Large(3, 1, 5), {});
  scheduler.Remove(HostIndex{0}, {});
  EXPECT_EQ(Start(scheduler, {}), "3>1");
}

// Tasks of all sizes come at random: no host ever holds more than it has, and all tasks run.
TEST(Scheduler, NeverOverfillsAHostAndStarvesNoTask) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    std::vector<SchedulerHost> hosts = Hosts(1 + rng.Below(4));
    for (SchedulerHost& host : hosts) {
      host.slots = static_cast<uint32_t>(1 + rng.Below(6));
      host.memory_bytes = rng.Chance(500) ? 1 + rng.Below(20) : 0;
    }
    Scheduler scheduler(rng.Chance(500) ? System::kWass : System::kDss, hosts);
    struct Runs {
      TaskNeeds needs;
      HostIndex host;
    };
    std::map<TaskIndex, TaskNeeds> waiting;
    std::vector<Runs> running;
    uint32_t added = 0;
    Time now;
    for (int step = 0; added < 120 || !waiting.empty() || !running.empty(); ++step) {
      ASSERT_LT(step, 5000) << waiting.size() << " wait, " << running.size() << " run";
      now = now + Milliseconds(1);
      if (added < 120 && rng.Chance(600)) {
        ReadyTask task = Large(added, static_cast<uint32_t>(1 + rng.Below(8)), rng.Below(25));
        if (rng.Chance(400)) task.held = {On(static_cast<uint32_t>(rng.Below(hosts.size())))};
        waiting.emplace(task.task, task.needs);
        scheduler.AddReady(std::move(task), now);
        ++added;
      }
      while (const auto next = scheduler.Next(now)) {
        running.push_back({waiting.at(next->task), next->host});
        waiting.erase(next->task);
        uint64_t slots = 0, memory = 0;
        const SchedulerHost& host = hosts[next->host.value];
        for (const Runs& each : running) {
          if (each.host != next->host) continue;
          slots += std::min(each.needs.cores, host.slots);
          memory += std::min(each.needs.memory_bytes, host.memory_bytes);
        }
        ASSERT_LE(slots, host.slots);
        ASSERT_LE(memory, host.memory_bytes);
      }
      if (!running.empty() && rng.Chance(500)) {
        const size_t ends = rng.Below(running.size());
        scheduler.Release(running[ends].host, running[ends].needs);
        running.erase(running.begin() + static_cast<long>(ends));
      }
    }
  }
}

}  // namespace
}  // namespace mosa::predict
