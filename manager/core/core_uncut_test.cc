// A file gets no byte on a node that still holds bytes which are no longer the file's.
#include "manager/core/core_copies_fixture.h"

namespace mosa::manager {
namespace {

class CoreUncut : public CoreCopies {
 protected:
  CoreUncut() { carries_out_drops_ = false; }

  // A closed file on n1, which is silent.
  FileId MakeOnSilent(const std::string& name = "f") {
    const FileId f = MakeCommitted(name, "1");
    Die(nodes_[0]);
    return f;
  }
  SetAttributesRequest CutOf(FileId f, uint64_t size_bytes = 0) {
    SetAttributesRequest cut{.file = f, .size_bytes = size_bytes};
    cut.lay_out_anew = true;
    return cut;
  }
  // As a mount does: it freezes the file if it must.
  void Cut(FileId f) {
    Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
    Reply reply = Call1(kBen, CutOf(f));
    const auto* failure = std::get_if<Failure>(&reply);
    if (failure && failure->code == StatusCode::kAborted) {
      EXPECT_EQ(failure->reason, ErrorReason::kBusy);
      Ok<BindReply>(kBen, FreezeRequest{f});
      reply = Call1(kBen, CutOf(f));
    }
    EXPECT_TRUE(std::holds_alternative<AttributesReply>(reply));
  }
  void CutWhileAllAnswer(FileId f) {
    Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
    Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
    CommitRequest closing{.file = f, .last_close = true};
    Ok<AttributesReply>(kAnna, closing);
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
    AdvanceAlive(Seconds(1), {kAnna, kBen}, nodes_);  // It is not waited for any longer.
    return Ok<BindReply>(kBen, BindRequest{f, kMiB}).access.layout.NodeAt(0);
  }
  uint64_t SizeOf(FileId f) {
    return Ok<AttributesReply>(kBen, GetAttributesRequest{f}).attributes.size_bytes;
  }
  // Moves the hole as a mount does, and returns where its first byte is to be stored.
  NodeId MovedTo(RelocateRequest relocate) {
    BindReply reply = Ok<BindReply>(kAnna, relocate);
    relocate.cleaned = reply.older;
    if (!reply.older.empty()) reply = Ok<BindReply>(kAnna, relocate);
    EXPECT_TRUE(reply.older.empty());
    return reply.access.layout.NodeAt(relocate.begin);
  }
  size_t DropsOf(FileId f) {
    return static_cast<size_t>(std::ranges::count(dropped_[nodes_[0]], f));
  }
};

TEST_F(CoreUncut, TheFileGetsNoByteOnTheNodeBeforeItHasDroppedTheObject) {
  const FileId f = MakeOnSilent();
  Cut(f);
  EXPECT_EQ(DropsOf(f), 0U);
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U);
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, ADropNamesTheLayoutsWhoseStoresAreTooLate) {
  const FileId f = MakeOnSilent();
  const uint64_t before = Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.generation;
  Cut(f);
  Return({f});
  uint64_t refused = 0;
  for (const auto& [node, order] : orders_)
    if (const auto* drop = std::get_if<DropObjectsOrder>(&order))
      for (const auto& [file, generation] : drop->generations) refused = generation;
  EXPECT_GE(refused, before);
  Beat(nodes_[0], 1);
  ASSERT_EQ(BoundOn(f), nodes_[0]);
  EXPECT_GT(Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.generation, refused);
}

TEST_F(CoreUncut, TheNodeThatHasDroppedTheObjectMayGetTheFile) {
  const FileId f = MakeOnSilent();
  Cut(f);
  Return({f});
  Beat(nodes_[0], 1);
  EXPECT_EQ(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, ANodeThatWasOnlyStoppedDropsTheObjectToo) {
  const FileId f = MakeCommitted("f", "1");
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));  // Its stream stays.
  Cut(f);
  EXPECT_EQ(DropsOf(f), 0U);
  Beat(nodes_[0], 0);
  EXPECT_EQ(DropsOf(f), 1U);
  Beat(nodes_[0], 0);
  EXPECT_EQ(DropsOf(f), 1U) << "the order is under way";
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, AnOrderThatWasLostWithItsStreamIsGivenAgain) {
  const FileId f = MakeOnSilent();
  Cut(f);
  Return({f});
  Step(NodeStreamLost{nodes_[0]});
  Return({f});
  EXPECT_EQ(DropsOf(f), 2U);
  Beat(nodes_[0], 0);
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

// A late store could still make the object.
TEST_F(CoreUncut, ANodeThatReturnsWithoutTheObjectIsOrderedToDropItToo) {
  const FileId f = MakeOnSilent("f");
  const FileId g = MakeCommitted("g", "1");
  ASSERT_NE(core_->GetFileStatus("/g")->layout.NodeAt(0), nodes_[0]);
  Cut(f);
  Return({g});
  EXPECT_EQ(DropsOf(f), 1U);
  Beat(nodes_[0], 1);
  EXPECT_EQ(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, ANodeThatReturnsEmptyMayGetTheFile) {
  const FileId f = MakeOnSilent();
  Cut(f);
  Return({}, 8);
  EXPECT_EQ(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, AManagerThatRestartsKnowsWhichObjectsWereNotCut) {
  const FileId f = MakeOnSilent();
  Cut(f);
  Restart();
  Start(kAnna);
  Start(kBen);
  for (const char* name : {"n2", "n3", "n4"}) AddNode(name);
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U);
  AdvanceAlive(Seconds(30), {kAnna, kBen}, nodes_);
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, AManagerThatRestartsOrdersAgainToDropACopyThatIsNotNeeded) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId second = Readers(f).at(1);
  SetXattr(f, "replicas", "1");
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  ConfirmAll();
  ASSERT_EQ(std::ranges::count(dropped_[second], f), 1);
  Restart();
  Start(kAnna);
  Start(kBen);
  for (const NodeId node : nodes_)
    AddNode("n" + std::to_string(node.value), uint64_t{1} << 30, 7,
            node == nodes_[0] || node == second ? std::vector<FileId>{f} : std::vector<FileId>());
  EXPECT_EQ(std::ranges::count(dropped_[second], f), 2);
  AdvanceAlive(Seconds(30), {kAnna, kBen}, nodes_);
  SetXattr(f, "replicas", "4");
  DoOrders();
  EXPECT_EQ(std::ranges::count(Readers(f), second), 0);
  Beat(second, 1);
  DoOrders();
  EXPECT_EQ(std::ranges::count(Readers(f), second), 1);
}

TEST_F(CoreUncut, ANodeThatAnswersIsWaitedForForAMoment) {
  const FileId f = MakeOnSilent();
  Cut(f);
  Return({f});
  EXPECT_EQ(Refused(kBen, BindRequest{f, kMiB}), ErrorReason::kBusy);
  Beat(nodes_[0], 1);
  EXPECT_EQ(Ok<BindReply>(kBen, BindRequest{f, kMiB}).access.layout.NodeAt(0), nodes_[0]);
}

TEST_F(CoreUncut, AnswersToEarlierOrdersDoNotCount) {
  const FileId f = MakeCommitted("f", "2");
  const FileId g = MakeCommitted("g", "4");
  DoOrders();
  const NodeId second = Readers(f).at(1);
  SetXattr(g, "replicas", "1");
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  ConfirmAll();
  SetXattr(f, "replicas", "1");
  AdvanceAlive(Seconds(4), {kAnna, kBen}, nodes_);
  ConfirmAll();
  uint64_t number = 0;
  for (const auto& [node, order] : orders_) {
    const auto* drop = std::get_if<DropObjectsOrder>(&order);
    if (drop != nullptr && node == second && drop->files == std::vector{f}) number = drop->number;
  }
  ASSERT_EQ(number, 2U);
  SetXattr(f, "replicas", "4");
  Beat(second, 1);
  DoOrders();
  EXPECT_EQ(std::ranges::count(Readers(f), second), 0);
  Beat(second, 2);
  DoOrders();
  EXPECT_EQ(std::ranges::count(Readers(f), second), 1);
}

TEST_F(CoreUncut, EveryNodeWithACopyDropsItsObjectAndGetsNoNewOneBefore) {
  const FileId f = MakeOpen("f", "3");
  Commit(f);
  DoOrders();
  const std::vector<NodeId> held = Readers(f);
  ASSERT_EQ(held.size(), 3U);
  Die(nodes_[0]);
  Cut(f);
  for (const NodeId node : held)
    EXPECT_EQ(std::ranges::count(dropped_[node], f), node == nodes_[0] ? 0 : 1) << node.value;
  TakeOrders();
  AdvanceAlive(Seconds(2), {kAnna, kBen}, Others({nodes_[0]}));  // Nobody reports the drop.
  const auto access = Ok<BindReply>(kBen, BindRequest{f, kMiB}).access;
  EXPECT_EQ(std::ranges::count(held, access.layout.NodeAt(0)), 0);
  CommitRequest commit{.file = f, .size_bytes = kMiB, .last_close = true};
  commit.nodes = {{access.layout.NodeAt(0), kMiB, 0}};
  Ok<AttributesReply>(kBen, commit);
  EXPECT_TRUE(TakeOrders().empty());
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U) << "its copy was promoted away, but its bytes are there";
}

