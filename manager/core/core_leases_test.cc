// Interest, recalls, delegations, sessions, repeated requests, locks and restarts.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreLeases : public CoreFixture {
 protected:
  CoreLeases() {
    Start(kAnna);
    Start(kBen);
  }

  SetLockRequest LockOf(FileId file, LockType type, bool wait = false) {
    return {file, Lock{.type = type, .begin = 0, .last = 9, .owner = 1}, wait};
  }
  const Reply& Only(ClientId client, RequestId id) { return replies_[{client, id}].at(0); }
};

TEST_F(CoreLeases, AChangeIsAnsweredWhenEveryoneElseHasLetGo) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  EXPECT_FALSE(Answered(kAnna, id));
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  EXPECT_EQ(recalls_[kBen][0].file, f);
  EXPECT_EQ(recalls_[kBen][0].kind, RecallKind::kFile);
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, id));
  EXPECT_TRUE(recalls_[kAnna].empty());
}

TEST_F(CoreLeases, ReadersOfAttributesNeverWaitAndSeeTheNewState) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  const RequestId read = Send(kBen, {GetAttributesRequest{f}});
  ASSERT_TRUE(Answered(kBen, read));
  EXPECT_EQ(std::get<AttributesReply>(Only(kBen, read)).attributes.permissions, 0600U);
  EXPECT_FALSE(Answered(kAnna, id));
}

// Otherwise Carl could append to the new file and announce it, while Ben, whose silent mount has an
// old cache, is still told that the file does not exist.
TEST_F(CoreLeases, NobodyIsToldOfANewNameWhileAnotherMountMayDenyIt) {
  Start(kCarl);
  const FileId old = Make(kAnna, kRootFile, "old");
  Refused(kBen, LookupRequest{kRootFile, "f"});
  const RequestId make = Send(kAnna, {MakeOf(kAnna, kRootFile, "f")});
  const std::vector<Request> readers = {
      LookupRequest{kRootFile, "f"}, MakeOf(kCarl, kRootFile, "f"),
      ListDirectoryRequest{.directory = kRootFile}, LinkRequest{old, kRootFile, "f"}};
  std::vector<RequestId> reads;
  for (const Request& request : readers) reads.push_back(Send(kCarl, {request}));
  for (const RequestId read : reads) EXPECT_FALSE(Answered(kCarl, read));
  EXPECT_FALSE(Answered(kAnna, make));
  EXPECT_TRUE(Answered(kCarl, Send(kCarl, {LookupRequest{kRootFile, "absent"}})));
  // A client does not wait for its own recall.
  const RequestId own = Send(kBen, {LookupRequest{kRootFile, "f"}});
  EXPECT_TRUE(Answered(kBen, own));
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, make));
  for (const RequestId read : reads) EXPECT_TRUE(Answered(kCarl, read));
}

// A mount keeps what its own changes have made of names: also that one is absent. Another mount may
// have changed the directory since it last looked something up there.
TEST_F(CoreLeases, WhoRemovedOrRenamedANameLearnsThatAnotherMountMakesIt) {
  const FileId other = Make(kAnna, kRootFile, "other", FileType::kDirectory);
  for (const bool renames : {false, true}) {
    SCOPED_TRACE(renames);
    Make(kAnna, kRootFile, "f");
    recalls_[kBen].clear();
    if (renames)
      Ok<RenameReply>(kBen, RenameRequest{kRootFile, "f", other, "g"});
    else
      Ok<RemoveReply>(kBen, RemoveRequest{kRootFile, "f"});
    Confirm(kAnna);
    const RequestId make = Send(kAnna, {MakeOf(kAnna, kRootFile, "f")});
    EXPECT_FALSE(Answered(kAnna, make));
    Confirm(kBen);
    EXPECT_TRUE(Answered(kAnna, make));
    Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "f"});
    Confirm(kBen);
  }
}

