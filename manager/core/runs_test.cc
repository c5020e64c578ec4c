// Runs and tasks: limits per user and in total.
#include "manager/core/runs.h"

#include <gtest/gtest.h>

#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

TEST(Runs, TasksOfAUserAreBoundAcrossHisRunsAndOthersStillCount) {
  Runs runs({.runs_max = 10, .runs_per_user_max = 10, .tasks_max = 5, .tasks_per_user_max = 3});
  for (const char* run : {"a1", "a2"}) {
    runs.Begin(run);
    runs.SetOwner(run, kAlice);
  }
  runs.Begin("b");
  runs.SetOwner("b", kBob);
  for (uint64_t task = 1; task <= 2; ++task) {
    runs.NoteTask("a1", task, true);
    runs.NoteTask("a2", task, true);
  }
  EXPECT_EQ(runs.UseOf(kAlice).tasks, 3U);
  EXPECT_FALSE(runs.HasSucceeded("a2", 2));
  for (uint64_t task = 1; task <= 3; ++task) runs.NoteTask("b", task, true);
  EXPECT_EQ(runs.UseOf(kBob).tasks, 2U);
  EXPECT_EQ(runs.all().tasks, 5U);
  // A run that ends makes room, and so does a task that failed after all.
  runs.NoteTask("b", 1, false);
  EXPECT_TRUE(runs.End("a1"));
  EXPECT_EQ(runs.all().tasks, 2U);
  runs.NoteTask("b", 3, true);
  EXPECT_TRUE(runs.HasSucceeded("b", 3));
}

class CoreRuns : public CoreFixture {
 protected:
  Status Begin(const std::string& run, Asker asker) {
    return Step(BeginWorkflow{run, asker}).admin_reply.value_or(AdminReply{}).status;
  }
  std::optional<LimitStatus> Limit(std::string_view name) const {
    for (const LimitStatus& limit : core_->GetClusterStatus(now_).limits)
      if (limit.name == name) return limit;
    return std::nullopt;
  }
};

TEST_F(CoreRuns, AUserWithAllHisRunsBegunIsToldSoAndOthersGoOn) {
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(Begin(fmt::format("a{}", i), kAlice).ok()) << i;
  EXPECT_EQ(Begin("a64", kAlice).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Begin("a63", kAlice).ok());  // It has begun already.
  EXPECT_TRUE(Begin("b", kBob).ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Begin(fmt::format("admin{}", i), {}).ok()) << i;
  Restart();
  Advance(Seconds(60));
  EXPECT_EQ(Begin("a64", kAlice).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Step(EndWorkflow{"a0", kAlice}).admin_reply->status.ok());
  EXPECT_TRUE(Begin("a64", kAlice).ok());
}

TEST_F(CoreRuns, TheStatusShowsRunsAndTasksBesideTheirLimits) {
  ASSERT_TRUE(Begin("r", kAlice).ok());
  for (int i = 0; i < 3; ++i) Step(EndTask{fmt::format("r/{}", i), true, kAlice});
  EXPECT_EQ(Limit("runs"), (LimitStatus{"runs", 1, 4096, false}));
  EXPECT_EQ(Limit("tasks of runs"), (LimitStatus{"tasks of runs", 3, 4'000'000, false}));
  EXPECT_EQ(Limit("runs of user 1000"), (LimitStatus{"runs of user 1000", 1, 64, false}));
  EXPECT_EQ(Limit("tasks of user 1000"), (LimitStatus{"tasks of user 1000", 3, 1'000'000, false}));
}

}  // namespace
}  // namespace mosa::manager
