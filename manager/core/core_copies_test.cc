// Copies beyond the first: ordered, reported, valid, stale, promoted, repaired, trimmed, awaited.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "manager/core/copy_orders.h"
#include "manager/core/core_copies_fixture.h"

namespace mosa::manager {
namespace {

TEST_F(CoreCopies, EagerOnesFollowTheWriterAndAreOrderedForGoodAtTheClose) {
  const FileId f = MakeOpen("f", "2", "eager");
  Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  const auto [node, follow] = orders[0];
  EXPECT_TRUE(follow.follow);
  EXPECT_EQ(follow.sources.segments[0].nodes, std::vector<NodeId>{nodes_[0]});
  ASSERT_EQ(follow.nodes.size(), 1U);
  EXPECT_EQ(follow.nodes[0].name, "n1");
  Commit(f, kMiB, /*close=*/false);
  EXPECT_TRUE(TakeOrders().empty()) << "an fsync does not begin the copy anew";
  Commit(f);
  orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, node);
  EXPECT_FALSE(orders[0].second.follow);
  EXPECT_GT(orders[0].second.order, follow.order);
  EXPECT_EQ(orders[0].second.data_version, 2U);
  EXPECT_EQ(orders[0].second.size_bytes, 2 * kMiB);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  Done(node, orders[0].second);
  EXPECT_EQ(Readers(f), (std::vector<NodeId>{nodes_[0], node}));
  const auto writer = Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access;
  EXPECT_EQ(writer.layout.segments[0].nodes, std::vector<NodeId>{nodes_[0]});
  EXPECT_TRUE(writer.copied_eagerly);
}

TEST_F(CoreCopies, LazyOnesBeginWhenTheLastWriterHasClosed) {
  const FileId f = MakeOpen("f", "2");
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  Commit(f);
  EXPECT_TRUE(TakeOrders().empty());
  Ok<EmptyReply>(kBen, ReleaseRequest{f});
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_FALSE(orders[0].second.follow);
}

TEST_F(CoreCopies, ReportsOfAnotherOrderOrVersionMeanNothing) {
  const FileId f = MakeCommitted("f", "2");
  const auto [node, first] = TakeOrders().at(0);
  CopyReport wrong = ReportOf(first);
  ++wrong.order;
  Step(NodeCopyReport{node, wrong});
  Step(NodeCopyReport{nodes_[0], ReportOf(first)});
  wrong = ReportOf(first);
  ++wrong.data_version;
  EXPECT_EQ(ValidCopies(f), 1U);
  Rewrite(f);
  const auto [again, second] = TakeOrders().at(0);
  EXPECT_EQ(again, node);
  EXPECT_EQ(second.data_version, first.data_version + 1);
  Step(NodeCopyReport{node, ReportOf(first)});
  EXPECT_EQ(ValidCopies(f), 1U);
  Done(node, second);
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopies, ARewriteMakesThemStaleUntilTheyAreMadeAgain) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const std::vector<NodeId> both = Readers(f);
  ASSERT_EQ(both.size(), 2U);
  Rewrite(f);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, both[1]);
  // Truncating the file counts as well.
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = kMiB});
  const Orders cut = TakeOrders();
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].second.size_bytes, kMiB);
  Done(cut[0].first, cut[0].second);
  EXPECT_EQ(Readers(f), both);
}

