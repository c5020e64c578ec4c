// Shared directories and reserved names.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "manager/core/core_fixture.h"
#include "manager/core/shared_directories.h"

namespace mosa::manager {
namespace {

class CoreShared : public CoreFixture {
 protected:
  CoreShared() {
    for (const ClientId client : {kAnna, kBen, kCarl}) Start(client);
    directory_ = Make(kAnna, kRootFile, "d", FileType::kDirectory);
    Share();
  }
  // Anna and Ben take turns. The first file is Anna's by her delegation.
  void Share() {
    for (uint32_t i = 0; i < options_.turns_to_share + 2; ++i) {
      const std::string name = "turn" + std::to_string(++turns_);
      Make(i % 2 == 0 ? kAnna : kBen, directory_, name);
    }
    ConfirmAll();
  }
  EntryReply Look(ClientId client, const std::string& name, bool reserve = true) {
    return Ok<EntryReply>(client, LookupOf(name, reserve));
  }
  LookupRequest LookupOf(const std::string& name, bool reserve = true) const {
    LookupRequest request{directory_, name};
    if (reserve) request.reserve_for = kAlice;
    return request;
  }
  MakeRequest MakeHere(ClientId client, const std::string& name) {
    return MakeOf(client, directory_, name);
  }
  const Reply& Last(ClientId client, RequestId id) { return replies_.at({client, id}).back(); }

  FileId directory_;
  int turns_ = 0;
};

TEST_F(CoreShared, NobodyWaitsForAnybody) {
  for (const ClientId client : {kAnna, kBen, kCarl}) {
    const EntryReply found = Look(client, "turn1");
    ASSERT_TRUE(found.shared_parent);
    EXPECT_TRUE(found.shared_parent->shared);
    EXPECT_EQ(found.shared_parent->size_bytes, options_.turns_to_share + 2);
    EXPECT_FALSE(Look(client, "absent" + std::to_string(client.value), false).reserved);
    EXPECT_TRUE(Ok<AttributesReply>(client, GetAttributesRequest{directory_}).attributes.shared);
    EXPECT_TRUE(Ok<ListDirectoryReply>(client, ListDirectoryRequest{directory_, ""}).shared);
  }
  for (const ClientId client : {kAnna, kBen, kAnna}) {
    const RequestId id = Send(client, {MakeHere(client, "f" + std::to_string(++turns_))});
    ASSERT_TRUE(Answered(client, id));
    EXPECT_TRUE(std::get<MakeReply>(Last(client, id)).parent_attributes.shared);
    EXPECT_FALSE(std::get<MakeReply>(Last(client, id)).delegated);
  }
  EXPECT_TRUE(recalls_[kAnna].empty() && recalls_[kBen].empty() && recalls_[kCarl].empty());
}

TEST_F(CoreShared, ItEndsWhenNobodyTakesTurns) {
  AdvanceAlive(Seconds(3), {kAnna, kBen, kCarl});
  EXPECT_EQ(Refused(kAnna, LookupOf("x")), ErrorReason::kNoEntry);
  EXPECT_TRUE(Ok<MakeReply>(kAnna, MakeHere(kAnna, "y")).delegated);
}

TEST_F(CoreShared, FewTurnsShareNothing) {
  const FileId other = Make(kAnna, kRootFile, "e", FileType::kDirectory);
  for (uint32_t i = 0; i < options_.turns_to_share; ++i) {
    const ClientId client = i % 2 == 0 ? kAnna : kBen;
    Make(client, other, "f" + std::to_string(i));
  }
  EXPECT_EQ(Refused(kCarl, LookupRequest{other, "x"}), ErrorReason::kNoEntry);
}

TEST_F(CoreShared, AReservedNameIsItsHoldersAlone) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  EXPECT_TRUE(Look(kAnna, "x").reserved);  // Again.
  EXPECT_TRUE(Look(kBen, "y").reserved);   // Another name.
  const RequestId look = Send(kBen, {LookupOf("x")});
  EXPECT_FALSE(Answered(kBen, look));
  // The file comes, and what waited finds it.
  const RequestId make = Send(kAnna, {MakeHere(kAnna, "x")});
  ASSERT_TRUE(Answered(kAnna, make));
  EXPECT_FALSE(Answered(kBen, look));
  Confirm(kAnna);
  ASSERT_TRUE(Answered(kBen, look));
  EXPECT_EQ(std::get<EntryReply>(Last(kBen, look)).entry.file,
            std::get<MakeReply>(Last(kAnna, make)).entry.file);
}

TEST_F(CoreShared, AListingWaitsForAllHolders) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  ASSERT_TRUE(Look(kBen, "y").reserved);
  const RequestId list = Send(kCarl, {ListDirectoryRequest{directory_, ""}});
  Confirm(kAnna);
  EXPECT_FALSE(Answered(kCarl, list));
  const RequestId make = Send(kBen, {MakeHere(kBen, "y")});
  ASSERT_TRUE(Answered(kBen, make));
  Confirm(kBen);
  ASSERT_TRUE(Answered(kCarl, list));
  const auto& items = std::get<ListDirectoryReply>(Last(kCarl, list)).items;
  EXPECT_EQ(items.back().name, "y");
  EXPECT_TRUE(Look(kCarl, "x").reserved);  // Anna has given it back.
}

