// Opens, layouts, commits, space, nodes, hints.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreBytes : public CoreFixture {
 protected:
  CoreBytes() { Start(kAnna); }

  bool Exists(FileId file) {
    return std::holds_alternative<AttributesReply>(Call1(kAnna, GetAttributesRequest{file}));
  }
  void CommitInline(ClientId client, FileId file, const std::string& bytes) {
    CommitRequest commit{.file = file, .size_bytes = bytes.size()};
    commit.inline_data = bytes;
    commit.last_close = true;
    Ok<AttributesReply>(client, commit);
  }
  std::string Xattr(FileId file, const std::string& name) {
    return Ok<GetXattrReply>(kAnna, GetXattrRequest{file, name}).value;
  }
  void SetXattr(FileId file, const std::string& name, const std::string& value) {
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, name, value, false, false});
  }
  RemoveRequest Unlink(std::string name, bool holds_open = false) {
    return {kRootFile, std::move(name), false, holds_open};
  }
  // A file "f" of 2 MiB that kAnna has written to the first node.
  FileId MakeFileOnFirstNode() {
    const FileId f = Make(kAnna, kRootFile, "f");
    SetXattr(f, "user.mosa.placement", "local");
    Ok<BindReply>(kAnna, BindRequest{f, kMiB});
    Ok<AttributesReply>(kAnna, CommitRequest{.file = f, .size_bytes = 2 * kMiB});
    return f;
  }
};

// ---- inline bytes

TEST_F(CoreBytes, InlineBytesGoToTheirOwnRecordAndLeaveWithTheFile) {
  const FileId f = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  CommitInline(kAnna, f, "hello");
  EXPECT_EQ(image_.at(InlineDataKey(f)), "hello");
  const auto open = Ok<OpenReply>(kAnna, OpenRequest{f, false, ""});
  EXPECT_TRUE(open.access.is_inline);
  EXPECT_EQ(open.access.inline_valid_bytes, 5U);
  EXPECT_EQ(open.attributes.size_bytes, 5U);
  Ok<RemoveReply>(kAnna, Unlink("f"));
  EXPECT_FALSE(image_.contains(InlineDataKey(f)));
}

TEST_F(CoreBytes, BytesCutOffAnInlineFileReadAsZeroWhenItGrowsAgain) {
  const FileId f = Make(kAnna, kRootFile, "f");
  CommitInline(kAnna, f, "hello");
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 2});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 100});
  const auto open = Ok<OpenReply>(kAnna, OpenRequest{f, false, ""});
  EXPECT_EQ(open.access.inline_valid_bytes, 2U);
  EXPECT_EQ(open.attributes.size_bytes, 100U);
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  EXPECT_FALSE(image_.contains(InlineDataKey(f)));
}

TEST_F(CoreBytes, AGrowingInlineFileBecomesAnObjectAndTheManagerForgetsItsBytes) {
  AddNode("n1");
  const FileId f = Make(kAnna, kRootFile, "f");
  CommitInline(kAnna, f, "hello");
  EXPECT_EQ(Xattr(f, "user.mosa.location"), "n1");
  const auto bound = Ok<BindReply>(kAnna, BindRequest{f, 100});
  EXPECT_TRUE(bound.access.is_inline && bound.access.layout.bound());
  EXPECT_TRUE(image_.contains(InlineDataKey(f)));
  CommitRequest commit{.file = f, .size_bytes = 20000};
  commit.nodes = {{bound.access.layout.Nodes()[0], 20480, 0}};
  Ok<AttributesReply>(kAnna, commit);
  EXPECT_TRUE(image_.contains(InlineDataKey(f))) << "nobody said that it is in the object";
  commit.inline_moved = true;
  Ok<AttributesReply>(kAnna, commit);
  commit.inline_moved = false;
  EXPECT_FALSE(image_.contains(InlineDataKey(f)));
  EXPECT_FALSE(Ok<OpenReply>(kAnna, OpenRequest{f, false, ""}).access.is_inline);
  commit.inline_data = "again";
  EXPECT_EQ(Refused(kAnna, commit), ErrorReason::kInvalid);
}

TEST_F(CoreBytes, TooManyInlineBytesAreRefused) {
  const FileId f = Make(kAnna, kRootFile, "f");
  CommitRequest commit{.file = f, .size_bytes = kInlineBytesMax + 1};
  commit.inline_data = std::string(kInlineBytesMax + 1, 'x');
  EXPECT_EQ(Refused(kAnna, commit), ErrorReason::kInvalid);
}

