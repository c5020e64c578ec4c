// Waits and how they end, and how long the manager relies on what it was told.
#include <gtest/gtest.h>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreWaits : public CoreFixture {
 protected:
  CoreWaits() {
    Start(kAnna);
    Start(kBen);
  }

  static SetAttributesRequest ChangeOf(FileId file) { return {.file = file, .permissions = 0600}; }
  // A file that kAnna has written and kBen has open.
  FileId MakeOpenElsewhere(const std::string& name, bool write) {
    const FileId file = MakeBound(kAnna, kRootFile, name, kMiB);
    Ok<OpenReply>(kBen, OpenRequest{file, write, ""});
    recalls_.clear();
    return file;
  }
  void ConfirmPinned(ClientId client) {
    for (const RecallPush& recall : std::exchange(recalls_[client], {}))
      Send(client, {RecallDoneRequest{recall.recall, true, true}});
  }
};

// ---- recalls

TEST_F(CoreWaits, AnAnswerFromBeforeConfirmsNoOtherRecall) {
  for (const bool restarts : {false, true}) {
    const FileId f = Make(kAnna, kRootFile, restarts ? "f" : "g");
    const FileId other = Make(kAnna, kRootFile, restarts ? "other f" : "other g");
    Ok<AttributesReply>(kBen, GetAttributesRequest{f});
    Send(kAnna, {ChangeOf(f)});
    const RecallId before = recalls_[kBen].at(0).recall;
    now_ = now_ + Milliseconds(10);
    if (restarts) {
      Restart();
      Start(kAnna);
    } else {
      Step(SessionClosed{kBen});
      recalls_.clear();
    }
    Start(kBen);
    Ok<AttributesReply>(kBen, GetAttributesRequest{other});
    const RequestId change = Send(kAnna, {ChangeOf(other)});
    Send(kBen, {RecallDoneRequest{before}});  // Repeated, since it was not answered.
    EXPECT_FALSE(Answered(kAnna, change)) << restarts;
    Confirm(kBen);
    EXPECT_TRUE(Answered(kAnna, change)) << restarts;
  }
}

TEST_F(CoreWaits, WhoComesBackWaitsForItsOwnRecallsOnly) {
  AddNode("n1");
  const FileId f = MakeOpenElsewhere("f", true);
  const RequestId freeze = Send(kAnna, {FreezeRequest{f}});
  const RecallId before = recalls_[kBen].at(0).recall;
  AdvanceAlive(Seconds(6), {kBen});
  Start(kAnna);
  Step(SessionRequest{kAnna, {freeze, RequestId(0), {FreezeRequest{f}}}});
  // kBen may have begun to store between the two.
  Send(kBen, {RecallDoneRequest{before}});
  EXPECT_FALSE(Answered(kAnna, freeze));
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, freeze));
}

TEST_F(CoreWaits, WhoOpensANamelessFileAgainAndAgainIsAskedOnceWhetherItHasIt) {
  AddNode("n1");
  const FileId f = MakeOpenElsewhere("f", true);
  Send(kAnna, {RemoveRequest{kRootFile, "f", false, false}});
  ASSERT_EQ(recalls_[kBen].size(), 1u);
  for (int i = 0; i < 3; ++i) {
    Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
    EXPECT_EQ(recalls_[kBen].size(), 2u);
  }
  // A negative answer may be older than the last open.
  Ok<EmptyReply>(kBen, ReleaseRequest{f, {}});
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  for (const RecallPush& recall : std::exchange(recalls_[kBen], {}))
    Send(kBen, {RecallDoneRequest{recall.recall, false}});
  EXPECT_EQ(recalls_[kBen].size(), 1u);
  Ok<GetXattrReply>(kBen, GetXattrRequest{f, "user.mosa.layout"});
}

// ---- freezes