TEST_F(CoreCopies, AFileThatGoesOnElsewhereGetsCopiesOfThatToo) {
  const FileId f = MakeOpen("f", "2", "eager");
  const auto [node, follow] = TakeOrders().at(0);
  Ok<BindReply>(kAnna, FreezeRequest{f});
  const auto spilled = Ok<BindReply>(kAnna, RelocateRequest{f, kMiB, UINT64_MAX, {nodes_[0]}});
  ASSERT_EQ(spilled.access.layout.segments.size(), 2U);
  EXPECT_NE(spilled.access.layout.segments[1].nodes[0], node) << "what it copies may change bytes";
  const Orders orders = TakeOrders();
  ASSERT_FALSE(orders.empty());
  bool kept = false;
  for (const auto& [target, order] : orders) {
    ASSERT_EQ(order.sources.segments.size(), 2U);
    kept = kept || (target == node && order.sources.segments[0].nodes[0] == nodes_[0]);
    EXPECT_EQ(order.sources.segments[1].begin, kMiB);
    EXPECT_EQ(order.generation, spilled.access.generation);
  }
  EXPECT_TRUE(kept) << "who copies the first part goes on";
  Commit(f);
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

// A copy may still hold what was punched out of the first one.
TEST_F(CoreCopies, AHoleGoesOnWhereNoCopyIsIfThereIsRoom) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId second = Readers(f).at(1);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  std::vector<NodeId> full = Others({second});
  full.pop_back();
  Ok<BindReply>(kAnna, FreezeRequest{f});
  const auto moved = Ok<BindReply>(kAnna, RelocateRequest{f, kMiB, 2 * kMiB, full});
  EXPECT_NE(moved.access.layout.NodeAt(kMiB), second);
  full = Others({second});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  RelocateRequest relocate{f, 2 * kMiB, UINT64_MAX, full, {}};
  const auto asked = Ok<BindReply>(kAnna, relocate);
  EXPECT_EQ(asked.older, std::vector<NodeId>{second});
  EXPECT_EQ(asked.access.layout, moved.access.layout);
  EXPECT_GT(asked.access.generation, moved.access.generation) << "by which nodes do not refuse it";
  EXPECT_EQ(Refused(kBen, FreezeRequest{f}), ErrorReason::kBusy) << "the freeze goes on";
  // What the client has sent to clean them may arrive after it has given up.
  const auto given_up = Ok<BindReply>(kAnna, RelocateRequest{f, 0, 0, {}});
  EXPECT_GT(given_up.access.generation, asked.access.generation);
  Ok<BindReply>(kAnna, FreezeRequest{f});
  relocate.cleaned = asked.older;
  const auto longer = Ok<BindReply>(kAnna, relocate);
  EXPECT_TRUE(longer.older.empty());
  EXPECT_EQ(longer.access.layout.NodeAt(2 * kMiB), second);
}

TEST_F(CoreCopies, WhoeverRemovesOrReplacesAFileEndsItsCopies) {
  const FileId f = MakeCommitted("f", "2");
  const auto [node, order] = TakeOrders().at(0);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "f", false, false});
  EXPECT_EQ(dropped_[node], std::vector<FileId>{f});
  EXPECT_EQ(dropped_[nodes_[0]], std::vector<FileId>{f});
  EXPECT_TRUE(TakeOrders().empty());
  Step(NodeCopyReport{node, ReportOf(order)});
  const FileId g = MakeCommitted("g", "2");
  const FileId h = MakeCommitted("h", "2");
  Ok<RenameReply>(kAnna, RenameRequest{kRootFile, "g", kRootFile, "h"});
  DoOrders();
  EXPECT_EQ(ValidCopies(g), 2U);
  Advance(Seconds(1));  // A client may just have been opening it.
  EXPECT_EQ(std::count(dropped_[nodes_[0]].begin(), dropped_[nodes_[0]].end(), h), 1);
}

TEST_F(CoreCopies, AnotherTakesTheFirstOnesPlaceAtOnceAndTheLostCopyIsMadeElsewhere) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId second = Readers(f)[1];
  Die(nodes_[0]);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.layout.Nodes(),
            std::vector<NodeId>{second});
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  EXPECT_TRUE(core_->ListLostFiles(10).empty());
  EXPECT_TRUE(TakeOrders().empty()) << "it may come back";
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].second.sources.Nodes(), std::vector<NodeId>{second});
  Done(orders[0].first, orders[0].second);
  EXPECT_EQ(Readers(f), (std::vector<NodeId>{second, orders[0].first}));
  // The old node holds no part of it any more.
  AddNode("n1", uint64_t{1} << 30, 7, {f});
  ConfirmAll();
  EXPECT_EQ(dropped_[nodes_[0]], std::vector<FileId>{f});
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopies, ANodeThatComesBackSoonIsBroughtUpToDate) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId second = Readers(f)[1];
  Die(nodes_[0]);
  Rewrite(f);
  AddNode("n1", uint64_t{1} << 30, 7, {f});
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, nodes_[0]);
  EXPECT_EQ(orders[0].second.sources.Nodes(), std::vector<NodeId>{second});
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
  Done(orders[0].first, orders[0].second);
  EXPECT_EQ(ValidCopies(f), 2U);
  EXPECT_TRUE(dropped_[nodes_[0]].empty());
}