// Withheld listings would take memory, so they are made only once all clients show the same names.
TEST_F(CoreLeases, ListingsThatWaitAreMadeLaterAndNotAllAtOnce) {
  Start(kCarl);
  for (int i = 0; i < 1000; ++i) Make(kAnna, kRootFile, "f" + std::to_string(i));
  Ok<EntryReply>(kBen, LookupRequest{kRootFile, "f1"});
  const RequestId make = Send(kAnna, {MakeOf(kAnna, kRootFile, "g")});
  std::vector<RequestId> lists;
  for (int i = 0; i < 1000; ++i)
    lists.push_back(Send(kCarl, {ListDirectoryRequest{.directory = kRootFile}}));
  EXPECT_FALSE(Answered(kAnna, make));
  EXPECT_FALSE(Answered(kCarl, lists.front()));
  // Not all answers leave at once.
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, make));
  EXPECT_TRUE(Answered(kCarl, lists.front()));
  EXPECT_FALSE(Answered(kCarl, lists.back()));
  for (int i = 0; i < 100 && !Answered(kCarl, lists.back()); ++i) Step(Tick{});
  for (const RequestId list : lists) ASSERT_TRUE(Answered(kCarl, list));
}

TEST_F(CoreLeases, ASilentMountDelaysTheNewsOfANameByItsLeaseAtMost) {
  Start(kCarl);
  Refused(kBen, LookupRequest{kRootFile, "f"});
  Send(kAnna, {MakeOf(kAnna, kRootFile, "f")});
  const RequestId read = Send(kCarl, {LookupRequest{kRootFile, "f"}});
  AdvanceAlive(Seconds(4), {kAnna, kCarl});
  EXPECT_FALSE(Answered(kCarl, read));
  AdvanceAlive(Seconds(1), {kAnna, kCarl});
  EXPECT_TRUE(Answered(kCarl, read));
}

TEST_F(CoreLeases, ASecondChangeWaitsForTheFirstOnesRecallToo) {
  Start(kCarl);
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const RequestId first = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  const RequestId second = Send(kCarl, {SetAttributesRequest{.file = f, .permissions = 0644}});
  EXPECT_FALSE(Answered(kCarl, second));
  Confirm(kAnna);
  EXPECT_FALSE(Answered(kCarl, second));
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, first));
  EXPECT_TRUE(Answered(kCarl, second));
}

TEST_F(CoreLeases, AHolderThatDoesNotAnswerDelaysAChangeUntilItsLeaseEnds) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  AdvanceAlive(Seconds(4), {kAnna});
  EXPECT_FALSE(Answered(kAnna, id));
  AdvanceAlive(Seconds(1), {kAnna});
  EXPECT_TRUE(Answered(kAnna, id));
  EXPECT_EQ(ends_[kBen], 1);
  Send(kBen, {GetAttributesRequest{f}});
  EXPECT_EQ(ends_[kBen], 2);
}

TEST_F(CoreLeases, AHolderThatLivesButNeverAnswersDelaysAChangeAtMostFifteenSeconds) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  AdvanceAlive(Seconds(9), {kAnna, kBen});
  EXPECT_FALSE(Answered(kAnna, id));
  AdvanceAlive(Seconds(6), {kAnna, kBen});
  EXPECT_TRUE(Answered(kAnna, id));
  EXPECT_GT(ends_[kBen], 0);
}

TEST_F(CoreLeases, EntriesAreRecalledFromWhoLookedUpAnAbsentName) {
  EXPECT_EQ(Refused(kBen, LookupRequest{kRootFile, "f"}), ErrorReason::kNoEntry);
  const RequestId id = Send(kAnna, {MakeOf(kAnna, kRootFile, "f")});
  EXPECT_FALSE(Answered(kAnna, id));
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  EXPECT_EQ(recalls_[kBen][0].file, kRootFile);
  EXPECT_EQ(recalls_[kBen][0].kind, RecallKind::kEntries);
}