// What a writer that failed has left is not the empty file's either.
TEST_F(CoreUncut, AnEmptyFileOfANodeThatIsGoneGoesElsewhereAndLeavesItsObject) {
  const FileId f = MakeCommitted("f", "1");
  CutWhileAllAnswer(f);
  Die(nodes_[0]);
  EXPECT_FALSE(Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.layout.bound());
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U);
  EXPECT_NE(BoundOn(f), nodes_[0]);
}

TEST_F(CoreUncut, AFileThatIsRemovedIsForgotten) {
  const FileId f = MakeOnSilent();
  Cut(f);
  Ok<EmptyReply>(kBen, ReleaseRequest{.file = f});
  Ok<RemoveReply>(kBen, RemoveRequest{.parent = kRootFile, .name = "f"});
  Return({f});
  EXPECT_EQ(DropsOf(f), 1U) << "as an object that no file owns";
}

TEST_F(CoreUncut, AMountThatHasStoredThereLearnsThatItDoesNotCount) {
  const FileId f = MakeCommitted("f", "1");
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  const uint64_t before = generations_[{kAnna, f}];
  Step(NodeStreamLost{nodes_[0]});
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));
  ConfirmAll();
  Cut(f);
  names_generations_ = true;
  CommitRequest commit{.file = f, .size_bytes = kMiB, .generation = before};
  commit.nodes = {{nodes_[0], kMiB, 0}};
  EXPECT_EQ(Refused(kAnna, commit), ErrorReason::kStale);
  EXPECT_EQ(SizeOf(f), 0U);
}