TEST_F(CoreCopies, ANodeThatComesBackEmptyGetsThemAgain) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId second = Readers(f)[1];
  Step(NodeStreamLost{second});
  now_ = now_ + Seconds(1);
  AddNode("n" + std::to_string(second.value), uint64_t{1} << 30, 8);
  ConfirmAll();
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  DoOrders();
  EXPECT_EQ(Readers(f), (std::vector<NodeId>{nodes_[0], second}));
  // The same for the first copy.
  Step(NodeStreamLost{nodes_[0]});
  AddNode("n1", uint64_t{1} << 30, 8);
  ConfirmAll();
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
  DoOrders();
  EXPECT_EQ(Readers(f), (std::vector<NodeId>{second, nodes_[0]}));
}

// As after the manager's link was down: all nodes were silent, and return one after the other.
class CoreCopiesReturn : public CoreCopies, public ::testing::WithParamInterface<const char*> {};

TEST_P(CoreCopiesReturn, NodesThatReturnLateKeepTheCopiesThatNoOthersReplace) {
  const FileId f = MakeCommitted("f", GetParam());
  DoOrders();
  const std::vector<NodeId> holders = Readers(f);
  ASSERT_GE(holders.size(), 2U);
  for (const NodeId node : nodes_) Step(NodeStreamLost{node});
  AdvanceAlive(Seconds(15), {kAnna, kBen});
  std::vector<NodeId> back;
  for (auto node = holders.rbegin(); node != holders.rend(); ++node) {
    AddNode("n" + std::to_string(node->value), uint64_t{1} << 30, 7, {f});
    ConfirmAll();
    back.push_back(*node);
    AdvanceAlive(Seconds(1), {kAnna, kBen}, back);
    EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(0), holders.back());
  }
  for (const NodeId node : holders) EXPECT_EQ(std::ranges::count(dropped_[node], f), 0);
  DoOrders();
  EXPECT_EQ(ValidCopies(f), holders.size());
}

INSTANTIATE_TEST_SUITE_P(Replicas, CoreCopiesReturn, ::testing::Values("3", "auto"));

// Another copy has become the first one because of the silence, and is lost before anything was
// compared with it.
TEST_F(CoreCopies, ASilentFirstCopyMayBecomeTheFirstOneAgain) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const std::vector<NodeId> holders = Readers(f);
  ASSERT_EQ(holders.size(), 2U);
  for (const NodeId node : nodes_) Step(NodeStreamLost{node});
  AdvanceAlive(Seconds(6), {kAnna, kBen});
  const auto name = [](NodeId node) { return "n" + std::to_string(node.value); };
  AddNode(name(holders[1]), uint64_t{1} << 30, 7, {f});
  AdvanceAlive(Seconds(1), {kAnna, kBen}, {holders[1]});
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(0), holders[1]);
  AddNode(name(holders[0]), uint64_t{1} << 30, 7, {f});
  EXPECT_EQ(ValidCopies(f), 1U) << "a writer may have stored there since";
  Step(NodeStreamLost{holders[1]});
  AddNode(name(holders[1]), uint64_t{1} << 30, 8);
  ConfirmAll();
  AdvanceAlive(Seconds(12), {kAnna, kBen}, holders);  // Its order to compare is cancelled first.
  EXPECT_EQ(Readers(f), std::vector<NodeId>{holders[0]});
  EXPECT_FALSE(Ok<OpenReply>(kBen, OpenRequest{f, false, ""}).access.lost);
  for (const NodeId node : nodes_)
    if (!std::ranges::count(holders, node)) AddNode(name(node), uint64_t{1} << 30, 7);
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