TEST_F(CoreLeases, WhoeverOnlyLooksLeavesTheHolderItsNames) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  EXPECT_TRUE(Ok<MakeReply>(kAnna, MakeOf(kAnna, d, "f")).delegated);
  for (const Request& look : {Request(LookupRequest{d, "f"}), Request(LookupRequest{d, "g"}),
                              Request(ListDirectoryRequest{.directory = d})}) {
    const RequestId id = Send(kBen, {look});
    if (!recalls_[kAnna].empty()) {
      EXPECT_FALSE(Answered(kBen, id));
      ASSERT_EQ(recalls_[kAnna].size(), 1U);
      EXPECT_EQ(recalls_[kAnna][0].file, d);
      EXPECT_EQ(recalls_[kAnna][0].kind, RecallKind::kDelegation);
      Confirm(kAnna);
    }
    EXPECT_TRUE(Answered(kBen, id));
  }
  // The holder still knows names, so it is told of a change.
  const RequestId id = Send(kBen, {MakeOf(kBen, d, "g")});
  EXPECT_FALSE(Answered(kBen, id));
  ASSERT_EQ(recalls_[kAnna].size(), 1U);
  EXPECT_EQ(recalls_[kAnna][0].kind, RecallKind::kEntries);
  Confirm(kAnna);
  EXPECT_TRUE(Answered(kBen, id));
}

TEST_F(CoreLeases, WhatWasForgottenIsNotRecalled) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  Send(kBen, {ForgetRequest{{f}}});
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  EXPECT_TRUE(Answered(kAnna, id));
}

TEST_F(CoreLeases, InterestWorksBeyondSixtyFourSessions) {
  const FileId f = Make(kAnna, kRootFile, "f");
  for (uint64_t i = 0; i < 100; ++i) {
    Start(ClientId(1000 + i));
    Send(ClientId(1000 + i), {GetAttributesRequest{f}});
  }
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(Answered(kAnna, id));
    ASSERT_EQ(recalls_[ClientId(1000 + i)].size(), 1U) << i;
    Confirm(ClientId(1000 + i));
  }
  EXPECT_TRUE(Answered(kAnna, id));
  // Slots of ended sessions are reused and carry no interest over.
  for (uint64_t i = 0; i < 100; ++i) Send(ClientId(1000 + i), {GetAttributesRequest{f}});
  for (uint64_t i = 0; i < 100; ++i) Step(SessionClosed{ClientId(1000 + i)});
  for (uint64_t i = 0; i < 100; ++i) Start(ClientId(2000 + i));
  EXPECT_TRUE(Answered(kAnna, Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0611}})));
}

// ---- delegations

TEST_F(CoreLeases, ANewDirectoryIsItsMakersAlone) {
  const auto made = Ok<MakeReply>(kAnna, MakeOf(kAnna, kRootFile, "d", FileType::kDirectory));
  EXPECT_TRUE(made.delegated);
  const FileId d = made.entry.file;
  const RequestId lookup = Send(kBen, {LookupRequest{d, "f"}});
  EXPECT_FALSE(Answered(kBen, lookup));
  ASSERT_EQ(recalls_[kAnna].size(), 1U);
  EXPECT_EQ(recalls_[kAnna][0].file, d);
  // The holder sends its deferred makes, then lets go.
  const FileId f = Make(kAnna, d, "f");
  EXPECT_FALSE(Answered(kBen, lookup));
  Confirm(kAnna);
  ASSERT_TRUE(Answered(kBen, lookup));
  EXPECT_EQ(std::get<EntryReply>(Only(kBen, lookup)).entry.file, f);
}

