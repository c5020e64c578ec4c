// Validity of copies: writers that end without a commit, damage, and closes with fewer copies than
// requested.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "manager/core/core_copies_fixture.h"
#include "manager/core/records.h"

namespace mosa::manager {
namespace {

class CoreCopyTruth : public CoreCopies {
 protected:
  // Two valid copies, the first on n1; kAnna has the file open for writing.
  FileId MakeOverwritten(const std::string& name) {
    const FileId f = MakeCommitted(name, "2");
    DoOrders();
    EXPECT_EQ(Readers(f).size(), 2U);
    Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
    return f;
  }
  void EndSessionOf(ClientId client) {
    const ClientId other = client == kAnna ? kBen : kAnna;
    AdvanceAlive(Seconds(6), {other}, nodes_);
    ConfirmAll();
    Start(client);
  }
  // Asks as kBen, since kAnna may be dead.
  std::string PathOf(FileId f) {
    for (const auto& item : Ok<ListDirectoryReply>(kBen, ListDirectoryRequest{kRootFile, ""}).items)
      if (item.entry.file == f) return "/" + item.name;
    return "/";
  }
  uint64_t Version(FileId f) {
    return core_->GetFileStatus(PathOf(f))->entry.attributes.data_version;
  }
  void RestartWith(const std::vector<ClientId>& clients, const std::vector<FileId>& objects,
                   const SessionStart& start = {}) {
    now_ = now_ + Seconds(1);
    orders_.clear();
    Restart();
    for (const ClientId client : clients) Start(client, client == kAnna ? start : SessionStart{});
    for (size_t i = 0; i < nodes_.size(); ++i)
      AddNode("n" + std::to_string(i + 1), uint64_t{1} << 30, 7, objects);
    ConfirmAll();
  }
  void Report(NodeId node, std::vector<FileId> corrupt, std::vector<FileId> healed = {}) {
    Step(NodeReport{node,
                    {.used_bytes = 0,
                     .limit_bytes = uint64_t{1} << 30,
                     .corrupt_objects = std::move(corrupt),
                     .healed_objects = std::move(healed)}});
    ConfirmAll();
  }
  // Waits as long as a cancelled order may still be carried out. `dead` sends nothing.
  void WaitForACancellation(NodeId dead) {
    for (int i = 0; i < 3; ++i) {
      AdvanceAlive(Seconds(5), {kAnna, kBen}, Others({dead}));
      ConfirmAll();
    }
  }
  std::string Damage(FileId f) { return core_->GetFileStatus(PathOf(f))->damage; }
  bool IsListed(FileId f) {
    const auto files = core_->ListLostFiles(100);
    return std::any_of(files.begin(), files.end(),
                       [f](const FileStatus& file) { return file.entry.file == f; });
  }
};

// ---- writers that end without a commit

TEST_F(CoreCopyTruth, AWriterThatDiesInAnOverwriteLeavesNoCopyThatDiffers) {
  const FileId f = MakeOverwritten("f");
  const std::vector<NodeId> both = Readers(f);
  const uint64_t version = Version(f);
  EndSessionOf(kAnna);
  EXPECT_EQ(Version(f), version + 1) << "pages of before are not kept";
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]}) << "until the other one was compared";
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, both[1]);
  EXPECT_EQ(orders[0].second.data_version, version + 1);
  EXPECT_EQ(orders[0].second.sources.segments[0].nodes, std::vector<NodeId>{nodes_[0]});
  Done(orders[0].first, orders[0].second);
  EXPECT_EQ(Readers(f), both);
}

TEST_F(CoreCopyTruth, AlsoIfTheManagerDiesBetween) {
  const FileId f = MakeOverwritten("f");
  const FileId other = MakeCommitted("other", "2");
  DoOrders();
  const std::vector<NodeId> others = Readers(other);
  const uint64_t version = Version(f);
  RestartWith({kBen}, {f, other});
  AdvanceAlive(Seconds(6), {kBen}, nodes_);  // kAnna does not come back.
  EXPECT_EQ(Version(f), version + 1);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  EXPECT_EQ(Readers(other), others) << "nobody could store there";
  DoOrders();
  EXPECT_EQ(Readers(f).size(), 2U);
  RestartWith({kBen}, {f, other});
  AdvanceAlive(Seconds(6), {kBen}, nodes_);
  EXPECT_EQ(Version(f), version + 1) << "once is enough";
}