TEST_F(CoreWaits, AFreezeEndsAlthoughAClientComesBackAgainAndAgainAndNeverAnswers) {
  AddNode("n1");
  const FileId f = MakeOpenElsewhere("f", true);
  const RequestId freeze = Send(kAnna, {FreezeRequest{f}});
  for (const bool answered : {false, false, false, true}) {
    AdvanceAlive(Seconds(9), {kAnna, kBen});
    Confirm(kAnna);  // kBen may have stored bytes before its session ended.
    Start(kBen);
    EXPECT_EQ(Answered(kAnna, freeze), answered);
  }
}

TEST_F(CoreWaits, AFreezeEndsAlthoughAClientIsEndedAgainAndAgainAndNeverAnswers) {
  AddNode("n1");
  const FileId f = MakeOpenElsewhere("f", true);
  const RequestId freeze = Send(kAnna, {FreezeRequest{f}});
  for (const bool answered : {false, false, true}) {
    for (const int64_t seconds : {6, 5}) {
      AdvanceAlive(Seconds(seconds), {kAnna, kBen});
      Confirm(kAnna);  // kBen may have stored bytes before its session ended.
    }
    Start(kBen);
    EXPECT_EQ(Answered(kAnna, freeze), answered);
  }
}

TEST_F(CoreWaits, AFreezeAsksAlsoWhoIsStillToConfirmAnotherRecall) {
  const NodeId n1 = AddNode("n1");
  AddNode("n2");
  const FileId f = MakeOpenElsewhere("f", false);
  // kBen's interest ends here, but its kernel still has the object open.
  Send(kAnna, {ChangeOf(f)});
  const RequestId freeze = Send(kAnna, {FreezeRequest{f}});
  EXPECT_FALSE(Answered(kAnna, freeze));
  ConfirmPinned(kBen);
  ASSERT_TRUE(Answered(kAnna, freeze));
  EXPECT_EQ(Refused(kAnna, RelocateRequest{f, kMiB, UINT64_MAX, {n1}}), ErrorReason::kNoSpace);
}

TEST_F(CoreWaits, AFreezeThatIsAskedForTwiceKnowsWhatItWasTold) {
  const NodeId n1 = AddNode("n1");
  AddNode("n2");
  const FileId f = MakeOpenElsewhere("f", false);
  const RequestId first = Send(kAnna, {FreezeRequest{f}});
  ConfirmPinned(kBen);
  ASSERT_TRUE(Answered(kAnna, first));
  Send(kAnna, {FreezeRequest{f}});
  EXPECT_EQ(Refused(kAnna, RelocateRequest{f, kMiB, UINT64_MAX, {n1}}), ErrorReason::kNoSpace);
}

TEST_F(CoreWaits, AFirstLayoutIsToldToOthersAndWaitsForNobody) {
  AddNode("n1");
  const FileId f = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  const RequestId bind = Send(kAnna, {BindRequest{f, kMiB}});
  EXPECT_TRUE(Answered(kAnna, bind));
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  EXPECT_EQ(recalls_[kBen][0].kind, RecallKind::kAccess);
}

// ---- directories

TEST_F(CoreWaits, ADirectoryIsGivenUpAlthoughItsHolderComesBackAgainAndAgainAndNeverAnswers) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const RequestId lookup = Send(kBen, {LookupRequest{d, "x"}});
  SessionStart back;
  back.delegations = {d};
  for (const bool answered : {false, false, false, true}) {
    AdvanceAlive(Seconds(9), {kAnna, kBen});
    Start(kAnna, back);
    EXPECT_EQ(Answered(kBen, lookup), answered);
  }
}

TEST_F(CoreWaits, ARenameBetweenTwoDelegatedDirectoriesAsksBothHoldersAtOnce) {
  Start(kCarl);
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const FileId e = Make(kBen, kRootFile, "e", FileType::kDirectory);
  Make(kAnna, d, "x");
  recalls_.clear();
  const RequestId rename = Send(kCarl, {RenameRequest{d, "x", e, "y"}});
  EXPECT_EQ(recalls_[kAnna].size(), 1U);
  EXPECT_EQ(recalls_[kBen].size(), 1U);
  ConfirmAll();
  ASSERT_TRUE(Answered(kCarl, rename));
  Ok<EntryReply>(kCarl, LookupRequest{e, "y"});
}