TEST_F(CoreShared, WhatWouldMakeOrTakeTheNameWaits) {
  const FileId file = Make(kBen, kRootFile, "file");
  ConfirmAll();
  const std::vector<Request> all = {MakeHere(kBen, "x"),
                                    LinkRequest{file, directory_, "x"},
                                    RemoveRequest{directory_, "x"},
                                    RenameRequest{kRootFile, "file", directory_, "x"},
                                    RenameRequest{directory_, "x", kRootFile, "z"},
                                    SetXattrRequest{directory_, "user.mosa.placement", "local"},
                                    RemoveRequest{kRootFile, "d", true, false}};
  for (const Request& request : all) {
    SCOPED_TRACE(request.index());
    Share();  // The last rename has given interest.
    ASSERT_TRUE(Look(kAnna, "x").reserved);
    const RequestId id = Send(kBen, {request});
    EXPECT_FALSE(Answered(kBen, id));
    ConfirmAll();
    EXPECT_TRUE(Answered(kBen, id));
    Call1(kBen, RemoveRequest{directory_, "x"});
    Call1(kBen, RenameRequest{directory_, "x", kRootFile, "file"});
    Call1(kBen, RemoveXattrRequest{directory_, "user.mosa.placement"});
    ConfirmAll();
  }
  Share();
  // Attributes do not wait: those of a shared directory may be a little old.
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  EXPECT_TRUE(Answered(kBen, Send(kBen, {GetAttributesRequest{directory_}})));
}

TEST_F(CoreShared, NoNameIsReservedWhereSomebodyKeepsNames) {
  // A rename from elsewhere gives interest, because a kernel takes what it knows along.
  Make(kCarl, kRootFile, "t");
  Ok<RenameReply>(kCarl, RenameRequest{kRootFile, "t", directory_, "t"});
  EXPECT_FALSE(Look(kAnna, "x").reserved);
  Make(kBen, directory_, "b");  // Recalls it.
  EXPECT_TRUE(Look(kAnna, "x").reserved);
}

TEST_F(CoreShared, NoNameIsReservedWhereARuleMaySettleThePlace) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  Step(AddHintRule{"/d/*.dat", {{"placement", "local"}}});
  EXPECT_EQ(recalls_[kAnna].size(), 1U);
  ConfirmAll();
  EXPECT_FALSE(Look(kAnna, "x").reserved);
}

TEST_F(CoreShared, AnUnusedNameIsTakenBack) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  Advance(Milliseconds(300));
  ASSERT_TRUE(Look(kAnna, "later").reserved);
  Advance(Milliseconds(200));
  ASSERT_EQ(recalls_[kAnna].size(), 1U);
  EXPECT_EQ(recalls_[kAnna][0].kind, RecallKind::kEntries);
  // Until then none is reserved anew: the answer could be older than the recall.
  EXPECT_FALSE(Look(kAnna, "x").reserved);
  Confirm(kAnna);
  Share();
  EXPECT_TRUE(Look(kBen, "x").reserved);
}

TEST_F(CoreShared, NobodyElseWaitsForWhoHasOnlyNames) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  const RequestId waits = Send(kBen, {LookupOf("x")});
  ASSERT_EQ(recalls_[kAnna].size(), 1U);
  // Anna does not answer. What needs no name of hers goes on.
  EXPECT_TRUE(Answered(kCarl, Send(kCarl, {LookupOf("turn1")})));
  EXPECT_TRUE(Look(kCarl, "y").reserved);
  EXPECT_TRUE(Answered(kCarl, Send(kCarl, {MakeHere(kCarl, "y")})));
  EXPECT_FALSE(Answered(kBen, waits));
}

TEST_F(CoreShared, NoNameIsReservedWhereFilesGetObjects) {
  Ok<EmptyReply>(kBen, SetXattrRequest{directory_, "user.mosa.placement", "local"});
  EXPECT_FALSE(Look(kAnna, "x").reserved);
  Ok<EmptyReply>(kBen, RemoveXattrRequest{directory_, "user.mosa.placement"});
  EXPECT_TRUE(Look(kAnna, "x").reserved);
}

TEST_F(CoreShared, ACommandThatIsRepeatedSucceeds) {
  const auto set = [this] {
    const Effects effects =
        Step(SetFileHint{.path = "/d", .name = "lifetime", .value = "temporary"});
    return effects.admin_reply->status.code();
  };
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  EXPECT_EQ(set(), StatusCode::kAborted);
  Confirm(kAnna);
  EXPECT_FALSE(Look(kBen, "y").reserved);
  EXPECT_EQ(set(), StatusCode::kOk);
  Advance(Seconds(2));
  Share();
  EXPECT_TRUE(Look(kBen, "y").reserved);
}

TEST_F(CoreShared, AForgottenDirectoryKeepsItsNamesReserved) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  Send(kAnna, {ForgetRequest{{directory_}}});
  EXPECT_FALSE(Answered(kBen, Send(kBen, {LookupOf("x")})));
}

