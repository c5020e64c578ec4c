// A file that is cut to nothing keeps no byte on a node that did not answer.
#include "manager/core/core_copies_fixture.h"

namespace mosa::manager {
namespace {

class CoreUncut : public CoreCopies {
 protected:
  // A closed file on n1, which is silent.
  FileId MakeOnSilent(const std::string& name = "f") {
    const FileId f = MakeCommitted(name, "1");
    Die(nodes_[0]);
    return f;
  }
  SetAttributesRequest CutOf(FileId f, std::vector<NodeId> uncut, uint64_t size_bytes = 0) {
    SetAttributesRequest cut{.file = f, .size_bytes = size_bytes};
    cut.uncut_nodes = std::move(uncut);
    return cut;
  }
  // As a mount does: it freezes the file if it must.
  void Cut(FileId f, const std::vector<NodeId>& uncut) {
    Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
    Reply reply = Call1(kBen, CutOf(f, uncut));
    const auto* failure = std::get_if<Failure>(&reply);
    if (failure && failure->code == StatusCode::kAborted) {
      EXPECT_EQ(failure->reason, ErrorReason::kBusy);
      Ok<BindReply>(kBen, FreezeRequest{f});
      reply = Call1(kBen, CutOf(f, uncut));
    }
    EXPECT_TRUE(std::holds_alternative<AttributesReply>(reply));
  }
  void Return(const std::vector<FileId>& objects, uint64_t incarnation = 7) {
    EXPECT_EQ(AddNode("n1", uint64_t{1} << 30, incarnation, objects), nodes_[0]);
  }
  void Beat(NodeId node, uint64_t drops_done) {
    NodeHeartbeat heartbeat{.used_bytes = 0, .limit_bytes = uint64_t{1} << 30};
    heartbeat.drops_done = drops_done;
    Step(NodeReport{node, heartbeat});
  }
  // Returns where the file's first byte would be stored now.
  NodeId BoundOn(FileId f) {
    return Ok<BindReply>(kBen, BindRequest{f, kMiB}).access.layout.NodeAt(0);
  }
  uint64_t SizeOf(FileId f) {
    return Ok<AttributesReply>(kBen, GetAttributesRequest{f}).attributes.size_bytes;
  }
  size_t DropsOf(FileId f) {
    return static_cast<size_t>(std::ranges::count(dropped_[nodes_[0]], f));
  }
};

TEST_F(CoreUncut, TheFileGetsNoByteOnTheNodeBeforeItHasDroppedTheObject) {
  const FileId f = MakeOnSilent();
  Cut(f, {nodes_[0]});
  EXPECT_EQ(DropsOf(f), 0U);
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U);
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, TheNodeThatHasDroppedTheObjectMayGetTheFile) {
  const FileId f = MakeOnSilent();
  Cut(f, {nodes_[0]});
  Return({f});
  Beat(nodes_[0], 1);
  EXPECT_EQ(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, ANodeThatWasOnlyStoppedDropsTheObjectToo) {
  const FileId f = MakeCommitted("f", "1");
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));  // Its stream stays.
  Cut(f, {nodes_[0]});
  EXPECT_EQ(DropsOf(f), 0U);
  Beat(nodes_[0], 0);
  EXPECT_EQ(DropsOf(f), 1U);
  Beat(nodes_[0], 0);
  EXPECT_EQ(DropsOf(f), 1U) << "the order is under way";
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, AnOrderThatWasLostWithItsStreamIsGivenAgain) {
  const FileId f = MakeOnSilent();
  Cut(f, {nodes_[0]});
  Return({f});
  Step(NodeStreamLost{nodes_[0]});
  Return({f});
  EXPECT_EQ(DropsOf(f), 2U);
  Beat(nodes_[0], 0);
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, ANodeThatReturnsWithoutTheObjectNeedsNoOrder) {
  const FileId f = MakeOnSilent("f");
  const FileId g = MakeCommitted("g", "1");
  ASSERT_NE(core_->GetFileStatus("/g")->layout.NodeAt(0), nodes_[0]);
  Cut(f, {nodes_[0]});
  Return({g});
  EXPECT_EQ(DropsOf(f), 0U);
  EXPECT_EQ(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, ANodeThatReturnsEmptyMayGetTheFile) {
  const FileId f = MakeOnSilent();
  Cut(f, {nodes_[0]});
  Return({}, 8);
  EXPECT_EQ(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, AManagerThatRestartsKnowsWhichObjectsWereNotCut) {
  const FileId f = MakeOnSilent();
  Cut(f, {nodes_[0]});
  Restart();
  Start(kAnna);
  Start(kBen);
  for (const char* name : {"n2", "n3", "n4"}) AddNode(name);
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U);
  AdvanceAlive(Seconds(30), {kAnna, kBen}, nodes_);
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, CopiesGoElsewhereAsWell) {
  const FileId f = MakeOpen("f", "3");
  Commit(f);
  DoOrders();
  Die(nodes_[0]);
  const NodeId first = core_->GetFileStatus("/f")->layout.NodeAt(0);
  ASSERT_NE(first, nodes_[0]) << "a copy has replaced the first one";
  Cut(f, {first});
  for (int i = 0; i < 4; ++i) AdvanceAlive(Seconds(1), {kAnna, kBen}, Others({nodes_[0]}));
  const auto access = Ok<BindReply>(kBen, BindRequest{f, kMiB}).access;
  EXPECT_NE(access.layout.NodeAt(0), first) << "it has not reported the drop";
  CommitRequest commit{.file = f, .size_bytes = kMiB, .last_close = true};
  commit.nodes = {{access.layout.NodeAt(0), kMiB, 0}};
  Ok<AttributesReply>(kBen, commit);
  for (const auto& [node, order] : TakeOrders()) EXPECT_NE(node, first);
}

TEST_F(CoreUncut, AFileThatIsRemovedIsForgotten) {
  const FileId f = MakeOnSilent();
  Cut(f, {nodes_[0]});
  Ok<EmptyReply>(kBen, ReleaseRequest{.file = f});
  Ok<RemoveReply>(kBen, RemoveRequest{.parent = kRootFile, .name = "f"});
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U) << "as an object that no file owns";
}