TEST_F(CoreCopyTruth, AWriterThatComesBackAfterARestartGoesOn) {
  const FileId f = MakeOverwritten("f");
  const uint64_t version = Version(f);
  SessionStart start;
  start.opens = {{f, true}};
  RestartWith({kAnna, kBen}, {f}, start);
  EXPECT_EQ(Version(f), version);
  EXPECT_EQ(Readers(f).size(), 2U);
  Commit(f);
  EXPECT_EQ(Version(f), version + 1);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
}

// The writer may have stored bytes after its session ended, when its copies had been compared.
TEST_F(CoreCopyTruth, AWriterThatWasAwayIsDoubtedWhenItComesBack) {
  const FileId f = MakeOverwritten("f");
  AdvanceAlive(Seconds(6), {kBen}, nodes_);
  ConfirmAll();
  DoOrders();
  EXPECT_EQ(Readers(f).size(), 2U);
  const uint64_t version = Version(f);
  SessionStart start;
  start.opens = {{f, true}};
  Start(kAnna, start);
  ConfirmAll();
  EXPECT_EQ(Version(f), version + 1);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
}

TEST_F(CoreCopyTruth, ACommitThatIsRefusedIsNoCommit) {
  const FileId f = MakeOverwritten("f");
  const uint64_t version = Version(f);
  CommitRequest commit{.file = f, .size_bytes = kFileBytesMax + 1};
  commit.last_close = true;
  EXPECT_EQ(Refused(kAnna, commit), ErrorReason::kTooBig);
  EXPECT_EQ(Version(f), version + 1);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
}

TEST_F(CoreCopyTruth, ACloseWithoutAStoreCostsNothing) {
  const FileId f = MakeOverwritten("f");
  const uint64_t version = Version(f);
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  EXPECT_EQ(Version(f), version);
  EXPECT_EQ(Readers(f).size(), 2U);
}

TEST_F(CoreCopyTruth, AWriterThatReleasesWhatItCouldNotCommitIsDoubted) {
  const FileId f = MakeOverwritten("f");
  const uint64_t version = Version(f);
  Ok<EmptyReply>(kBen, ReleaseRequest{.file = f, .uncommitted = true});
  EXPECT_EQ(Version(f), version) << "it does not write the file";
  Ok<EmptyReply>(kAnna, ReleaseRequest{.file = f, .uncommitted = true});
  EXPECT_EQ(Version(f), version + 1);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  DoOrders();
  EXPECT_EQ(Readers(f).size(), 2U);
}

// Readers may keep pages of it.
TEST_F(CoreCopyTruth, AFileWithoutCopiesHasANewVersionIfItsWriterDoesNotComeBackAfterARestart) {
  const FileId f = MakeCommitted("f", "1");
  const FileId other = MakeCommitted("g", "1");
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  const uint64_t version = Version(f), others = Version(other);
  RestartWith({kBen}, {f, other});
  AdvanceAlive(Seconds(6), {kBen}, nodes_);
  EXPECT_EQ(Version(f), version + 1);
  EXPECT_EQ(Version(other), others) << "nobody could store there";
  RestartWith({kBen}, {f, other});
  AdvanceAlive(Seconds(6), {kBen}, nodes_);
  EXPECT_EQ(Version(f), version + 1) << "once is enough";
}

// The commit of one program does not vouch for what it, or another one, stores afterwards.
TEST_F(CoreCopyTruth, ItHasANewVersionAlsoIfSomethingWasCommittedBefore) {
  for (const bool by_another : {false, true}) {
    const FileId f = MakeCommitted(by_another ? "f" : "g", "1");
    for (const ClientId client : {kAnna, kBen}) {
      if (client == kBen && !by_another) continue;
      Ok<OpenReply>(client, OpenRequest{f, true, ""});
      ConfirmAll();
    }
    Commit(f, 2 * kMiB, /*close=*/by_another);
    const uint64_t version = Version(f);
    const ClientId other = by_another ? kAnna : kBen;
    RestartWith({other}, {f});
    AdvanceAlive(Seconds(6), {other}, nodes_);
    Start(by_another ? kBen : kAnna);
    EXPECT_EQ(Version(f), version + 1) << by_another;
  }
}

TEST_F(CoreCopyTruth, AFileThatWasClosedUnchangedKeepsItsVersionOverARestart) {
  const FileId f = MakeCommitted("f", "1");
  const uint64_t version = Version(f);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  RestartWith({kBen}, {f});
  AdvanceAlive(Seconds(6), {kBen}, nodes_);
  EXPECT_EQ(Version(f), version);
}

