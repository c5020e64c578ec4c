#include "manager/core/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mosa::manager {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr NodeId kOne{1}, kTwo{2};

TEST(Groups, AnAnchorHoldsUntilTheLastFileIsGone) {
  Groups groups;
  KvBatch writes;
  groups.SetAnchor("g", kOne, writes);
  EXPECT_EQ(groups.AnchorOf("g"), kNoNode) << "a group without files";
  groups.Join("g");
  groups.Join("g");
  groups.SetAnchor("g", kOne, writes);
  ASSERT_EQ(writes.writes.size(), 1U) << "an anchor is recorded";
  EXPECT_TRUE(writes.writes[0].value.has_value());
  groups.SetAnchor("g", kOne, writes);
  groups.Leave("g", writes);
  EXPECT_EQ(writes.writes.size(), 1U) << "nothing has changed";
  EXPECT_EQ(groups.AnchorOf("g"), kOne);
  EXPECT_THAT(groups.anchored(), ElementsAre(Pair(kOne, 1U)));
  groups.Leave("g", writes);
  EXPECT_EQ(groups.AnchorOf("g"), kNoNode);
  ASSERT_EQ(writes.writes.size(), 2U) << "the record goes with the last file";
  EXPECT_FALSE(writes.writes[1].value.has_value());
  EXPECT_TRUE(groups.empty());
  EXPECT_THAT(groups.anchored(), IsEmpty());
  groups.Leave("g", writes);  // Nothing is left.
}

TEST(Groups, NodesCountTheGroupsThatTheyAnchor) {
  Groups groups;
  KvBatch writes;
  for (const char* name : {"a", "b", "c"}) groups.Join(name);
  groups.SetAnchor("a", kOne, writes);
  groups.SetAnchor("b", kOne, writes);
  groups.SetAnchor("c", kTwo, writes);
  EXPECT_THAT(groups.anchored(), ElementsAre(Pair(kOne, 2U), Pair(kTwo, 1U)));
  groups.SetAnchor("a", kTwo, writes);
  EXPECT_THAT(groups.anchored(), ElementsAre(Pair(kOne, 1U), Pair(kTwo, 2U)));
}

TEST(Groups, FilesWithoutAGroupCountNowhere) {
  Groups groups;
  KvBatch writes;
  groups.Join("");
  groups.SetAnchor("", kOne, writes);
  groups.Leave("", writes);
  EXPECT_TRUE(groups.empty());
}

TEST(Groups, OfADatabaseOnlyGroupsWithFilesStay) {
  Groups groups;
  groups.Load("kept", kOne);
  groups.Load("gone", kTwo);
  groups.Join("kept");
  groups.DropEmpty();
  EXPECT_EQ(groups.AnchorOf("kept"), kOne);
  EXPECT_EQ(groups.AnchorOf("gone"), kNoNode);
  EXPECT_THAT(groups.anchored(), ElementsAre(Pair(kOne, 1U)));
}

}  // namespace
}  // namespace mosa::manager