// ---- content of answers

TEST_F(CoreWaits, AnAnswerThatWasWithheldSaysHowThingsAreWhenItLeaves) {
  AddNode("n1");
  EXPECT_EQ(Refused(kBen, LookupRequest{kRootFile, "f"}), ErrorReason::kNoEntry);
  const MakeRequest make = MakeOf(kAnna, kRootFile, "f", FileType::kRegular, true);
  const RequestId made = Send(kAnna, {make});
  ASSERT_FALSE(Answered(kAnna, made));
  // Another thread of the mount has looked up the file, and was faster.
  const Layout layout = Ok<BindReply>(kAnna, BindRequest{make.file, kMiB}).access.layout;
  Ok<AttributesReply>(kAnna, CommitRequest{.file = make.file, .size_bytes = 5});
  Confirm(kBen);
  ASSERT_TRUE(Answered(kAnna, made));
  const auto reply = std::get<MakeReply>(replies_[{kAnna, made}].at(0));
  EXPECT_EQ(reply.access->layout, layout);
  EXPECT_EQ(reply.entry.attributes.size_bytes, 5U);
}

TEST_F(CoreWaits, ARepeatedAnswerSaysHowThingsAreWhenItLeaves) {
  AddNode("n1");
  const MakeRequest make = MakeOf(kAnna, kRootFile, "f", FileType::kRegular, true);
  const RequestId made = Send(kAnna, {make});
  const Layout layout = Ok<BindReply>(kAnna, BindRequest{make.file, kMiB}).access.layout;
  replies_.clear();
  Step(SessionRequest{kAnna, {made, RequestId(0), {make}}});
  ASSERT_TRUE(Answered(kAnna, made));
  EXPECT_EQ(std::get<MakeReply>(replies_[{kAnna, made}].at(0)).access->layout, layout);
}

// ---- room

TEST_F(CoreWaits, AnOrphanGoesWithTheLastWriterAlsoWithoutItsInterest) {
  const NodeId n1 = AddNode("n1");
  const FileId f = MakeOpenElsewhere("f", true);
  // kBen's answer left before its program had the file.
  Send(kAnna, {ChangeOf(f)});
  Confirm(kBen, /*holds_open=*/false);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "f", false, false});
  EXPECT_TRUE(dropped_[n1].empty());
  AdvanceAlive(Seconds(6), {kAnna});
  Confirm(kAnna);  // kBen may have stored bytes before its session ended.
  AdvanceAlive(Seconds(1), {kAnna});
  EXPECT_EQ(dropped_[n1], std::vector<FileId>{f});
}

TEST_F(CoreWaits, WhoKeepsUnusedRoomIsAskedAgain) {
  const NodeId n1 = AddNode("n1", 4 * kMiB);
  while (Ok<GrantReply>(kAnna, GrantRequest{n1, 4 * kMiB, 0, 0}).granted_bytes > 0) continue;
  for (int round = 0; round < 2; ++round) {
    const size_t asked_before = grant_recalls_[kAnna].size();
    const RequestId grant = Send(kBen, {GrantRequest{n1, kMiB, 0, 0}});
    EXPECT_GT(grant_recalls_[kAnna].size(), asked_before);
    AdvanceAlive(Seconds(2), {kAnna, kBen});
    EXPECT_TRUE(Answered(kBen, grant));
  }
}