// A writer that comes back does not vouch for one that does not.
TEST_F(CoreCopyTruth, ItHasANewVersionAlsoIfAnotherWriterComesBack) {
  const FileId f = MakeCommitted("f", "1");
  for (const ClientId client : {kAnna, kBen}) {
    Ok<OpenReply>(client, OpenRequest{f, true, ""});
    ConfirmAll();
  }
  const uint64_t version = Version(f);
  RestartWith({}, {f});
  SessionStart start;
  start.opens = {{f, true}};
  Start(kBen, start);
  AdvanceAlive(Seconds(6), {kBen}, nodes_);
  ConfirmAll();
  EXPECT_EQ(Version(f), version + 1);
  // It may still store, and not come back next time.
  RestartWith({kAnna}, {f});
  AdvanceAlive(Seconds(6), {kAnna}, nodes_);
  Start(kBen);
  EXPECT_EQ(Version(f), version + 2);
}

TEST_F(CoreCopyTruth, AFileKeepsItsVersionIfAllWritersComeBack) {
  const FileId f = MakeCommitted("f", "1");
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  const uint64_t version = Version(f);
  SessionStart start;
  start.opens = {{f, true}};
  RestartWith({kAnna, kBen}, {f}, start);
  AdvanceAlive(Seconds(6), {kAnna, kBen}, nodes_);
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  EXPECT_EQ(Version(f), version);
}

// Every new version, not that of a commit alone, is marked while somebody has the file open.
TEST_F(CoreCopyTruth, ItHasANewVersionAlsoIfItWasCutOrLostAWriterBefore) {
  const FileId f = MakeCommitted("f", "1");
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = kMiB});
  uint64_t version = Version(f);
  RestartWith({kBen}, {f});
  AdvanceAlive(Seconds(6), {kBen}, nodes_);
  EXPECT_EQ(Version(f), version + 1);
  Start(kAnna);
  for (const ClientId client : {kAnna, kBen}) {
    Ok<OpenReply>(client, OpenRequest{f, true, ""});
    ConfirmAll();
  }
  AdvanceAlive(Seconds(6), {kBen}, nodes_);  // Anna's session expires.
  ConfirmAll();
  version = Version(f);
  RestartWith({}, {f});
  AdvanceAlive(Seconds(6), {}, nodes_);
  Start(kAnna);
  Start(kBen);
  EXPECT_EQ(Version(f), version + 1);
}

TEST_F(CoreCopyTruth, AnEmptyFileIsOpenedWithoutARecord) {
  const FileId f = MakeOpen("f", "1");
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  const Effects effects = Step(SessionRequest{
      kAnna, {RequestId(++last_request_[kAnna]), RequestId(0), {OpenRequest{f, true, ""}}}});
  for (const KvBatch::Write& write : effects.writes.writes) EXPECT_NE(write.key, InodeKey(f));
}

TEST_F(CoreCopyTruth, PagesOfAFileWithoutCopiesAreDroppedToo) {
  const FileId f = MakeCommitted("f", "1");
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  const uint64_t version = Version(f);
  EndSessionOf(kAnna);
  EXPECT_EQ(Version(f), version + 1);
}

// A report in transit at the time of an open says nothing about later stores.
TEST_F(CoreCopyTruth, ACopyThatIsDoneWhileSomebodyMayStoreIsNotValid) {
  const FileId f = MakeCommitted("f", "2");
  const auto [node, order] = TakeOrders().at(0);
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  Done(node, order);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  EndSessionOf(kAnna);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
}

TEST_F(CoreCopyTruth, TheLastCommitTakesThePlaceOfAFirstCopyThatIsGone) {
  const FileId f = MakeOverwritten("f");
  const NodeId second = Readers(f)[1];
  const uint64_t version = Version(f);
  // The writer's host fails, with mount and node.
  Step(NodeStreamLost{nodes_[0]});
  AdvanceAlive(Seconds(6), {kBen}, Others({nodes_[0]}));
  ConfirmAll();
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
  EXPECT_GT(Version(f), version + 1) << "whoever has read the other bytes drops them";
  EXPECT_FALSE(IsListed(f));
  // A node that comes back is compared before it counts.
  AddNode("n1", uint64_t{1} << 30, 7, {f});
  ConfirmAll();
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
  DoOrders();
  EXPECT_EQ(Readers(f).size(), 2U);
  EXPECT_EQ(Readers(f)[0], second);
}