TEST_F(CoreBytes, InlineBytesThatRestOnAnOldVersionAreRefused) {
  const FileId f = Make(kAnna, kRootFile, "f");
  CommitRequest commit{.file = f, .size_bytes = 1};
  commit.inline_data = "1";
  const uint64_t first = Ok<AttributesReply>(kAnna, commit).attributes.data_version;
  commit.inline_data = "2";
  commit.based_on_version = first;
  EXPECT_EQ(Ok<AttributesReply>(kAnna, commit).attributes.data_version, first + 1);
  commit.inline_data = "3";
  EXPECT_EQ(Refused(kAnna, commit), ErrorReason::kBusy);
  EXPECT_EQ(image_.at(InlineDataKey(f)), "2");
  commit.based_on_version = first + 1;
  EXPECT_EQ(Ok<AttributesReply>(kAnna, commit).attributes.data_version, first + 2);
}

// A node that comes back without an object has lost it, unless it was empty.
TEST_F(CoreBytes, AReportThatMayBeOlderThanAnothersBytesEmptiesNoObject) {
  const NodeId n1 = AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  CommitRequest commit{.file = f, .size_bytes = 8192};
  const auto report = [&](uint64_t allocated_bytes, uint64_t based_on_version) {
    commit.nodes = {{n1, allocated_bytes, 0}};
    commit.based_on_version = based_on_version;
    const Attributes a = Ok<AttributesReply>(kAnna, commit).attributes;
    EXPECT_EQ(a.allocated_bytes, allocated_bytes == 0 ? 8192 : allocated_bytes);
    return a.data_version;
  };
  const uint64_t version = report(8192, 0);
  EXPECT_EQ(report(0, version - 1), version + 1);
  EXPECT_EQ(report(4096, version), version + 2);
  commit.nodes = {{n1, 0, 0}};
  commit.based_on_version = version + 2;
  EXPECT_EQ(Ok<AttributesReply>(kAnna, commit).attributes.allocated_bytes, 0U);
}

TEST_F(CoreBytes, CommitTimesLieBetweenBirthAndNow) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const Time birth = now_;
  AdvanceAlive(Seconds(10), {kAnna});
  const struct {
    Time asked, expected;
  } rows[] = {{birth - Seconds(5), birth},
              {birth + Seconds(5), birth + Seconds(5)},
              {now_ + Seconds(1), now_}};
  for (const auto& row : rows) {
    CommitRequest commit{.file = f, .size_bytes = 1};
    commit.modify_time = row.asked;
    EXPECT_EQ(Ok<AttributesReply>(kAnna, commit).attributes.modify_time, row.expected);
  }
  CommitRequest commit{.file = f, .size_bytes = 0, .size_is_exact = false};
  Attributes a = Ok<AttributesReply>(kAnna, commit).attributes;
  EXPECT_EQ(a.size_bytes, 1U);
  EXPECT_EQ(a.data_version, 4U);
  EXPECT_EQ(a.modify_time, now_);
  const Time before = a.modify_time;
  now_ = now_ + Seconds(1);
  commit.modify_time_stays = true;
  a = Ok<AttributesReply>(kAnna, commit).attributes;
  EXPECT_EQ(a.data_version, 5U);
  EXPECT_EQ(a.modify_time, before);
}

// ---- opens and orphans

TEST_F(CoreBytes, ARemovedFileLivesWhileItsRemoverHasItOpen) {
  const NodeId n1 = AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  Ok<RemoveReply>(kAnna, Unlink("f", true));
  EXPECT_EQ(Ok<AttributesReply>(kAnna, GetAttributesRequest{f}).attributes.link_count, 0U);
  EXPECT_TRUE(dropped_[n1].empty());
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  EXPECT_EQ(dropped_[n1], std::vector<FileId>{f});
  EXPECT_FALSE(Exists(f));
}

TEST_F(CoreBytes, ARemovedFileLivesWhileAReaderElsewhereHasItOpen) {
  const NodeId n1 = AddNode("n1");
  Start(kBen);
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  // The manager must remember the reader, although it survived an earlier recall.
  Send(kAnna, {SetAttributesRequest{.file = f, .permissions = 0600}});
  Confirm(kBen, true);
  Send(kAnna, {Unlink("f")});
  Confirm(kBen, true);
  Ok<EmptyReply>(kBen, ReleaseRequest{.file = f, .holds_open = true});  // Its writers have ended.
  Advance(Milliseconds(250));
  EXPECT_TRUE(Exists(f));
  Ok<EmptyReply>(kBen, ReleaseRequest{f});
  Advance(Milliseconds(250));
  EXPECT_FALSE(Exists(f));
  EXPECT_EQ(dropped_[n1], std::vector<FileId>{f});
}