// A commit makes an earlier first copy older than the file.
TEST_F(CoreCopies, ASilentFirstCopyIsNotReadInPlaceOfWhatWasCommittedSince) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const std::vector<NodeId> holders = Readers(f);
  Die(holders[0]);
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(0), holders[1]);
  Rewrite(f);
  AddNode("n" + std::to_string(holders[0].value), uint64_t{1} << 30, 7, {f});
  Step(NodeStreamLost{holders[1]});
  AddNode("n" + std::to_string(holders[1].value), uint64_t{1} << 30, 8);
  ConfirmAll();
  AdvanceAlive(Seconds(12), {kAnna, kBen}, nodes_);
  EXPECT_EQ(Refused(kBen, OpenRequest{f, false, ""}), ErrorReason::kNodeLost);
}

// It is the first node of a part of the stripe, but the file was shorter when it was lost. That
// part has only ever been a hole.
TEST_F(CoreCopies, ANodeThatHeldOnlyCopiesHasLostNothing) {
  const FileId f = MakeOpen("f", "2", "lazy", "stripe");
  const Layout layout = core_->GetFileStatus("/f")->layout;
  ASSERT_EQ(layout.segments[0].width, 4U);
  CommitRequest commit{.file = f, .size_bytes = kMiB, .last_close = true};
  for (const NodeId node : layout.Nodes())
    commit.nodes.push_back({node, node == layout.NodeAt(0) ? kMiB : 0, 0});
  Ok<AttributesReply>(kAnna, commit);
  DoOrders();
  const NodeId copy = Readers(f).at(4);
  ASSERT_NE(copy, layout.NodeAt(0));
  // Another mount, which sees what the objects occupy, makes the file longer.
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  commit.nodes = {{copy, kMiB, 0, /*stored_nothing=*/true}};
  Ok<AttributesReply>(kBen, commit);
  DoOrders();
  Die(copy);
  Ok<AttributesReply>(kBen, SetAttributesRequest{.file = f, .size_bytes = 4 * kMiB});
  EXPECT_FALSE(Ok<OpenReply>(kBen, OpenRequest{f, false, ""}).access.lost) << "it is silent";
  AddNode("n" + std::to_string(copy.value), uint64_t{1} << 30, 8);
  ConfirmAll();
  EXPECT_FALSE(Ok<OpenReply>(kBen, OpenRequest{f, false, ""}).access.lost) << "it is empty";
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

// A client that opens a file for writing and writes nothing has changed nothing.
TEST_F(CoreCopies, AValidCopyFollowsNobodyWhoHasOlderBytes) {
  const FileId f = MakeOpen("f", "3", "eager");
  Commit(f);
  DoOrders();
  const std::vector<NodeId> all = Readers(f);
  ASSERT_EQ(all.size(), 3U);
  Step(NodeStreamLost{all[1]});
  AddNode("n" + std::to_string(all[1].value), uint64_t{1} << 30, 8);
  ConfirmAll();
  TakeOrders();
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 2U);
  for (const auto& [node, order] : orders) {
    EXPECT_TRUE(order.follow);
    EXPECT_EQ(order.sources.Nodes(), std::vector<NodeId>{all[0]}) << "node " << node.value;
  }
}

// An empty file's copies exist without an order. A node with a drop order in transit could drop the
// writer's first bytes.
TEST_F(CoreCopies, WhatIsBeingDroppedDoesNotBecomeTheFirstCopy) {
  const FileId f = MakeOpen("f", "2");
  Commit(f, 0);
  ASSERT_EQ(Readers(f).size(), 2U);
  const NodeId second = Readers(f)[1];
  SetXattr(f, "replicas", "1");
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  ConfirmAll();
  ASSERT_EQ(dropped_[second], std::vector<FileId>{f});
  for (const NodeId node : Others({nodes_[0], second}))
    Step(DrainNode{"n" + std::to_string(node.value), true});
  Step(DrainNode{"n1", true});
  const auto writes_to = [&] {
    const auto layout = Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.layout;
    Ok<EmptyReply>(kAnna, ReleaseRequest{f});
    return layout.Nodes();
  };
  EXPECT_EQ(writes_to(), std::vector<NodeId>{nodes_[0]});
  const uint64_t done = std::exchange(drops_done_[second], 0);
  AdvanceAlive(Seconds(12), {kAnna, kBen}, nodes_);
  ConfirmAll();
  EXPECT_EQ(writes_to(), std::vector<NodeId>{nodes_[0]}) << "the node has not dropped it yet";
  drops_done_[second] = done;
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  ConfirmAll();
  EXPECT_EQ(writes_to(), std::vector<NodeId>{second});
}