// The mount of a program that has mapped the file may be killed, and its host may fail afterwards.
TEST_F(CoreCopyTruth, SoItDoesAfterStoresThatANodeAloneKnewOf) {
  const FileId f = MakeOpen("f", "2");
  Commit(f);
  DoOrders();
  const NodeId second = Readers(f)[1];
  const uint64_t version = Version(f);
  Step(NodeReport{nodes_[0], {.limit_bytes = uint64_t{1} << 30, .untold_objects = {f}}});
  ConfirmAll();
  EXPECT_EQ(Version(f), version + 1);
  Die(nodes_[0]);
  WaitForACancellation(nodes_[0]);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
  EXPECT_FALSE(IsListed(f));
}

TEST_F(CoreCopyTruth, SoItDoesAfterTwoRecoveriesInARow) {
  const FileId f = MakeOpen("f", "2");
  Commit(f);
  DoOrders();
  const NodeId second = Readers(f)[1];
  for (int i = 0; i < 2; ++i) {
    now_ = now_ + Seconds(1);
    options_.may_have_forgotten = true;
    Restart();
    options_.may_have_forgotten = false;
    for (const ClientId client : {kAnna, kBen}) Start(client);
    AddNode("n1", uint64_t{1} << 30, 7, {f});
    SetAttributesRequest changed{.file = f};
    changed.permissions = 0600;
    Ok<AttributesReply>(kAnna, changed);  // So that the file is written.
  }
  for (const char* name : {"n2", "n3", "n4"}) AddNode(name, uint64_t{1} << 30, 7, {f});
  Die(nodes_[0]);
  WaitForACancellation(nodes_[0]);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{second});
}

TEST_F(CoreCopyTruth, ACommitMakesOlderCopiesUnfitToTakeItsPlace) {
  const FileId f = MakeOverwritten("f");
  EndSessionOf(kAnna);  // Not repaired: the orders are not carried out.
  Rewrite(f);
  Start(kAnna);
  Step(NodeStreamLost{nodes_[0]});
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));
  ConfirmAll();
  EXPECT_EQ(Refused(kBen, OpenRequest{f, false, ""}), ErrorReason::kNodeLost);
  EXPECT_TRUE(IsListed(f));
}

// ---- damage

TEST_F(CoreCopyTruth, ADamagedCopyIsReplacedFromTheFirst) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const std::vector<NodeId> both = Readers(f);
  Report(both[1], {f});
  EXPECT_EQ(Readers(f), std::vector<NodeId>{both[0]});
  EXPECT_NE(Xattr(f, "layout").find("\"state\":\"copying\""), std::string::npos);
  EXPECT_EQ(Damage(f), "");
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, both[1]);
  Done(orders[0].first, orders[0].second);
  EXPECT_EQ(Readers(f), both);
}

TEST_F(CoreCopyTruth, ADamagedFirstCopyGivesItsPlaceToAValidOne) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const std::vector<NodeId> both = Readers(f);
  Report(both[0], {f});
  EXPECT_EQ(Readers(f), std::vector<NodeId>{both[1]});
  EXPECT_FALSE(IsListed(f));
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, both[0]);
  EXPECT_EQ(orders[0].second.sources.segments[0].nodes, std::vector<NodeId>{both[1]});
  Done(orders[0].first, orders[0].second);
  EXPECT_EQ(Readers(f), (std::vector<NodeId>{both[1], both[0]}));
  Report(both[0], {f});
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U) << "it may be damaged again";
}

TEST_F(CoreCopyTruth, DamageOfTheOnlyCopyIsListedUntilItIsWrittenAnew) {
  const FileId f = MakeCommitted("f", "1");
  Ok<OpenReply>(kAnna, OpenRequest{f, true, "the task"});
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  Report(nodes_[0], {f});
  EXPECT_TRUE(IsListed(f));
  EXPECT_NE(Damage(f).find("run task 'the task', which wrote the file, again"), std::string::npos)
      << Damage(f);
  EXPECT_NE(Xattr(f, "layout").find("\"damage\":\"node n1 found"), std::string::npos);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]}) << "what is not damaged can be read";
  RestartWith({kAnna, kBen}, {f});
  EXPECT_TRUE(IsListed(f)) << "a restart forgets it";
  Report(nodes_[0], {}, {f});
  EXPECT_FALSE(IsListed(f));
  EXPECT_EQ(Damage(f), "");
  EXPECT_EQ(Xattr(f, "layout").find("\"damage\""), std::string::npos);
  Report(nodes_[0], {f});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  EXPECT_FALSE(IsListed(f));
}