TEST_F(CoreBytes, AFileThatIsJustBeingOpenedElsewhereOutlivesItsLastName) {
  Start(kBen);
  const FileId f = Make(kAnna, kRootFile, "f");
  Make(kAnna, kRootFile, "new");
  // A name known from the directory alone counts as much as one just looked up.
  Ok<EntryReply>(kBen, LookupRequest{kRootFile, "f"});
  Send(kBen, {ForgetRequest{{f}}});
  const RenameRequest rename{kRootFile, "new", kRootFile, "f", false, false, false};
  const RequestId id = Send(kAnna, {rename});
  Confirm(kBen);
  ASSERT_TRUE(Answered(kAnna, id));
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  Confirm(kBen, true);
  Advance(Seconds(1));
  EXPECT_TRUE(Exists(f));
  Ok<EmptyReply>(kBen, ReleaseRequest{f});
  Advance(Milliseconds(250));
  EXPECT_FALSE(Exists(f));
}

TEST_F(CoreBytes, AFileThatWasReplacedCanStillBeOpenedForAMoment) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Make(kAnna, kRootFile, "new");
  Ok<RenameReply>(kAnna, RenameRequest{kRootFile, "new", kRootFile, "f", false, false, false});
  Advance(Milliseconds(200));
  Ok<OpenReply>(kAnna, OpenRequest{f, false, ""});
  Confirm(kAnna, true);
  Advance(Seconds(1));
  EXPECT_TRUE(Exists(f));
  Ok<EmptyReply>(kAnna, ReleaseRequest{f});
  Advance(Milliseconds(250));
  EXPECT_FALSE(Exists(f));
}

TEST_F(CoreBytes, AnOrphanThatWasOpenedAndClosedBeforeItsRecallWasAnsweredGoes) {
  Start(kBen);
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<EntryReply>(kBen, LookupRequest{kRootFile, "f"});
  Send(kAnna, {Unlink("f")});
  Send(kBen, {OpenRequest{f, false, ""}});
  // The first answer may be older than the open, the second is not.
  const std::vector<RecallPush> recalls = std::exchange(recalls_[kBen], {});
  ASSERT_EQ(recalls.size(), 3U);
  Send(kBen, {RecallDoneRequest{recalls[0].recall, false}});
  Send(kBen, {RecallDoneRequest{recalls[1].recall, false}});
  Advance(Seconds(1));
  EXPECT_TRUE(Exists(f));
  Send(kBen, {RecallDoneRequest{recalls[2].recall, false}});
  Advance(Milliseconds(250));
  EXPECT_FALSE(Exists(f));
}

TEST_F(CoreBytes, WhoComesBackWithAnOrphanOpenIsTold) {
  Start(kBen);
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  Step(SessionLost{kBen});
  Send(kAnna, {Unlink("f")});
  recalls_.clear();
  SessionStart back;
  back.opens = {{f, false}};
  Start(kBen, back);
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  EXPECT_EQ(recalls_[kBen][0].file, f);
  Confirm(kBen, true);
  Advance(Seconds(1));
  EXPECT_TRUE(Exists(f));
}

TEST_F(CoreBytes, AnOrphanIsKeptOverARestartForThoseWhoStillHaveItOpen) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const FileId g = Make(kAnna, kRootFile, "g");
  Ok<RemoveReply>(kAnna, Unlink("f", true));
  Ok<RemoveReply>(kAnna, Unlink("g", true));
  Restart();
  SessionStart back;
  back.opens = {{f, false}};
  Start(kAnna, back);
  EXPECT_TRUE(Exists(f));
  EXPECT_FALSE(Exists(g));
  Step(SessionClosed{kAnna});
  Start(kAnna);
  EXPECT_FALSE(Exists(f));
}

TEST_F(CoreBytes, FilesThatWereNeverCommittedGoWithTheirMaker) {
  Start(kBen);
  const FileId never = Make(kBen, kRootFile, "never", FileType::kRegular, true);
  const FileId moved = Make(kBen, kRootFile, "moved", FileType::kRegular, true);
  const FileId kept = Make(kBen, kRootFile, "kept", FileType::kRegular, true);
  const FileId closed = Make(kBen, kRootFile, "closed");
  CommitInline(kBen, kept, "x");
  Ok<RenameReply>(kBen, RenameRequest{.old_parent = kRootFile,
                                      .old_name = "moved",
                                      .new_parent = kRootFile,
                                      .new_name = "elsewhere"});
  AdvanceAlive(Seconds(6), {kAnna});
  EXPECT_FALSE(Exists(never));
  EXPECT_FALSE(Exists(moved));
  EXPECT_TRUE(Exists(kept));
  EXPECT_TRUE(Exists(closed));
  EXPECT_EQ(Ok<AttributesReply>(kAnna, GetAttributesRequest{kRootFile}).attributes.size_bytes, 2U);
}