// What a writer has stored and not committed exists only on the first copy's node.
TEST_F(CoreCopies, NobodyTakesTheFirstOnesPlaceWhileSomebodyWrites) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId second = Readers(f)[1];
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Die(nodes_[0]);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
  EXPECT_EQ(Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.layout.Nodes(),
            std::vector<NodeId>{nodes_[0]});
  Ok<EmptyReply>(kBen, ReleaseRequest{f});
  Commit(f);
  EXPECT_EQ(Refused(kBen, OpenRequest{f, false, ""}), ErrorReason::kNodeLost);
  EXPECT_EQ(core_->ListLostFiles(10).size(), 1U);
  AddNode("n1", uint64_t{1} << 30, 7, {f});
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopies, AfterAnOperationThatFailedTheLastCommitsCopiesReplaceWhatIsLost) {
  for (const bool failed : {true, false}) {
    const FileId f = MakeCommitted(failed ? "f" : "g", "2");
    DoOrders();
    const NodeId first = Readers(f)[0];
    Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
    Ok<AttributesReply>(kAnna, CommitRequest{.file = f,
                                             .size_bytes = 0,
                                             .size_is_exact = false,
                                             .change_failed = failed,
                                             .last_close = true});
    EXPECT_EQ(Readers(f), std::vector<NodeId>{first}) << "the other one may differ";
    Step(NodeStreamLost{first});
    AddNode("n" + std::to_string(first.value), uint64_t{1} << 30, failed ? 8 : 9);
    ConfirmAll();
    AdvanceAlive(Seconds(12), {kAnna, kBen}, nodes_);  // No copy is on its way any more.
    ConfirmAll();
    EXPECT_EQ(core_->ListLostFiles(10).size(), failed ? 0U : 1U);
  }
}

TEST_F(CoreCopies, NoNewVersionIsMadeOfAFileWhoseFirstCopyIsLost) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId second = Readers(f)[1];
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Step(NodeStreamLost{nodes_[0]});
  AddNode("n1", uint64_t{1} << 30, 8);
  ConfirmAll();
  const auto generation = Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.generation;
  for (const uint64_t size : {kMiB, 2 * kMiB, 3 * kMiB})
    EXPECT_EQ(
        Refused(kAnna,
                SetAttributesRequest{.file = f, .size_bytes = size, .generation = generation}),
        ErrorReason::kNodeLost);
  EXPECT_EQ(Refused(kAnna, CommitRequest{.file = f, .size_bytes = 3 * kMiB}),
            ErrorReason::kNodeLost);
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second}) << "it is still whole";
}

TEST_F(CoreCopies, FewerAreDroppedOnceNobodyReadsByThemAndMoreAreMade) {
  const FileId f = MakeCommitted("f", "3");
  DoOrders();
  const std::vector<NodeId> all = Readers(f);
  ASSERT_EQ(all.size(), 3U);
  const RequestId lowered =
      Send(kAnna, {SetXattrRequest{f, "user.mosa.replicas", "2", false, false}});
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  EXPECT_TRUE(dropped_[all[2]].empty()) << "kBen has it open";
  ConfirmAll();
  EXPECT_TRUE(Answered(kAnna, lowered));
  EXPECT_EQ(dropped_[all[2]], std::vector<FileId>{f});
  EXPECT_EQ(Readers(f), (std::vector<NodeId>{all[0], all[1]}));
  SetXattr(f, "replicas", "4");
  DoOrders();
  EXPECT_EQ(Readers(f).size(), 3U) << "one node has yet to drop its copy";
  AdvanceAlive(Seconds(1), {kAnna, kBen}, nodes_);
  DoOrders();
  EXPECT_EQ(Readers(f).size(), 4U);
  SetXattr(f, "replicas", "1");
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
}