TEST_F(CoreLeases, AParkedEnvelopeChangesNothingBeforeItRuns) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const auto before = image_;
  const RequestId id = Send(kBen, {MakeOf(kBen, kRootFile, "x"), MakeOf(kBen, d, "f")});
  EXPECT_FALSE(Answered(kBen, id));
  EXPECT_EQ(image_, before);
  Step(SessionRequest{kBen, {id, RequestId(0), {MakeOf(kBen, kRootFile, "y")}}});
  Confirm(kAnna);
  ConfirmAll();
  ASSERT_TRUE(Answered(kBen, id));
  EXPECT_EQ((replies_[{kBen, id}].size()), 2U);
  EXPECT_EQ(Refused(kBen, LookupRequest{kRootFile, "y"}), ErrorReason::kNoEntry);
}

TEST_F(CoreLeases, ParkedRequestsRunInOrderWhenTheHoldersLeaseEnds) {
  Start(kCarl);
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const RequestId first = Send(kBen, {MakeOf(kBen, d, "f")});
  const RequestId second = Send(kCarl, {MakeOf(kCarl, d, "f")});
  AdvanceAlive(Seconds(6), {kBen, kCarl});
  ConfirmAll();
  ASSERT_TRUE(Answered(kBen, first) && Answered(kCarl, second));
  EXPECT_TRUE(std::holds_alternative<MakeReply>(Only(kBen, first)));
  EXPECT_TRUE(std::holds_alternative<Failure>(Only(kCarl, second)));
}

TEST_F(CoreLeases, AFileMakerGetsTheParentOnlyIfNobodyElseIsInterested) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  Send(kAnna, {ForgetRequest{{d}}});
  EXPECT_TRUE(Ok<MakeReply>(kAnna, MakeOf(kAnna, d, "a")).delegated);
  Send(kAnna, {ForgetRequest{{d}}});
  Ok<ListDirectoryReply>(kBen, ListDirectoryRequest{d, ""});
  const RequestId id = Send(kAnna, {MakeOf(kAnna, d, "b")});
  Confirm(kBen);
  EXPECT_FALSE(std::get<MakeReply>(Only(kAnna, id)).delegated);
  EXPECT_TRUE(Ok<MakeReply>(kAnna, MakeOf(kAnna, d, "c")).delegated);
}

TEST_F(CoreLeases, AContendedDirectoryIsLeftAloneForAWhile) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  EXPECT_FALSE(Ok<MakeReply>(kBen, MakeOf(kBen, d, "b")).delegated);
  EXPECT_FALSE(Ok<MakeReply>(kBen, MakeOf(kBen, d, "c")).delegated);
  AdvanceAlive(Seconds(3), {kAnna, kBen});
  EXPECT_TRUE(Ok<MakeReply>(kBen, MakeOf(kBen, d, "e")).delegated);
}

TEST_F(CoreLeases, ADelegationRecalledBeforeTheReplyLeftIsNotPromised) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  Send(kAnna, {ForgetRequest{{d}}});
  EXPECT_EQ(Refused(kBen, LookupRequest{kRootFile, "e"}), ErrorReason::kNoEntry);
  MakeRequest request = MakeOf(kAnna, kRootFile, "e", FileType::kDirectory);
  const FileId e = request.file;
  const RequestId id = Send(kAnna, {request});
  ASSERT_FALSE(Answered(kAnna, id));
  Send(kBen, {LookupRequest{e, "x"}});
  Confirm(kBen);
  ASSERT_TRUE(Answered(kAnna, id));
  EXPECT_FALSE(std::get<MakeReply>(Only(kAnna, id)).delegated);
}

TEST_F(CoreLeases, ADelegatedDirectoryIsRecalledBeforeItIsRemovedByAnother) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const RequestId id = Send(kBen, {RemoveRequest{kRootFile, "d", true, false}});
  EXPECT_FALSE(Answered(kBen, id));
  Make(kAnna, d, "deferred");
  ConfirmAll();
  ASSERT_TRUE(Answered(kBen, id));
  EXPECT_EQ(std::get<Failure>(Only(kBen, id)).reason, ErrorReason::kNotEmpty);
}

// ---- repeated requests