// A reader keeps the file without its name. What its maker stored would be acknowledged and
// nowhere.
TEST_F(CoreBytes, AMakerThatComesBackCommitsNothingToAFileThatWasRemovedMeanwhile) {
  Start(kBen);
  const FileId f = Make(kBen, kRootFile, "f", FileType::kRegular, true);
  Ok<OpenReply>(kAnna, OpenRequest{f, false, ""});
  AdvanceAlive(Seconds(6), {kAnna});
  Confirm(kAnna, /*holds_open=*/true);
  ASSERT_TRUE(Exists(f)) << "the reader has it open";
  SessionStart back;
  back.opens = {{f, true}};
  Start(kBen, back);
  CommitRequest commit{.file = f, .size_bytes = 1, .inline_data = "x"};
  EXPECT_EQ(Refused(kBen, commit), ErrorReason::kStale);
  Restart();
  SessionStart reader;
  reader.opens = {{f, false}};
  Start(kAnna, reader);
  Start(kBen, back);
  EXPECT_EQ(Refused(kBen, commit), ErrorReason::kStale) << "the manager has restarted";
}

// ---- layouts and space

TEST_F(CoreBytes, AFileIsBoundOverAllNodesAndDifferentFilesBeginAtDifferentOnes) {
  for (const char* name : {"n1", "n2", "n3", "n4"}) AddNode(name);
  std::set<NodeId> starts;
  for (int i = 0; i < 20; ++i) {
    const FileId f = Make(kAnna, kRootFile, "f" + std::to_string(i));
    const Layout layout = Ok<BindReply>(kAnna, BindRequest{f, kMiB}).access.layout;
    ASSERT_EQ(layout.segments.size(), 1U);
    EXPECT_EQ(layout.segments[0].width, 4U);
    EXPECT_FALSE(layout.reason.empty());
    EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{f, kMiB}).access.layout, layout);
    starts.insert(layout.segments[0].nodes[0]);
  }
  EXPECT_EQ(starts.size(), 4U);
}

TEST_F(CoreBytes, AFullNodeIsLeftForOthersAndAFullStoreSaysSo) {
  const NodeId n1 = AddNode("n1", 64 * kMiB);
  const NodeId n2 = AddNode("n2", 64 * kMiB);
  const FileId f = Make(kAnna, kRootFile, "f");
  SetXattr(f, "user.mosa.placement", "local");
  EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{f, kMiB}).access.layout.Nodes(),
            std::vector<NodeId>{n1});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  const Layout more =
      Ok<BindReply>(kAnna, RelocateRequest{f, 3 * kMiB - 4096, UINT64_MAX, {n1}}).access.layout;
  EXPECT_EQ(more.NodeAt(3 * kMiB - 4097), n1);
  EXPECT_EQ(more.NodeAt(3 * kMiB - 4096), n2);
  Ok<BindReply>(kAnna, FreezeRequest{f});
  EXPECT_EQ(Refused(kAnna, RelocateRequest{f, 5 * kMiB, UINT64_MAX, {n1, n2}}),
            ErrorReason::kNoSpace);
  Step(NodeReport{n1, {.used_bytes = 64 * kMiB, .limit_bytes = 64 * kMiB}});
  Step(NodeReport{n2, {.used_bytes = 64 * kMiB, .limit_bytes = 64 * kMiB}});
  const FileId g = Make(kAnna, kRootFile, "g");
  EXPECT_EQ(Refused(kAnna, BindRequest{g, kMiB}), ErrorReason::kNoSpace);
}

TEST_F(CoreBytes, AFrozenFileIsStoredToByNobodyElseUntilItsLayoutHasChanged) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  Start(kBen);
  const FileId f = MakeFileOnFirstNode();
  Ok<OpenReply>(kBen, OpenRequest{f, true, ""});
  recalls_.clear();

  // The reply comes when no client stores by the old layout any more.
  const RequestId freezing = Send(kAnna, {FreezeRequest{f}});
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  EXPECT_EQ(recalls_[kBen][0].kind, RecallKind::kAccess);
  EXPECT_FALSE(Answered(kAnna, freezing));
  // A client that returns may still be storing: it is asked again.
  Start(kBen);
  EXPECT_FALSE(Answered(kAnna, freezing));
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, freezing));
  EXPECT_TRUE(Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.frozen);
  EXPECT_FALSE(Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.frozen);
  EXPECT_EQ(Refused(kBen, FreezeRequest{f}), ErrorReason::kBusy);
  EXPECT_EQ(Refused(kBen, RelocateRequest{f, kMiB, UINT64_MAX, {n1}}), ErrorReason::kBusy);

  const RequestId moving = Send(kAnna, {RelocateRequest{f, kMiB, 2 * kMiB, {n1}}});
  // Nobody has stored since: all clients are told, and none is awaited.
  EXPECT_TRUE(Answered(kAnna, moving));
  EXPECT_EQ(recalls_[kBen].size(), 1U);
  const DataAccess seen = Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access;
  EXPECT_FALSE(seen.frozen);
  ASSERT_EQ(seen.layout.segments.size(), 3U);
  EXPECT_EQ(seen.layout.NodeAt(kMiB - 1), n1);
  EXPECT_EQ(seen.layout.NodeAt(kMiB), n2);
  EXPECT_EQ(seen.layout.NodeAt(2 * kMiB), n1);
  EXPECT_EQ(Refused(kAnna, RelocateRequest{f, kMiB, UINT64_MAX, {n1}}), ErrorReason::kBusy);
}