TEST_F(CoreCopies, ANodeWithoutRoomIsReplacedAndTheLayoutSaysWhatIsMissing) {
  const FileId f = MakeCommitted("f", "2");
  std::vector<NodeId> tried;
  for (int i = 0; i < 3; ++i) {
    const Orders orders = TakeOrders();
    ASSERT_EQ(orders.size(), 1U);
    tried.push_back(orders[0].first);
    CopyReport report = ReportOf(orders[0].second);
    report.done = false;
    report.failure = Failure{StatusCode::kResourceExhausted, ErrorReason::kNoSpace, "no room"};
    Step(NodeCopyReport{orders[0].first, report});
    ConfirmAll();
    AdvanceAlive(Seconds(1), {kAnna, kBen}, nodes_);
  }
  std::sort(tried.begin(), tried.end());
  EXPECT_EQ(tried, Others({nodes_[0]}));
  EXPECT_TRUE(TakeOrders().empty());
  const auto status = *core_->GetFileStatus("/f");
  EXPECT_EQ(status.copies_wanted, 2U);
  EXPECT_EQ(status.copies_valid, 1U);
  EXPECT_NE(status.copies_missing.find("n2 was found full"), std::string::npos)
      << status.copies_missing;
  EXPECT_NE(Xattr(f, "layout").find("\"missing\":\"1 of 2 copies: "), std::string::npos);
  AdvanceAlive(Seconds(62), {kAnna, kBen}, nodes_);
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopies, ACopyThatFailsOtherwiseIsTriedAgain) {
  const FileId f = MakeCommitted("f", "2");
  const auto [node, order] = TakeOrders().at(0);
  CopyReport report = ReportOf(order);
  report.done = false;
  report.failure = Failure{StatusCode::kUnavailable, ErrorReason::kNone, "n1 does not answer"};
  Step(NodeCopyReport{node, report});
  EXPECT_TRUE(TakeOrders().empty());
  const auto copies = core_->GetFileStatus("/f")->copies;
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].state, CopyStatus::State::kFailed);
  EXPECT_EQ(copies[0].why, "n1 does not answer");
  AdvanceAlive(Seconds(6), {kAnna, kBen}, nodes_);
  const Orders again = TakeOrders();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].first, node);
  Done(node, again[0].second);
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopies, StrictFilesAreNotBoundWithoutNodesForAll) {
  const FileId f = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  SetXattr(f, "strict", "1");
  SetXattr(f, "placement", "local");
  SetXattr(f, "replicas", "5");
  EXPECT_EQ(Refused(kAnna, BindRequest{f, kMiB}), ErrorReason::kNoSpace);
  SetXattr(f, "replicas", "4");
  Ok<BindReply>(kAnna, BindRequest{f, kMiB});
}

TEST_F(CoreCopies, ANodeWorksOnAFewFilesAtATime) {
  std::vector<FileId> files;
  for (int i = 0; i < 30; ++i) files.push_back(MakeCommitted("f" + std::to_string(i), "4"));
  Orders orders = TakeOrders();
  EXPECT_EQ(orders.size(), 3 * kCopyOrdersPerNode);
  size_t made = 0;
  while (!orders.empty()) {
    Done(orders[0].first, orders[0].second);
    ++made;
    orders.erase(orders.begin());
    for (const auto& order : TakeOrders()) {
      std::erase_if(orders, [&](const auto& each) {
        return each.first == order.first && each.second.file == order.second.file;
      });
      orders.push_back(order);
    }
    std::map<NodeId, size_t> running;
    for (const auto& [node, order] : orders) EXPECT_LE(++running[node], kCopyOrdersPerNode);
  }
  EXPECT_GE(made, 90U);
  for (const FileId f : files) EXPECT_EQ(Readers(f).size(), 4U);
}