TEST_F(CoreLeases, ARepeatedChangeIsAnsweredFromTheRecordAlsoAfterARestart) {
  const MakeRequest request = MakeOf(kAnna, kRootFile, "f");
  const RequestId id = Send(kAnna, {request});
  auto first = replies_[{kAnna, id}];
  ASSERT_EQ(first.size(), 1U);
  std::get<MakeReply>(first[0]).delegated = false;
  for (int round = 0; round < 2; ++round) {
    replies_.clear();
    Step(SessionRequest{kAnna, {id, RequestId(0), {request}}});
    EXPECT_EQ((replies_[{kAnna, id}]), first);
    Restart();
    Start(kAnna);
    Start(kBen);
  }
  replies_.clear();
  Step(SessionRequest{kAnna, {RequestId(0), RequestId(id.value + 1), {}}});
  for (const auto& [key, value] : image_) EXPECT_NE(key[0], 'R');
}

TEST_F(CoreLeases, ARequestRepeatedWhileWithheldRunsOnce) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const Request change = LinkRequest{f, kRootFile, "g"};
  const RequestId id = Send(kAnna, {change});
  EXPECT_FALSE(Answered(kAnna, id));
  Step(SessionRequest{kAnna, {id, RequestId(0), {change}}});
  EXPECT_FALSE(Answered(kAnna, id));
  ConfirmAll();
  EXPECT_EQ(std::get<EntryReply>(Only(kAnna, id)).entry.attributes.link_count, 2U);
}

TEST_F(CoreLeases, AnExpiredSessionThatComesBackStillGetsTheAnswerOfThen) {
  const MakeRequest request = MakeOf(kAnna, kRootFile, "f");
  const RequestId id = Send(kAnna, {request});
  Advance(Seconds(6));
  Start(kAnna);
  replies_.clear();
  Step(SessionRequest{kAnna, {id, RequestId(0), {request}}});
  EXPECT_TRUE(std::holds_alternative<MakeReply>(Only(kAnna, id)));
  Advance(Seconds(6));
  AdvanceAlive(Seconds(61), {});
  for (const auto& [key, value] : image_) EXPECT_NE(key[0], 'R');
}

TEST_F(CoreLeases, RecordedRepliesAreBoundedWhileALockIsWaitedFor) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const FileId g = Make(kBen, kRootFile, "g");
  Ok<EmptyReply>(kAnna, LockOf(f, LockType::kExclusive));
  const RequestId lock = Send(kBen, {LockOf(f, LockType::kExclusive, true)});
  constexpr uint64_t kChanges = 35'000;
  const Request change = SetAttributesRequest{.file = g, .permissions = 0600};
  for (uint64_t i = 1; i <= kChanges; ++i) {
    const RequestId id(lock.value + i);
    Step(SessionRequest{kBen, {id, lock, {change}}});
  }
  EXPECT_TRUE(Answered(kBen, RequestId(lock.value + kChanges)));
  const auto is_reply = [](const auto& record) { return record.first[0] == 'R'; };
  EXPECT_LT(std::count_if(image_.begin(), image_.end(), is_reply), 33'000);
}

// ---- locks

TEST_F(CoreLeases, AWaitingLockIsAnsweredWhenItIsGrantedOrCancelled) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<EmptyReply>(kAnna, LockOf(f, LockType::kExclusive));
  EXPECT_EQ(Refused(kBen, LockOf(f, LockType::kShared)), ErrorReason::kWouldBlock);
  const RequestId waiting = Send(kBen, {LockOf(f, LockType::kShared, true)});
  EXPECT_FALSE(Answered(kBen, waiting));
  Ok<EmptyReply>(kBen, CancelLockRequest{waiting});
  EXPECT_EQ(std::get<Failure>(Only(kBen, waiting)).reason, ErrorReason::kInterrupted);
  const RequestId again = Send(kBen, {LockOf(f, LockType::kShared, true)});
  Ok<EmptyReply>(kAnna, LockOf(f, LockType::kUnlock));
  EXPECT_TRUE(std::holds_alternative<EmptyReply>(Only(kBen, again)));
}