TEST_F(CoreBytes, AFreezeEndsWithAnEmptyRangeWithItsHolderOrAfterItsTime) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  Start(kBen);
  const FileId f = MakeFileOnFirstNode();
  const auto frozen_for_ben = [&] {
    return Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.frozen;
  };
  Ok<BindReply>(kAnna, FreezeRequest{f});
  EXPECT_TRUE(frozen_for_ben());
  Ok<BindReply>(kAnna, RelocateRequest{f, 0, 0, {}});
  EXPECT_FALSE(frozen_for_ben());
  // kBen holds the file, so the next freeze waits for its confirmation.
  const RequestId freezing = Send(kAnna, {FreezeRequest{f}});
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, freezing));
  Step(SessionClosed{kAnna});
  EXPECT_FALSE(frozen_for_ben());
  Ok<BindReply>(kBen, FreezeRequest{f});
  Ok<BindReply>(kBen, RelocateRequest{f, 0, UINT64_MAX, {n1}});
  Ok<EmptyReply>(kBen, ReleaseRequest{f});
  Ok<RemoveReply>(kBen, RemoveRequest{kRootFile, "f", false, false});
  EXPECT_EQ(dropped_[n1], std::vector<FileId>{f});
  EXPECT_EQ(dropped_[n2], std::vector<FileId>{f});
}

TEST_F(CoreBytes, InlineContentIsPutIntoObjectsByOneClientBeforeAnotherStoresThere) {
  const NodeId n1 = AddNode("n1");
  Start(kBen);
  const FileId f = Make(kAnna, kRootFile, "f");
  CommitInline(kAnna, f, "hello");
  Ok<BindReply>(kAnna, BindRequest{f, kMiB});
  EXPECT_EQ(Refused(kBen, BindRequest{f, kMiB}), ErrorReason::kBusy);
  EXPECT_TRUE(Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access.frozen);
  EXPECT_EQ(Refused(kBen, SetAttributesRequest{.file = f, .size_bytes = 2}), ErrorReason::kBusy);
  CommitRequest commit{.file = f, .size_bytes = 5};
  commit.nodes = {{n1, 4096, 0}};
  commit.inline_moved = true;
  EXPECT_EQ(Refused(kBen, commit), ErrorReason::kBusy) << "not kBen's to say";
  const RequestId spill = Send(kAnna, {RelocateRequest{f, kMiB, UINT64_MAX, {}}});
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, spill));
  EXPECT_EQ(Refused(kBen, BindRequest{f, kMiB}), ErrorReason::kBusy) << "a spill ends nothing here";
  const RequestId done = Send(kAnna, {commit});
  Confirm(kBen);
  EXPECT_TRUE(Answered(kAnna, done));
  const DataAccess after = Ok<OpenReply>(kBen, OpenRequest{f, true, ""}).access;
  EXPECT_FALSE(after.frozen || after.is_inline);
}

TEST_F(CoreBytes, AFileWhoseObjectAnotherKernelHasOpenStaysWhereItIs) {
  const NodeId n1 = AddNode("n1");
  AddNode("n2");
  Start(kBen);
  const FileId f = MakeFileOnFirstNode();
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  recalls_.clear();
  const RequestId freezing = Send(kAnna, {FreezeRequest{f}});
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  Send(kBen, {RecallDoneRequest{recalls_[kBen][0].recall, true, true}});
  EXPECT_TRUE(Answered(kAnna, freezing));
  EXPECT_EQ(Refused(kAnna, RelocateRequest{f, kMiB, UINT64_MAX, {n1}}), ErrorReason::kNoSpace);
}

