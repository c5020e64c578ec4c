// What leaves a node that is drained, or a file that is to have fewer copies, and when.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "manager/core/core_copies_fixture.h"

namespace mosa::manager {
namespace {

using CoreDrain = CoreCopies;

TEST_F(CoreDrain, ADrainedNodeGivesAwayAllItHasAndTakesNothing) {
  const FileId one = MakeCommitted("one", "1");
  const FileId two = MakeCommitted("two", "2");
  const FileId open = MakeOpen("open", "1");
  DoOrders();
  EXPECT_EQ(Step(DrainNode{"n9", true}).admin_reply->status.code(), StatusCode::kNotFound);
  ASSERT_TRUE(Step(DrainNode{"n1", true}).admin_reply->status.ok());
  DoOrders();
  ConfirmAll();
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes[0].files_left, 3U) << "nothing is dropped yet";
  AdvanceAlive(Seconds(1), {kAnna, kBen}, nodes_);
  for (const FileId f : {one, two}) {
    const std::vector<NodeId> readers = Readers(f);
    EXPECT_EQ(std::count(readers.begin(), readers.end(), nodes_[0]), 0);
    EXPECT_EQ(std::count(dropped_[nodes_[0]].begin(), dropped_[nodes_[0]].end(), f), 1);
  }
  EXPECT_EQ(Readers(two).size(), 2U);
  AdvanceAlive(Seconds(3), {kAnna, kBen}, nodes_);
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes[0].files_left, 1U) << "somebody writes";
  Commit(open);
  DoOrders();
  ConfirmAll();
  AdvanceAlive(Seconds(2), {kAnna, kBen}, nodes_);
  ConfirmAll();
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes[0].files_left, 0U);
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes[0].address.state, NodeState::kDraining);
  Step(NodeStreamLost{nodes_[0]});
  AdvanceAlive(Seconds(12), {kAnna, kBen}, Others({nodes_[0]}));
  EXPECT_TRUE(core_->ListLostFiles(10).empty());
  // The mark is durable.
  Restart();
  Start(kAnna);
  Start(kBen);
  AddNode("n1");
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes[0].address.state, NodeState::kDraining);
  ASSERT_TRUE(Step(DrainNode{"n1", false}).admin_reply->status.ok());
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes[0].address.state, NodeState::kLive);
}

// A node that has failed is not missed for some seconds, and may return empty.
TEST_F(CoreDrain, ADrainedNodeKeepsAFileUntilTheNodesThatReplaceItHaveAnsweredSince) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId other = Readers(f).at(1);
  ASSERT_TRUE(Step(DrainNode{"n1", true}).admin_reply->status.ok());
  Step(NodeStreamLost{other});
  DoOrders();
  ConfirmAll();
  AdvanceAlive(Seconds(2), {kAnna, kBen}, Others({other}));
  ConfirmAll();
  EXPECT_TRUE(dropped_[nodes_[0]].empty());
  // It returns empty.
  AddNode("n" + std::to_string(other.value), uint64_t{1} << 30, 8);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(core_->ListLostFiles(10).empty());
    DoOrders();
    ConfirmAll();
    AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  }
  EXPECT_EQ(dropped_[nodes_[0]].size(), 1U);
  EXPECT_EQ(Readers(f).size(), 2U);
}

TEST_F(CoreDrain, NodesThatHaveSaidNothingWhileTheManagerStoodStillHaveNotAnswered) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  SetXattr(f, "replicas", "1");
  now_ = now_ + Seconds(3);
  Step(Stalled{Seconds(3)});
  Step(Tick{});
  ConfirmAll();
  EXPECT_EQ(Readers(f).size(), 2U);
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  ConfirmAll();
  EXPECT_EQ(Readers(f).size(), 1U);
}

TEST_F(CoreDrain, ADrainedNodeThatIsSilentKeepsItsCopyAsWell) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId other = Readers(f).at(1);
  ASSERT_TRUE(Step(DrainNode{"n1", true}).admin_reply->status.ok());
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));
  Step(NodeStreamLost{other});
  AddNode("n" + std::to_string(other.value), uint64_t{1} << 30, 8);
  AdvanceAlive(Seconds(2), {kAnna, kBen}, nodes_);
  for (int i = 0; i < 4; ++i) {
    DoOrders();
    ConfirmAll();
    AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  }
  EXPECT_TRUE(core_->ListLostFiles(10).empty());
}

// It is left even if there cannot be as many copies without it.
TEST_F(CoreDrain, AFileLeavesADrainedNodeThoughNoOtherNodeHasRoomForAnotherCopy) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId other = Readers(f).at(1);
  const auto beat = [&] {
    now_ = now_ + Seconds(1);
    for (const ClientId client : {kAnna, kBen}) Step(SessionRequest{client, {}});
    for (const NodeId node : nodes_) {
      const bool is_full = node != nodes_[0] && node != other;
      Step(NodeReport{node,
                      {.used_bytes = is_full ? uint64_t{1} << 30 : 1,
                       .limit_bytes = uint64_t{1} << 30,
                       .drops_done = drops_done_[node]}});
    }
    Step(Tick{});
    ConfirmAll();
  };
  beat();
  ASSERT_TRUE(Step(DrainNode{"n1", true}).admin_reply->status.ok());
  for (int i = 0; i < 8; ++i) beat();
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes[0].files_left, 0U);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{other});
}

TEST_F(CoreDrain, TheLastNodesAreNotDrained) {
  for (const char* name : {"n1", "n2", "n3"})
    EXPECT_TRUE(Step(DrainNode{name, true}).admin_reply->status.ok());
  const Status refused = Step(DrainNode{"n4", true}).admin_reply->status;
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  Step(DrainNode{"n3", false});
  Step(NodeReport{nodes_[3], {.used_bytes = 1 << 30, .limit_bytes = 1 << 30}});
  Step(NodeReport{nodes_[2], {.used_bytes = 1, .limit_bytes = 1 << 30}});
  EXPECT_EQ(Step(DrainNode{"n4", true}).admin_reply->status.code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace mosa::manager