TEST_F(CoreUncut, AFileThatTheKernelOfAnotherMountUsesKeepsItsBytes) {
  const FileId f = MakeOnSilent();
  Ok<AttributesReply>(kAnna, GetAttributesRequest{f});
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  EXPECT_EQ(Refused(kBen, CutOf(f)), ErrorReason::kBusy);
  recalls_[kAnna].clear();
  const RequestId freeze = Send(kBen, {FreezeRequest{f}});
  ASSERT_FALSE(recalls_[kAnna].empty());
  RecallDoneRequest done{recalls_[kAnna].back().recall};
  done.pinned = true;
  Send(kAnna, {done});
  ASSERT_TRUE(Answered(kBen, freeze));
  EXPECT_EQ(Refused(kBen, CutOf(f)), ErrorReason::kNodeLost);
  EXPECT_EQ(SizeOf(f), 2 * kMiB);
}

TEST_F(CoreUncut, OnlyAFileThatIsCutToNothingIsLaidOutAnew) {
  const FileId f = MakeOnSilent();
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  EXPECT_EQ(Refused(kBen, CutOf(f, kMiB)), ErrorReason::kInvalid);
  SetAttributesRequest without_size{.file = f, .permissions = 0600};
  without_size.lay_out_anew = true;
  EXPECT_EQ(Refused(kBen, without_size), ErrorReason::kInvalid);
  EXPECT_EQ(SizeOf(f), 2 * kMiB);
  const FileId unbound = Make(kBen, kRootFile, "unbound");
  Ok<AttributesReply>(kBen, CutOf(unbound));
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

// The copies have no cells any more, but the nodes of the stripe still have their bytes.
TEST_F(CoreUncut, SoDoesOneThatHadCopiesWithinItsStripe) {
  const FileId f = MakeOpen("f", "2", "lazy", "stripe");
  Commit(f, kMiB);
  DoOrders();
  const std::vector<NodeId> readers = Readers(f);
  const NodeId copy = readers.at(readers.size() / 2);
  ASSERT_NE(copy, readers.front());
  SetXattr(f, "replicas", "1");
  DoOrders();
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  SetXattr(f, "placement", "node:n" + std::to_string(copy.value));
  EXPECT_EQ(std::ranges::count(dropped_[copy], f), 1);
  EXPECT_NE(BoundOn(f), copy);
}

TEST_F(CoreUncut, ACopyWithBytesThatWereCutOffDoesNotBecomeTheFirst) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId copy = Readers(f).back();
  ASSERT_NE(copy, nodes_[0]);
  CutWhileAllAnswer(f);
  Die(nodes_[0]);
  EXPECT_NE(core_->GetFileStatus("/f")->layout.NodeAt(0), copy);
  EXPECT_FALSE(Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.layout.bound());
  EXPECT_EQ(std::ranges::count(dropped_[copy], f), 1);
}