TEST_F(CoreBytes, FreeRoomIsWhatIsNeitherUsedNorGranted) {
  const NodeId n1 = AddNode("n1", 100 * kMiB);
  const auto free_bytes = [this] {
    return Ok<StatFilesystemReply>(kAnna, StatFilesystemRequest{}).free_bytes;
  };
  EXPECT_EQ(free_bytes(), 100 * kMiB);
  EXPECT_EQ(Ok<GrantReply>(kAnna, GrantRequest{n1, 10 * kMiB, 0, 0}).granted_bytes, 10 * kMiB);
  EXPECT_EQ(free_bytes(), 90 * kMiB);
  EXPECT_EQ(Ok<GrantReply>(kAnna, GrantRequest{n1, 0, 0, 0}),
            (GrantReply{0, 90 * kMiB, 100 * kMiB}));
  Ok<GrantReply>(kAnna, GrantRequest{n1, 0, 4 * kMiB, 1 * kMiB});
  EXPECT_EQ(free_bytes(), 91 * kMiB);
  const auto report = [&](uint64_t used_bytes, uint64_t measurements) {
    Step(NodeReport{
        n1, {.used_bytes = used_bytes, .limit_bytes = 100 * kMiB, .measurements = measurements}});
  };
  // A drop triggers heartbeats at once. What a client has reported counts until it is measured.
  for (int beat = 0; beat < 3; ++beat) report(0, 7);
  EXPECT_EQ(free_bytes(), 91 * kMiB);
  report(4 * kMiB, 8);
  report(4 * kMiB, 9);
  EXPECT_EQ(free_bytes(), 91 * kMiB);
  Step(SessionClosed{kAnna});
  Start(kAnna);
  EXPECT_EQ(free_bytes(), 96 * kMiB);
}

TEST_F(CoreBytes, GrantsAreNeverMoreThanThereIsAndNoLieMakesRoom) {
  const NodeId n1 = AddNode("n1", 10 * kMiB);
  uint64_t granted = 0;
  for (int i = 0; i < 200; ++i)
    granted += Ok<GrantReply>(kAnna, GrantRequest{n1, UINT64_MAX, 0, 0}).granted_bytes;
  EXPECT_LE(granted, 10 * kMiB);
  EXPECT_GE(granted, 10 * kMiB - 8192);
  Ok<GrantReply>(kAnna, GrantRequest{n1, 0, 0, UINT64_MAX});
  Ok<GrantReply>(kAnna, GrantRequest{n1, 0, UINT64_MAX, UINT64_MAX});
  EXPECT_LE(Ok<StatFilesystemReply>(kAnna, StatFilesystemRequest{}).free_bytes, 10 * kMiB);
}

TEST_F(CoreBytes, ShortNodesTakeUnusedGrantsBackAndTheAskerWaitsForThem) {
  const NodeId n1 = AddNode("n1", 4 * kMiB);
  Start(kBen);
  uint64_t held = 0;
  for (int i = 0; i < 50; ++i)
    held += Ok<GrantReply>(kAnna, GrantRequest{n1, 4 * kMiB, 0, 0}).granted_bytes;
  EXPECT_EQ(held, 4 * kMiB);
  const RequestId id = Send(kBen, {GrantRequest{n1, kMiB, 0, 0}});
  EXPECT_FALSE(Answered(kBen, id));
  EXPECT_EQ(grant_recalls_[kAnna].size(), 1U);
  Ok<GrantReply>(kAnna, GrantRequest{n1, 0, 0, 3 * kMiB});
  ASSERT_TRUE(Answered(kBen, id));
  EXPECT_EQ((std::get<GrantReply>(replies_[{kBen, id}][0]).granted_bytes), kMiB);
}

TEST_F(CoreBytes, AnAskerIsToldOfAFullNodeAfterASecond) {
  const NodeId n1 = AddNode("n1", 4 * kMiB);
  Start(kBen);
  for (int i = 0; i < 50; ++i) Ok<GrantReply>(kAnna, GrantRequest{n1, 4 * kMiB, 0, 0});
  const RequestId id = Send(kBen, {GrantRequest{n1, kMiB, 0, 0}});
  AdvanceAlive(Seconds(1), {kAnna, kBen});
  ASSERT_TRUE(Answered(kBen, id));
  EXPECT_EQ((std::get<GrantReply>(replies_[{kBen, id}][0]).granted_bytes), 0U);
}

// ---- nodes

TEST_F(CoreBytes, ANodeKeepsItsIdAndASecondOneOfItsNameIsRefused) {
  const NodeId n1 = AddNode("n1", kMiB, 1);
  EXPECT_EQ(AddNode("n1", kMiB, 2), kNoNode);
  EXPECT_NE(AddNode("n2", kMiB, 3), n1);
  EXPECT_EQ(AddNode("n1", kMiB, 1), n1);
  Step(NodeStreamLost{n1});
  EXPECT_EQ(AddNode("n1", kMiB, 2), n1);
  NodeRegistration foreign{.name = "n3"};
  foreign.cluster_name = "another";
  const Effects effects = Step(RegisterNode{foreign});
  ASSERT_EQ(effects.refused_nodes.size(), 1U);
  EXPECT_NE(effects.refused_nodes[0].failure.message.find("'another'"), std::string::npos);
}