TEST_F(CoreCopyTruth, FromADamagedCopyNothingIsCopied) {
  const FileId f = MakeCommitted("f", "1");
  Report(nodes_[0], {f});
  SetXattr(f, "replicas", "2");
  EXPECT_TRUE(TakeOrders().empty());
  Report(nodes_[0], {}, {f});
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopyTruth, WhatWasComparedBeforeTheDamageWasFoundDoesNotCount) {
  const FileId f = MakeCommitted("f", "2");
  const auto [node, order] = TakeOrders().at(0);
  Report(node, {f});
  Done(node, order);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{nodes_[0]});
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopyTruth, DamageFoundWhileSomebodyWritesWaitsForTheClose) {
  const FileId f = MakeOverwritten("f");
  const std::vector<NodeId> both = Readers(f);
  Report(both[0], {f});
  EXPECT_EQ(Readers(f), std::vector<NodeId>{both[1]}) << "who reads is sent where it is whole";
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.layout.segments[0].nodes,
            std::vector<NodeId>{both[0]});
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  DoOrders();
  EXPECT_EQ(Readers(f), (std::vector<NodeId>{both[1], both[0]}));
}

TEST_F(CoreCopyTruth, AWriterThatDiesOverADamagedCopyLeavesTheLastCommit) {
  const FileId f = MakeOverwritten("f");
  const std::vector<NodeId> both = Readers(f);
  Report(both[0], {f});
  EndSessionOf(kAnna);
  EXPECT_EQ(Readers(f), std::vector<NodeId>{both[1]});
  EXPECT_FALSE(IsListed(f));
  DoOrders();
  EXPECT_EQ(ValidCopies(f), 2U);
}

TEST_F(CoreCopyTruth, ReportsOfObjectsThatAreNobodysMeanNothing) {
  const FileId f = MakeCommitted("f", "2");
  DoOrders();
  const std::vector<NodeId> both = Readers(f);
  Report(Others(both)[0], {f, FileId(99'999), kRootFile}, {f, FileId(99'999), kRootFile});
  EXPECT_EQ(Readers(f), both);
}

// ---- closes

TEST_F(CoreCopyTruth, ACloseLearnsWhyThereAreFewerCopies) {
  const auto await = [this](FileId f) {
    return Ok<AwaitCopiesReply>(kAnna, AwaitCopiesRequest{f, 1, 9});
  };
  // More copies than nodes.
  const FileId many = MakeCommitted("many", "6");
  DoOrders();
  AwaitCopiesReply reply = await(many);
  EXPECT_EQ(reply.copies_valid, 4U);
  EXPECT_EQ(reply.copies_wanted, 6U);
  EXPECT_FALSE(reply.more);
  EXPECT_FALSE(reply.no_room);
  EXPECT_NE(reply.reason, "");
  // Nodes without room.
  const FileId full = MakeCommitted("full", "2");
  for (int i = 0; i < 3; ++i) {
    for (const auto& [node, order] : TakeOrders()) {
      CopyReport report = ReportOf(order);
      report.done = false;
      report.failure = Failure{StatusCode::kResourceExhausted, ErrorReason::kNoSpace, "full"};
      Step(NodeCopyReport{node, report});
    }
  }
  reply = await(full);
  EXPECT_EQ(reply.copies_valid, 1U);
  EXPECT_FALSE(reply.more);
  EXPECT_TRUE(reply.no_room);
  EXPECT_NE(reply.reason, "");
  // All copies exist.
  const FileId good = MakeCommitted("good", "2");
  DoOrders();
  reply = await(good);
  EXPECT_EQ(reply.copies_valid, 2U);
  EXPECT_FALSE(reply.no_room);
  EXPECT_EQ(reply.reason, "");
}

// A node that dies during a close is given up before the close is.
TEST_F(CoreCopyTruth, ACloseOutlivesTheNodeThatWasToHaveTheCopy) {
  const FileId f = MakeCommitted("f", "2");
  const NodeId node = TakeOrders().at(0).first;
  Step(NodeStreamLost{node});
  const RequestId waits = Send(kAnna, {AwaitCopiesRequest{f, 1, 2}});
  EXPECT_FALSE(Answered(kAnna, waits));
  AdvanceAlive(Seconds(7), {kAnna, kBen}, Others({node}));
  EXPECT_TRUE(std::get<AwaitCopiesReply>(replies_[{kAnna, waits}].at(0)).more);
  AdvanceAlive(Seconds(5), {kAnna, kBen}, Others({node}));
  DoOrders();
  EXPECT_EQ(Ok<AwaitCopiesReply>(kAnna, AwaitCopiesRequest{f, 1, 2}).copies_valid, 2U);
}

}  // namespace
}  // namespace mosa::manager