TEST_F(CoreWaits, WhoWaitsForRoomHearsOfWhatChangedMeanwhile) {
  const NodeId n1 = AddNode("n1", 4 * kMiB);
  const FileId f = MakeOpenElsewhere("f", false);
  while (Ok<GrantReply>(kAnna, GrantRequest{n1, 4 * kMiB, 0, 0}).granted_bytes > 0) continue;
  const RequestId grant = Send(kBen, {GrantRequest{n1, kMiB, 0, 0}});
  ASSERT_FALSE(Answered(kBen, grant));
  Step(NodeStreamLost{n1});
  AddNode("n1", 4 * kMiB, /*incarnation=*/8);
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  EXPECT_EQ(recalls_[kBen][0].file, f);
}

// ---- nodes

TEST_F(CoreWaits, WhatIsStoredOnANodeThatComesBackEmptyBeforeItIsCommittedIsAnErrorOfTheClose) {
  const NodeId n1 = AddNode("n1");
  const auto made = [this](const std::string& name) {
    const FileId file = Make(kAnna, kRootFile, name, FileType::kRegular, true);
    Ok<BindReply>(kAnna, BindRequest{file, kMiB});
    return file;
  };
  const FileId before = made("before");
  now_ = now_ + Seconds(2);
  const FileId after = made("after");
  Step(NodeStreamLost{n1});
  AddNode("n1", 1 << 30, /*incarnation=*/8);
  const auto close = [&](FileId file) {
    CommitRequest commit{.file = file, .size_bytes = kMiB, .last_close = true};
    commit.nodes = {{n1, kMiB, 0}};
    return Refused(kAnna, commit);
  };
  EXPECT_EQ(close(before), ErrorReason::kStale);
  EXPECT_EQ(Ok<OpenReply>(kBen, OpenRequest{before, false, ""}).attributes.size_bytes, 0U);
  // The manager had not heard from the node for some time, but it may have stored until it ended.
  EXPECT_EQ(close(after), ErrorReason::kStale);
  EXPECT_EQ(close(made("anew")), ErrorReason::kNone);
}

TEST_F(CoreWaits, WhatANodeLosesWhileItsCommitWaitsForAnotherMountIsAnErrorOfTheClose) {
  enum class Answer { kWithheld, kRepeated };
  for (const Answer answer : {Answer::kWithheld, Answer::kRepeated}) {
    const std::string name = answer == Answer::kWithheld ? "a" : "b";
    const uint64_t incarnation = answer == Answer::kWithheld ? 7 : 8;
    const NodeId n1 = AddNode("n1", 1 << 30, incarnation);
    const FileId f = Make(kAnna, kRootFile, name, FileType::kRegular, true);
    Ok<BindReply>(kAnna, BindRequest{f, kMiB});
    Ok<EntryReply>(kBen, LookupRequest{kRootFile, name});
    recalls_.clear();
    now_ = now_ + Seconds(2);
    CommitRequest commit{.file = f, .size_bytes = kMiB, .last_close = true};
    commit.nodes = {{n1, kMiB, 0}};
    commit.generation = generations_[{kAnna, f}];
    const std::vector<Request> close{commit, SetAttributesRequest{.file = f, .modify_time = now_}};
    const RequestId closed = Send(kAnna, close);
    ASSERT_FALSE(Answered(kAnna, closed));
    if (answer == Answer::kRepeated) {
      Confirm(kBen);
      ASSERT_TRUE(Answered(kAnna, closed));
      replies_.clear();
    }
    now_ = now_ + Seconds(2);
    Step(NodeStreamLost{n1});
    AddNode("n1", 1 << 30, incarnation + 1);
    if (answer == Answer::kRepeated) Step(SessionRequest{kAnna, {closed, RequestId(0), close}});
    ConfirmAll();
    ASSERT_TRUE(Answered(kAnna, closed));
    const std::vector<Reply>& replies = replies_[{kAnna, closed}];
    ASSERT_EQ(replies.size(), 1U) << "nothing follows a failure";
    EXPECT_EQ(std::get<Failure>(replies[0]).reason, ErrorReason::kNodeLost);
    EXPECT_EQ(Refused(kBen, OpenRequest{f, false, ""}), ErrorReason::kNodeLost);
  }
}