TEST_F(CoreBytes, OnlyObjectsThatNoFileOwnsAreDropped) {
  const NodeId n1 = AddNode("n1");
  const FileId kept = MakeBound(kAnna, kRootFile, "kept", 8192);
  const FileId open = Make(kAnna, kRootFile, "open", FileType::kRegular, true);
  const FileId gone = Make(kAnna, kRootFile, "gone");
  Ok<RemoveReply>(kAnna, Unlink("gone"));
  const FileId future(1'000'000);
  dropped_.clear();
  Step(NodeStreamLost{n1});
  AddNode("n1", 1 << 30, 7, {kept, open, gone, future});
  EXPECT_EQ(dropped_[n1], std::vector<FileId>{gone});
  EXPECT_GT(Ok<FileIdRangeReply>(kAnna, FileIdRangeRequest{}).first, future);
}

TEST_F(CoreBytes, ANewIncarnationHasLostItsBytesAndTheyAreListed) {
  const NodeId n1 = AddNode("n1");
  MakeRequest request = MakeOf(kAnna, kRootFile, "f");
  request.task = "task-7";
  const FileId f = Ok<MakeReply>(kAnna, request).entry.file;
  Ok<BindReply>(kAnna, BindRequest{f, 8192});
  CommitRequest commit{.file = f, .size_bytes = 8192};
  commit.nodes = {{n1, 8192, 0}};
  Ok<AttributesReply>(kAnna, commit);
  EXPECT_TRUE(core_->ListLostFiles(10).empty());
  Step(NodeStreamLost{n1});
  AddNode("n1", 1 << 30, 8);
  Restart();
  Start(kAnna);
  ASSERT_EQ(core_->ListLostFiles(10).size(), 1U);
  EXPECT_EQ(core_->ListLostFiles(10)[0].path, "/f");
  EXPECT_EQ(core_->ListLostFiles(10)[0].task, "task-7");
  EXPECT_EQ(Refused(kAnna, OpenRequest{f, false, ""}), ErrorReason::kNodeLost);
  EXPECT_TRUE(Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.lost);
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  EXPECT_FALSE(Ok<OpenReply>(kAnna, OpenRequest{f, false, ""}).access.lost);
}

TEST_F(CoreBytes, ASilentNodeIsNoticedAndComesBackWithItsBytes) {
  const NodeId n1 = AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  node_pushes_.clear();
  AdvanceAlive(Seconds(5), {kAnna});
  ASSERT_EQ(node_pushes_[kAnna].size(), 1U);
  EXPECT_EQ(node_pushes_[kAnna][0].nodes[0].state, NodeState::kSilent);
  EXPECT_EQ(Refused(kAnna, OpenRequest{f, false, ""}), ErrorReason::kNodeLost);
  EXPECT_EQ(core_->ListLostFiles(10).size(), 1U);
  Step(NodeReport{n1, {.used_bytes = 8192, .limit_bytes = kMiB}});
  EXPECT_EQ(node_pushes_[kAnna].back().nodes[0].state, NodeState::kLive);
  Ok<OpenReply>(kAnna, OpenRequest{f, false, ""});
}

// ---- extended attributes and hints

TEST_F(CoreBytes, OrdinaryAttributesAreKeptAndListed) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const std::string binary("\0\xff", 2);
  SetXattr(f, "user.colour", binary);
  SetXattr(f, "user.mosa.replicas", "2");
  EXPECT_EQ(Xattr(f, "user.colour"), binary);
  EXPECT_EQ(Ok<ListXattrsReply>(kAnna, ListXattrsRequest{f}).names,
            std::vector<std::string>{"user.colour"});
  const auto set = [&](std::string name, std::string value, bool create, bool replace) {
    return Refused(kAnna, SetXattrRequest{f, std::move(name), std::move(value), create, replace});
  };
  EXPECT_EQ(set("user.colour", "", true, false), ErrorReason::kExists);
  EXPECT_EQ(set("user.shape", "", false, true), ErrorReason::kNoAttribute);
  EXPECT_EQ(set("user." + std::string(251, 'x'), "", false, false), ErrorReason::kRange);
  EXPECT_EQ(set("user.big", std::string(65537, 'x'), false, false), ErrorReason::kArgumentTooBig);
  EXPECT_EQ(set("security.x", "", false, false), ErrorReason::kUnsupported);
  EXPECT_EQ(set("user.mosa.location", "n1", false, false), ErrorReason::kNotPermitted);
  EXPECT_EQ(set("user.mosa.colour", "n1", false, false), ErrorReason::kInvalid);
  EXPECT_EQ(set("user.mosa.strict", "maybe", false, false), ErrorReason::kInvalid);
  Restart();
  Start(kAnna);
  EXPECT_EQ(Xattr(f, "user.colour"), binary);
  EXPECT_EQ(Xattr(f, "user.Replication"), "2");
  Ok<EmptyReply>(kAnna, RemoveXattrRequest{f, "user.colour"});
  EXPECT_EQ(Refused(kAnna, RemoveXattrRequest{f, "user.colour"}), ErrorReason::kNoAttribute);
  EXPECT_EQ(Refused(kAnna, GetXattrRequest{f, "user.colour"}), ErrorReason::kNoAttribute);
}