// The copies of a striped file lie on nodes that also have first parts of it.
TEST_F(CoreUncut, ACopyOnANodeOfTheStripeDoesNotBecomeTheFirstBeforeItIsCut) {
  for (const bool is_cut : {false, true}) {
    const std::string name = is_cut ? "cut" : "uncut";
    const FileId f = MakeOpen(name, "2", "lazy", "stripe");
    Commit(f, 4 * kMiB);
    DoOrders();
    const NodeId first = core_->GetFileStatus("/" + name)->layout.NodeAt(0);
    CutWhileAllAnswer(f);
    EXPECT_EQ(ValidCopies(f), 1U);
    if (is_cut) DoOrders();
    EXPECT_EQ(ValidCopies(f), is_cut ? 2U : 1U);
    Die(first);
    EXPECT_EQ(core_->GetFileStatus("/" + name)->layout.NodeAt(0) == first, !is_cut);
    Return({}, first == nodes_[0] ? 8 : 7);
    AdvanceAlive(Seconds(2), {kAnna, kBen}, nodes_);
  }
}

// The node that had the bytes first is gone, so nobody can say what is to be left of them.
TEST_F(CoreUncut, AnOrderWithoutASourceForAPositionDoesNotCutIt) {
  const FileId f = MakeOpen("f", "3", "lazy", "stripe");
  Commit(f, 4 * kMiB);
  DoOrders();
  const NodeId second = core_->GetFileStatus("/f")->layout.NodeAt(kMiB);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = kMiB});
  Step(NodeStreamLost{second});
  CommitRequest closing{.file = f, .size_bytes = kMiB, .last_close = true};
  Ok<AttributesReply>(kAnna, closing);
  DoOrders();
  Die(second);
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(kMiB), second);
}

TEST_F(CoreUncut, ANodeWhosePartWasCutOffLosesNothingWhenItComesBackEmpty) {
  const FileId f = MakeOpen("f", "1", "lazy", "stripe");
  Commit(f, 4 * kMiB);
  const NodeId second = core_->GetFileStatus("/f")->layout.NodeAt(kMiB);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = kMiB});
  CommitRequest closing{.file = f, .size_bytes = kMiB, .last_close = true};
  Ok<AttributesReply>(kAnna, closing);
  AdvanceAlive(Seconds(5), {kAnna, kBen}, nodes_);
  Step(NodeStreamLost{second});
  AddNode("n" + std::to_string(second.value), uint64_t{1} << 30, 8);
  ConfirmAll();
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  CommitRequest longer{.file = f, .size_bytes = 2 * kMiB, .data_changed = true, .last_close = true};
  longer.nodes = {{second, kMiB, 0}};
  Ok<AttributesReply>(kAnna, longer);
  EXPECT_FALSE(Ok<OpenReply>(kBen, OpenRequest{f, false, ""}).access.lost);
}