TEST_F(CoreUncut, AFileThatAnotherMountWritesKeepsItsBytes) {
  const FileId f = MakeOnSilent();
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  const Reply reply = Call1(kBen, CutOf(f, {nodes_[0]}));
  const auto* failure = std::get_if<Failure>(&reply);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->code, StatusCode::kUnavailable);
  EXPECT_NE(failure->message.find("n1 did not answer"), std::string::npos) << failure->message;
  EXPECT_EQ(SizeOf(f), 2 * kMiB);
}

TEST_F(CoreUncut, AFileThatTheKernelOfAnotherMountUsesKeepsItsBytes) {
  const FileId f = MakeOnSilent();
  Ok<AttributesReply>(kAnna, GetAttributesRequest{f});
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  EXPECT_EQ(Refused(kBen, CutOf(f, {nodes_[0]})), ErrorReason::kBusy);
  recalls_[kAnna].clear();
  const RequestId freeze = Send(kBen, {FreezeRequest{f}});
  ASSERT_FALSE(recalls_[kAnna].empty());
  RecallDoneRequest done{recalls_[kAnna].back().recall};
  done.pinned = true;
  Send(kAnna, {done});
  ASSERT_TRUE(Answered(kBen, freeze));
  EXPECT_EQ(Refused(kBen, CutOf(f, {nodes_[0]})), ErrorReason::kNodeLost);
  EXPECT_EQ(SizeOf(f), 2 * kMiB);
}

TEST_F(CoreUncut, OnlyNodesOfAFileThatIsCutToNothingCanBeNamed) {
  const FileId f = MakeOnSilent();
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  EXPECT_EQ(Refused(kBen, CutOf(f, {nodes_[0]}, kMiB)), ErrorReason::kInvalid);
  EXPECT_EQ(Refused(kBen, CutOf(f, {nodes_[1]})), ErrorReason::kInvalid);
  EXPECT_EQ(Refused(kBen, CutOf(f, {NodeId(99)})), ErrorReason::kInvalid);
  SetAttributesRequest without_size{.file = f, .permissions = 0600};
  without_size.uncut_nodes = {nodes_[0]};
  EXPECT_EQ(Refused(kBen, without_size), ErrorReason::kInvalid);
  EXPECT_EQ(SizeOf(f), 2 * kMiB);
}

// ---- further copies, which truncations do not reach

TEST_F(CoreUncut, AHintThatLaysAnEmptyFileOutAnewLeavesTheNodesOfItsCopies) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId copy = Readers(f).back();
  ASSERT_NE(copy, nodes_[0]);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  SetXattr(f, "placement",
           copy == nodes_[1]   ? "node:n2"
           : copy == nodes_[2] ? "node:n3"
                               : "node:n4");
  EXPECT_EQ(std::ranges::count(dropped_[copy], f), 1);
  EXPECT_NE(BoundOn(f), copy);
}

TEST_F(CoreUncut, ACopyWithBytesThatWereCutOffDoesNotBecomeTheFirst) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId copy = Readers(f).back();
  ASSERT_NE(copy, nodes_[0]);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  CommitRequest closing{.file = f, .last_close = true};
  Ok<AttributesReply>(kAnna, closing);
  Die(nodes_[0], Seconds(12));
  EXPECT_NE(core_->GetFileStatus("/f")->layout.NodeAt(0), copy);
}

TEST_F(CoreUncut, ADrainingNodeIsReplacedByACopyThatHasBeenCut) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  CommitRequest closing{.file = f, .last_close = true};
  Ok<AttributesReply>(kAnna, closing);
  Step(DrainNode{.name = "n1", .drain = true});
  AdvanceAlive(Seconds(2), {kAnna, kBen}, nodes_);
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(0), nodes_[0]);
  EXPECT_FALSE(std::ranges::none_of(orders_, [&](const auto& each) {
    const auto* copy = std::get_if<CopyOrder>(&each.second);
    return copy != nullptr && copy->file == f && copy->size_bytes == 0;
  }));
  DoOrders();
  AdvanceAlive(Seconds(2), {kAnna, kBen}, nodes_);
  EXPECT_NE(core_->GetFileStatus("/f")->layout.NodeAt(0), nodes_[0]);
}

}  // namespace
}  // namespace mosa::manager
