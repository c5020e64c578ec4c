#include "storage-node/engine/node_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mosa::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr FileId kF{7}, kG{8};

NodeHeartbeat Take(NodeReports& reports, Time now = Time{}) {
  NodeHeartbeat heartbeat;
  reports.Take(now, heartbeat);
  return heartbeat;
}

TEST(NodeReports, NameDamageOnceAndToANewStreamOnceMore) {
  NodeReports reports;
  reports.NoteDamage(kF, 2);
  NodeHeartbeat heartbeat = Take(reports);
  EXPECT_THAT(heartbeat.corrupt_objects, ElementsAre(kF));
  EXPECT_EQ(heartbeat.corrupt_blocks, 2U);
  heartbeat = Take(reports);
  EXPECT_THAT(heartbeat.corrupt_objects, IsEmpty());
  EXPECT_EQ(heartbeat.corrupt_blocks, 2U);
  reports.Repeat();
  EXPECT_THAT(Take(reports).corrupt_objects, ElementsAre(kF));
}

TEST(NodeReports, CallOnlyThatHealedWhichWasDamaged) {
  NodeReports reports;
  reports.SetCorruptBlocks(kG, 0);
  reports.NoteDamage(kF, 1);
  reports.SetCorruptBlocks(kF, 0);
  NodeHeartbeat heartbeat = Take(reports);
  EXPECT_THAT(heartbeat.corrupt_objects, IsEmpty());
  EXPECT_THAT(heartbeat.healed_objects, ElementsAre(kF));
  EXPECT_EQ(heartbeat.corrupt_blocks, 0U);
  EXPECT_THAT(Take(reports).healed_objects, IsEmpty());
  reports.Repeat();
  EXPECT_THAT(Take(reports).healed_objects, ElementsAre(kF));
  reports.NoteDamage(kF, 1);
  reports.Repeat();
  heartbeat = Take(reports);
  EXPECT_THAT(heartbeat.healed_objects, IsEmpty());
  EXPECT_THAT(heartbeat.corrupt_objects, ElementsAre(kF));
}

TEST(NodeReports, ForgetWhatWasRemoved) {
  NodeReports reports;
  reports.NoteDamage(kF, 1);
  reports.NoteUntold(kF);
  reports.NoteUntold(kG);
  reports.Forget(kF);
  const NodeHeartbeat heartbeat = Take(reports);
  EXPECT_THAT(heartbeat.corrupt_objects, IsEmpty());
  EXPECT_THAT(heartbeat.untold_objects, ElementsAre(kG));
  EXPECT_EQ(heartbeat.corrupt_blocks, 0U);
}

TEST(NodeReports, RepeatUnseenChangesOnlyWhileTheStreamMayHaveLostThem) {
  NodeReports reports;
  reports.NoteUntold(kF);
  EXPECT_THAT(Take(reports, Time{}).untold_objects, ElementsAre(kF));
  reports.Repeat();
  EXPECT_THAT(Take(reports, Time{} + Seconds(1)).untold_objects, ElementsAre(kF));
  EXPECT_THAT(Take(reports, Time{} + Seconds(100)).untold_objects, IsEmpty());
  reports.Repeat();
  EXPECT_THAT(Take(reports, Time{} + Seconds(101)).untold_objects, IsEmpty());
}

TEST(NodeReports, ADropOrderIsDoneWhenAllDropsAre) {
  NodeReports reports;
  reports.NoteDropOrder(3, {});
  EXPECT_EQ(Take(reports).drops_done, 3U);
  reports.NoteDropOrder(4, {kF, kG});
  reports.NoteDropOrder(5, {});
  EXPECT_EQ(Take(reports).drops_done, 3U);
  EXPECT_THAT(reports.drops_to_repeat(), ElementsAre(kF, kG));
  reports.NoteDropped(kF);
  EXPECT_EQ(Take(reports).drops_done, 3U);
  reports.NoteDropped(kG);
  EXPECT_EQ(Take(reports).drops_done, 5U);
  reports.NoteDropOrder(0, {});
  EXPECT_EQ(Take(reports).drops_done, 5U);
  reports.Repeat();  // Orders are numbered anew.
  EXPECT_EQ(Take(reports).drops_done, 0U);
}

}  // namespace
}  // namespace mosa::node