// What was copied within the stripe may lie in a hole of the first copy.
TEST_F(CoreUncut, AFileContinuesWithinItsStripeOnlyWhereCopiesWereRemoved) {
  const FileId f = MakeOpen("f", "2", "lazy", "stripe");
  Commit(f, 4 * kMiB);
  DoOrders();
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  RelocateRequest relocate{f, 4 * kMiB, UINT64_MAX, Others({nodes_[1]})};
  const BindReply asked = Ok<BindReply>(kAnna, relocate);
  EXPECT_EQ(asked.older, std::vector<NodeId>{nodes_[1]});
  EXPECT_EQ(MovedTo(relocate), nodes_[1]);
}

TEST_F(CoreUncut, AFileDoesNotContinueOnACopyWithBytesThatWereCutOff) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId copy = Readers(f).back();
  const DataAccess access = Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access;
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 4096});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  RelocateRequest relocate{f, kMiB, UINT64_MAX, Others({copy})};
  EXPECT_EQ(Refused(kAnna, relocate), ErrorReason::kNoSpace);
  CommitRequest closing{.file = f, .size_bytes = 4096, .last_close = true};
  Ok<AttributesReply>(kAnna, closing);
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  EXPECT_EQ(MovedTo(relocate), copy) << "it has been copied since";
}

TEST_F(CoreUncut, AFileMayReturnToANodeThatWasFullAndHasNoneOfItsBytes) {
  const FileId f = MakeOpen("f", "1");
  Ok<BindReply>(kAnna, FreezeRequest{f});
  const auto moved = Ok<BindReply>(kAnna, RelocateRequest{f, 0, UINT64_MAX, {nodes_[0]}}).access;
  const NodeId next = moved.layout.NodeAt(0);
  ASSERT_NE(next, nodes_[0]);
  Commit(f);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 4096});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  const RelocateRequest back{f, kMiB, UINT64_MAX, Others({nodes_[0]})};
  EXPECT_EQ(MovedTo(back), nodes_[0]);
}

// A file that is shorter than its stripe counts as copied at the other positions.
TEST_F(CoreUncut, ACopyOfAPositionWithoutBytesMayBecomeTheFirst) {
  const FileId f = MakeOpen("f", "2", "lazy", "stripe");
  Commit(f, 4096);
  DoOrders();
  const auto layout = core_->GetFileStatus("/f")->layout;
  ASSERT_GT(layout.segments[0].width, 1U);
  const NodeId second = layout.segments[0].nodes[1];
  Die(second);
  EXPECT_NE(Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.layout.segments[0].nodes[1],
            second);
}

TEST_F(CoreUncut, ATruncationOfOtherBytesDoesNotLayAFileOutAnew) {
  const FileId f = MakeOnSilent();
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  SetAttributesRequest stale = CutOf(f);
  stale.generation = 77;
  EXPECT_EQ(Refused(kBen, stale), ErrorReason::kStale);
}

TEST_F(CoreUncut, ACopyThatNeverHadBytesMayBecomeTheFirst) {
  const FileId f = MakeOpen("f", "2");
  Commit(f, 0);
  const NodeId copy = Readers(f).back();
  ASSERT_NE(copy, nodes_[0]);
  Die(nodes_[0]);
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(0), copy);
}

TEST_F(CoreUncut, ADrainingNodeIsReplacedByACopyThatHasBeenCutIfThereIsNoOtherNode) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const NodeId copy = Readers(f).back();
  ASSERT_NE(copy, nodes_[0]);
  CutWhileAllAnswer(f);
  for (const NodeId node : Others({copy}))
    Step(DrainNode{.name = "n" + std::to_string(node.value), .drain = true});
  AdvanceAlive(Seconds(2), {kAnna, kBen}, nodes_);
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(0), nodes_[0]);
  DoOrders();
  AdvanceAlive(Seconds(2), {kAnna, kBen}, nodes_);
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.NodeAt(0), copy);
}

}  // namespace
}  // namespace mosa::manager