TEST_F(CoreBytes, HintsOfADirectoryAreInheritedAndActAtMake) {
  AddNode("n0");
  const NodeId n1 = AddNode("n1");
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  SetXattr(d, "user.DP", "local");
  SetXattr(d, "user.BlockSize", "65536");
  const FileId below = Make(kAnna, d, "below", FileType::kDirectory);
  MakeRequest request = MakeOf(kAnna, below, "f", FileType::kRegular, true);
  request.bind = true;
  const auto made = Ok<MakeReply>(kAnna, request);
  ASSERT_TRUE(made.access && made.access->layout.bound());
  EXPECT_EQ(made.access->layout.Nodes(), std::vector<NodeId>{n1});
  EXPECT_EQ(made.access->layout.chunk_bytes, 65536U);
  EXPECT_EQ(made.access->inline_bytes_max, 0U);
  const FileId f = made.entry.file;
  EXPECT_EQ(Xattr(f, "user.mosa.hints"),
            R"({"ack":{"value":"optimistic","source":"default"},)"
            R"("chunk_size":{"value":"65536","source":"directory","origin":"/d"},)"
            R"("lifetime":{"value":"none","source":"default"},)"
            R"("pattern":{"value":"default","source":"default"},)"
            R"("placement":{"value":"local","source":"directory","origin":"/d"},)"
            R"("replicas":{"value":"1","source":"default"},)"
            R"("replicate":{"value":"lazy","source":"default"},)"
            R"("stream":{"value":"none","source":"default"},)"
            R"("strict":{"value":"0","source":"default"},)"
            R"("stripe_width":{"value":"all","source":"default"}})");
  EXPECT_EQ(Xattr(f, "user.mosa.placement"), "local");
  EXPECT_EQ(Xattr(f, "user.location"), "");
  EXPECT_EQ(Refused(kAnna, SetXattrRequest{f, "user.mosa.placement", "stripe", false, false, true}),
            ErrorReason::kBusy);
}

TEST_F(CoreBytes, LayoutHintsComeTooLateOnceThereAreBytes) {
  AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  const auto set = [&](std::string name, std::string value) {
    return Refused(kAnna, SetXattrRequest{f, std::move(name), std::move(value), false, false});
  };
  EXPECT_EQ(set("user.mosa.placement", "local"), ErrorReason::kNotEmpty);
  EXPECT_EQ(set("user.mosa.chunk_size", "64K"), ErrorReason::kNotEmpty);
  EXPECT_EQ(set("user.mosa.placement", "stripe"), ErrorReason::kNone);
  EXPECT_EQ(set("user.mosa.chunk_size", "1M"), ErrorReason::kNone);
  EXPECT_EQ(set("user.mosa.replicas", "2"), ErrorReason::kNone);
  EXPECT_EQ(set("user.mosa.lifetime", "temporary"), ErrorReason::kNone);
}

TEST_F(CoreBytes, AnEmptyFileThatWasBoundAndClosedIsLaidOutAnew) {
  AddNode("n0");
  const NodeId n1 = AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  SetXattr(f, "user.mosa.placement", "local");
  EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{f, 1}).access.layout.Nodes(), std::vector<NodeId>{n1});
}

TEST_F(CoreBytes, LocationTellsMostBytesFirstAndLayoutWhy) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<BindReply>(kAnna, BindRequest{f, kMiB});
  EXPECT_EQ(Xattr(f, "user.mosa.location"), "");
  CommitRequest commit{.file = f, .size_bytes = 3 * kMiB};
  commit.nodes = {{n1, kMiB, 0}, {n2, 2 * kMiB, 0}, {NodeId(99), kMiB, 0}};
  Ok<AttributesReply>(kAnna, commit);
  EXPECT_EQ(Xattr(f, "user.mosa.location"), "n2,n1");
  EXPECT_EQ(Xattr(f, "user.location"), "n2,n1");
  EXPECT_NE(Xattr(f, "user.mosa.layout").find("\"reason\":\"stripe: 2 of 2 nodes"),
            std::string::npos);
  const std::string chunks = Xattr(f, "user.mosa.location.chunks");
  EXPECT_TRUE(chunks == "0-0:n1,1-1:n2,2-2:n1" || chunks == "0-0:n2,1-1:n1,2-2:n2") << chunks;
  EXPECT_EQ(core_->GetFileStatus("/f")->allocated_bytes.size(), 2U);
}

}  // namespace
}  // namespace mosa::manager