TEST_F(CoreLeases, LocksOfAnEndedSessionAreReleased) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<EmptyReply>(kAnna, LockOf(f, LockType::kExclusive));
  const RequestId waiting = Send(kBen, {LockOf(f, LockType::kExclusive, true)});
  AdvanceAlive(Seconds(6), {kBen});
  EXPECT_TRUE(Answered(kBen, waiting));
}

TEST_F(CoreLeases, ALockIsItsHoldersThroughoutAReconnect) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<EmptyReply>(kAnna, LockOf(f, LockType::kExclusive));
  const RequestId waiting = Send(kBen, {LockOf(f, LockType::kExclusive, true)});
  Step(SessionLost{kAnna});
  SessionStart back;
  back.locks = {{f, LockOf(f, LockType::kExclusive).lock}};
  Start(kAnna, back);
  EXPECT_FALSE(Answered(kBen, waiting));
  // A lock that the client does not name again passes to the next waiter.
  Start(kAnna);
  EXPECT_TRUE(Answered(kBen, waiting));
  EXPECT_EQ(Refused(kAnna, LockOf(f, LockType::kExclusive)), ErrorReason::kWouldBlock);
}

TEST_F(CoreLeases, ALockThatWaitsMustBeLast) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const auto replies = Call(kAnna, {LockOf(f, LockType::kExclusive, true), ForgetRequest{}});
  EXPECT_EQ(std::get<Failure>(replies.at(0)).reason, ErrorReason::kInvalid);
}

// ---- restart

TEST_F(CoreLeases, GraceHoldsRequestsUntilAllSessionsAreBack) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<EmptyReply>(kAnna, LockOf(f, LockType::kExclusive));
  Restart();
  EXPECT_TRUE(core_->GetClusterStatus(now_).in_grace);
  Send(kBen, {GetAttributesRequest{f}});
  EXPECT_EQ(ends_[kBen], 1);
  Start(kBen);
  const RequestId lock = Send(kBen, {LockOf(f, LockType::kExclusive)});
  const RequestId alive(0);
  replies_.clear();
  Step(SessionRequest{kBen, {alive, RequestId(0), {}}});
  EXPECT_TRUE(Answered(kBen, alive));
  EXPECT_FALSE(Answered(kBen, lock));
  SessionStart back;
  back.locks = {{f, LockOf(f, LockType::kExclusive).lock}};
  Start(kAnna, back);
  ASSERT_TRUE(Answered(kBen, lock));
  EXPECT_EQ(std::get<Failure>(Only(kBen, lock)).reason, ErrorReason::kWouldBlock);
}

TEST_F(CoreLeases, ARecordedReplyTooWaitsForGraceSinceOthersMayStillShowWhatWas) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const Request change = LinkRequest{f, kRootFile, "g"};
  const RequestId id = Send(kAnna, {change});
  EXPECT_FALSE(Answered(kAnna, id));
  Restart();
  Start(kAnna);
  Step(SessionRequest{kAnna, {id, RequestId(0), {change}}});
  EXPECT_FALSE(Answered(kAnna, id));
  Start(kBen);
  ASSERT_TRUE(Answered(kAnna, id));
  EXPECT_EQ(std::get<EntryReply>(Only(kAnna, id)).entry.attributes.link_count, 2U);
}

TEST_F(CoreLeases, GraceEndsWithoutThoseWhoDoNotComeBack) {
  const FileId open = Make(kBen, kRootFile, "unfinished", FileType::kRegular, true);
  Restart();
  Start(kAnna);
  const RequestId id = Send(kAnna, {LookupRequest{kRootFile, "unfinished"}});
  AdvanceAlive(Seconds(4), {kAnna});
  EXPECT_FALSE(Answered(kAnna, id));
  AdvanceAlive(Seconds(1), {kAnna});
  ASSERT_TRUE(Answered(kAnna, id));
  EXPECT_EQ(std::get<Failure>(Only(kAnna, id)).reason, ErrorReason::kNoEntry);
  EXPECT_EQ(Refused(kAnna, GetAttributesRequest{open}), ErrorReason::kStale);
}