TEST_F(CoreWaits, TheSameIsAnErrorIfTheNodeComesBackFirstAfterARestart) {
  enum class Between { kNothing, kAnotherRestart };
  for (const Between between : {Between::kNothing, Between::kAnotherRestart}) {
    const std::string name = between == Between::kNothing ? "a" : "b";
    const uint64_t incarnation = between == Between::kNothing ? 8 : 9;
    const NodeId n1 = AddNode("n1", 1 << 30, incarnation - 1);
    const FileId file = Make(kAnna, kRootFile, name, FileType::kRegular, true);
    const FileId others = Make(kBen, kRootFile, name + "2", FileType::kRegular, true);
    for (const auto& [client, f] : {std::pair{kAnna, file}, std::pair{kBen, others}})
      Ok<BindReply>(client, BindRequest{f, kMiB});
    now_ = now_ + Seconds(2);
    Restart();
    AddNode("n1", 1 << 30, incarnation);
    if (between == Between::kAnotherRestart) {
      Restart();
      AddNode("n1", 1 << 30, incarnation);
    }
    Start(kAnna, {.opens = {{file, true}}});
    Start(kBen, {.opens = {{others, true}}});
    for (const auto& [client, f] : {std::pair{kAnna, file}, std::pair{kBen, others}}) {
      CommitRequest commit{.file = f, .size_bytes = kMiB, .last_close = true};
      commit.nodes = {{n1, kMiB, 0}};
      EXPECT_EQ(Refused(client, commit), ErrorReason::kStale) << name;
      EXPECT_EQ(Ok<OpenReply>(client, OpenRequest{f, false, ""}).attributes.size_bytes, 0U);
    }
    // Later stores on that node count.
    const FileId after = Make(kAnna, kRootFile, name + "3", FileType::kRegular, true);
    Ok<BindReply>(kAnna, BindRequest{after, kMiB});
    Restart();
    AddNode("n1", 1 << 30, incarnation);
    Start(kAnna, {.opens = {{after, true}}});
    Start(kBen);
    CommitRequest commit{.file = after, .size_bytes = kMiB, .last_close = true};
    commit.nodes = {{n1, kMiB, 0}};
    EXPECT_EQ(Refused(kAnna, commit), ErrorReason::kNone) << name;
  }
}

// ---- stalls of the manager

TEST_F(CoreWaits, AListFromBeforeAStallLosesNothing) {
  const NodeId n1 = AddNode("n1");
  const FileId before = MakeBound(kAnna, kRootFile, "before", 8192);
  AdvanceAlive(Seconds(10), {kAnna, kBen}, {n1});
  // The node listed its objects just before.
  const FileId after = MakeBound(kAnna, kRootFile, "after", 8192);
  for (int stall = 0; stall < 2; ++stall) {
    now_ = now_ + Seconds(30);
    Step(Stalled{Seconds(30)});
    now_ = now_ + Seconds(1);
    Step(NodeReport{n1, {.used_bytes = 0, .limit_bytes = 1 << 30}});
  }
  Step(NodeStreamLost{n1});
  AddNode("n1", 1 << 30, 7, {before});
  Ok<OpenReply>(kAnna, OpenRequest{before, false, ""});
  Ok<OpenReply>(kAnna, OpenRequest{after, false, ""});
}

TEST_F(CoreWaits, AnswersAreKeptThroughAStall) {
  const MakeRequest request = MakeOf(kAnna, kRootFile, "f");
  const RequestId id = Send(kAnna, {request});
  Advance(Seconds(6));
  now_ = now_ + Seconds(70);
  Step(Stalled{Seconds(70)});
  Start(kAnna);
  replies_.clear();
  Step(SessionRequest{kAnna, {id, RequestId(0), {request}}});
  EXPECT_TRUE(std::holds_alternative<MakeReply>(replies_[{kAnna, id}].at(0)));
}

}  // namespace
}  // namespace mosa::manager