// A session that opens again and again, and tells nothing of its file.
TEST_F(CoreShared, OthersWaitForANameForHalfAMinuteAtMost) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  const RequestId waits = Send(kBen, {LookupOf("x")});
  for (int i = 0; i < 3; ++i) {
    AdvanceAlive(Seconds(9), {kAnna, kBen, kCarl});
    Start(kAnna, {.client = kAnna, .names = {{directory_, "x"}}});
    EXPECT_FALSE(Answered(kBen, waits)) << i;
  }
  AdvanceAlive(Seconds(4), {kAnna, kBen, kCarl});
  Start(kAnna, {.client = kAnna, .names = {{directory_, "x"}}});
  EXPECT_TRUE(Answered(kBen, waits));
}

TEST_F(CoreShared, TheEndOfASessionEndsItsNames) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  const RequestId look = Send(kBen, {LookupOf("x", false)});
  EXPECT_FALSE(Answered(kBen, look));
  Step(SessionClosed{kAnna});
  EXPECT_TRUE(Answered(kBen, look));
}

TEST_F(CoreShared, ASessionThatReturnsHasTheNamesOfItsFilesStill) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  ASSERT_TRUE(Look(kAnna, "unused").reserved);
  const RequestId waits = Send(kBen, {MakeHere(kBen, "x")});
  Start(kAnna, {.client = kAnna, .names = {{directory_, "x"}}});
  EXPECT_FALSE(Answered(kBen, waits));
  EXPECT_TRUE(Answered(kBen, Send(kBen, {LookupOf("unused")})));
  Send(kAnna, {MakeHere(kAnna, "x")});
  Confirm(kAnna);
  ASSERT_TRUE(Answered(kBen, waits));
  EXPECT_EQ(std::get<Failure>(Last(kBen, waits)).reason, ErrorReason::kExists);
}

TEST_F(CoreShared, TheNamesOfFilesSurviveARestart) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  ASSERT_TRUE(Look(kBen, "y").reserved);
  const MakeRequest of_anna = MakeHere(kAnna, "x");
  const MakeRequest of_ben = MakeHere(kBen, "y");
  Restart();
  Start(kBen, {.client = kBen, .names = {{directory_, "y"}}});
  Start(kCarl);
  const RequestId look = Send(kCarl, {LookupOf("x", false)});
  Start(kAnna, {.client = kAnna, .names = {{directory_, "x"}}});
  EXPECT_FALSE(Answered(kCarl, look));
  const RequestId made = Send(kAnna, {of_anna});
  EXPECT_TRUE(std::holds_alternative<MakeReply>(Last(kAnna, made)));
  Confirm(kAnna);
  ASSERT_TRUE(Answered(kCarl, look));
  EXPECT_EQ(std::get<EntryReply>(Last(kCarl, look)).entry.file, of_anna.file);
  EXPECT_TRUE(std::holds_alternative<MakeReply>(Call1(kBen, of_ben)));
}

TEST_F(CoreShared, WhoWasFasterHasTheName) {
  ASSERT_TRUE(Look(kAnna, "x").reserved);
  Step(SessionClosed{kAnna});
  ASSERT_TRUE(Look(kBen, "x").reserved);
  Start(kAnna,
        {.client = kAnna, .names = {{directory_, "x"}, {directory_, "turn1"}, {FileId{77}, "?"}}});
  // It is asked to tell of its file, and waits until Ben has told of his, or lets the name go.
  ASSERT_EQ(recalls_[kAnna].size(), 1U);
  const RequestId made = Send(kAnna, {MakeHere(kAnna, "x")});
  EXPECT_FALSE(Answered(kAnna, made));
  Send(kBen, {MakeHere(kBen, "x")});
  Confirm(kBen);
  ASSERT_TRUE(Answered(kAnna, made));
  EXPECT_EQ(std::get<Failure>(Last(kAnna, made)).reason, ErrorReason::kExists);
}

TEST(SharedDirectories, AClientHasSoManyNamesAndNoMore) {
  SharedDirectories shared;
  const FileId d{7};
  uint64_t reserved = 0;
  while (shared.Reserve(d, std::to_string(reserved), kAnna, Time{})) ++reserved;
  EXPECT_EQ(reserved, 4096u);
  EXPECT_TRUE(shared.Reserve(d, "of ben", kBen, Time{}));
  shared.EndName(d, "17");
  EXPECT_TRUE(shared.Reserve(FileId{8}, "17", kAnna, Time{}));
  EXPECT_EQ(shared.EndNamesOf(kAnna), (std::set<FileId>{d, FileId{8}}));
  EXPECT_EQ(shared.HoldersIn(d), std::vector<ClientId>{kBen});
  EXPECT_TRUE(shared.HasNames(d) && !shared.HasNames(d, kBen));
  shared.Forget(d);
  EXPECT_FALSE(shared.has_names());
  EXPECT_TRUE(shared.Reserve(d, "x", kAnna, Time{}));
}

}  // namespace
}  // namespace mosa::manager