TEST_F(CoreLeases, ADelegationSurvivesARestartIfItsHolderSaysSo) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  Restart();
  SessionStart back;
  back.delegations = {d};
  Start(kAnna, back);
  Start(kBen);
  const RequestId id = Send(kBen, {LookupRequest{d, "x"}});
  EXPECT_FALSE(Answered(kBen, id));
  EXPECT_EQ(recalls_[kAnna].size(), 1U);
}

TEST_F(CoreLeases, AReconnectedHolderKeepsParkedRequestsWaitingUntilItLetsGo) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const RequestId id = Send(kBen, {LookupRequest{d, "x"}});
  recalls_.clear();
  Step(SessionLost{kAnna});
  SessionStart back;
  back.delegations = {d};
  Start(kAnna, back);
  EXPECT_FALSE(Answered(kBen, id));
  Confirm(kAnna);
  EXPECT_TRUE(Answered(kBen, id));
}

TEST_F(CoreLeases, AReconnectedHolderThatLetGoLetsParkedRequestsRun) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const RequestId id = Send(kBen, {LookupRequest{d, "x"}});
  Start(kAnna);
  EXPECT_TRUE(Answered(kBen, id));
}

TEST_F(CoreLeases, AReconnectAnswersOutstandingRecalls) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  EXPECT_FALSE(Answered(kAnna, id));
  Start(kBen);
  EXPECT_TRUE(Answered(kAnna, id));
}

TEST_F(CoreLeases, AReconnectedClientIsAskedForItsGrantsAgain) {
  const NodeId n1 = AddNode("n1", 4 * kMiB);
  while (Ok<GrantReply>(kAnna, GrantRequest{n1, 4 * kMiB, 0, 0}).granted_bytes > 0) continue;
  Send(kBen, {GrantRequest{n1, kMiB, 0, 0}});
  EXPECT_EQ(grant_recalls_[kAnna].size(), 1U);
  SessionStart back;
  back.grants = {{n1, 4 * kMiB}};
  Start(kAnna, back);
  EXPECT_EQ(grant_recalls_[kAnna].size(), 2U);
}

TEST_F(CoreLeases, SessionsAreRefusedWithASentence) {
  Start(ClientId(0));
  EXPECT_NE(refused_[ClientId(0)], "");
  options_.sessions_max = 1;
  core_ = std::make_unique<ManagerCore>(options_);
  Start(kAnna);
  Start(kBen);
  EXPECT_NE(refused_[kBen].find("1 sessions are open"), std::string::npos);
}

TEST_F(CoreLeases, AWakeUpIsAlwaysAskedForWhileALeaseRuns) {
  const Effects effects = Step(SessionRequest{kAnna, {}});
  ASSERT_TRUE(effects.wake_at);
  EXPECT_LE(*effects.wake_at, now_ + kSessionLease);
}

TEST_F(CoreLeases, WhileTheManagerDidNotRunNobodyWasSilent) {
  const NodeId node = AddNode("n1");
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<AttributesReply>(kBen, GetAttributesRequest{f});
  const RequestId id = Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  // Exactly so late that the session's deadline falls into the stall.
  now_ = now_ + Seconds(30);
  Step(Stalled{Seconds(25)});
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, id));
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes.at(0).address.node, node);
  EXPECT_EQ(core_->GetClusterStatus(now_).nodes.at(0).address.state, NodeState::kLive);
  now_ = now_ + Seconds(6);
  Step(Tick{});
  EXPECT_NE(core_->GetClusterStatus(now_).nodes.at(0).address.state, NodeState::kLive);
}

}  // namespace
}  // namespace mosa::manager