TEST_F(CoreCopies, ACloseWaitsForThemButNotForEver) {
  const FileId f = MakeOpen("f", "3");
  SetXattr(f, "ack", "pessimistic");
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.close_copies, 3U);
  Commit(f);
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 2U);
  const RequestId all = Send(kAnna, {AwaitCopiesRequest{f, 1, 3}});
  const RequestId two = Send(kAnna, {AwaitCopiesRequest{f, 1, 2}});
  EXPECT_FALSE(Answered(kAnna, two));
  Done(orders[0].first, orders[0].second);
  ASSERT_TRUE(Answered(kAnna, two));
  EXPECT_FALSE(Answered(kAnna, all));
  CopyReport half = ReportOf(orders[1].second);
  half.done = false;
  half.copied_bytes = kMiB;
  Step(NodeCopyReport{orders[1].first, half});
  AdvanceAlive(Seconds(3), {kAnna, kBen}, nodes_);
  ASSERT_TRUE(Answered(kAnna, all));
  const auto reply = std::get<AwaitCopiesReply>(replies_[{kAnna, all}].at(0));
  EXPECT_EQ(reply.copies_valid, 2U);
  EXPECT_TRUE(reply.more);
  EXPECT_EQ(reply.copied_bytes, 3 * kMiB);
  Done(orders[1].first, orders[1].second);
  EXPECT_EQ(Ok<AwaitCopiesReply>(kAnna, AwaitCopiesRequest{f, 1, 3}).copies_valid, 3U);
  // A close does not wait for more copies than are possible.
  const auto most = Ok<AwaitCopiesReply>(kAnna, AwaitCopiesRequest{f, 1, 9});
  EXPECT_EQ(most.copies_valid, 3U);
  EXPECT_FALSE(most.more);
  SetXattr(f, "ack", "2");
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{f, false, ""}).access.close_copies, 2U);
}

TEST_F(CoreCopies, AManagerThatComesBackKnowsWhatIsValidAndOrdersTheRest) {
  const FileId done = MakeCommitted("done", "2");
  DoOrders();
  const std::vector<NodeId> both = Readers(done);
  const FileId f = MakeCommitted("f", "2");
  const auto [node, order] = TakeOrders().at(0);
  now_ = now_ + Seconds(1);
  Restart();
  for (const ClientId client : {kAnna, kBen}) Start(client);
  for (size_t i = 0; i < nodes_.size(); ++i)
    AddNode("n" + std::to_string(i + 1), uint64_t{1} << 30, 7, {done, f});
  ConfirmAll();
  EXPECT_EQ(Readers(done), both);
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, node);
  EXPECT_EQ(orders[0].second.file, f);
  EXPECT_GT(orders[0].second.order, order.order);
  Step(NodeCopyReport{node, ReportOf(order)});
  EXPECT_EQ(ValidCopies(f), 1U);
  Done(node, orders[0].second);
  EXPECT_EQ(ValidCopies(f), 2U);
  EXPECT_EQ(ValidCopies(done), 2U);
}

TEST_F(CoreCopies, WholeHoldersComeFirstAndOnlyValidOnesAreNamed) {
  const FileId f = MakeCommitted("f", "2");
  EXPECT_EQ(Xattr(f, "location"), "n1");
  EXPECT_NE(Xattr(f, "layout").find("\"width\":1,\"nodes\":[\"n1\"]"), std::string::npos);
  const auto [node, order] = TakeOrders().at(0);
  Done(node, order);
  EXPECT_EQ(Xattr(f, "location"), "n1,n" + std::to_string(node.value));
  EXPECT_NE(Xattr(f, "layout").find("\"state\":\"valid\""), std::string::npos);
  const std::string both = "\"width\":1,\"nodes\":[\"n1\",\"n" + std::to_string(node.value) + "\"]";
  EXPECT_NE(Xattr(f, "layout").find(both), std::string::npos) << Xattr(f, "layout");
  const Attributes a = Ok<AttributesReply>(kAnna, GetAttributesRequest{f}).attributes;
  EXPECT_EQ(a.allocated_bytes, 2 * kMiB) << "copies are not the file's own blocks";
  Step(NodeStreamLost{nodes_[0]});
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));
  EXPECT_EQ(Xattr(f, "layout").find("\"width\":1,\"nodes\":[\"n1\""), std::string::npos)
      << "nobody can read from a silent node: " << Xattr(f, "layout");
}

}  // namespace
}  // namespace mosa::manager
