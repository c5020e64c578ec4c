// Staging: which files have been copied out of the store, and what makes them unstaged again.
#include <gtest/gtest.h>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreStaging : public CoreFixture {
 protected:
  CoreStaging() {
    Start(kAnna);
    Start(kBen);
    n1_ = AddNode("n1");
    Ok<EmptyReply>(kAnna, SetXattrRequest{kRootFile, "user.mosa.lifetime", "keep"});
  }

  AdminReply Admin(const Command& command) {
    const Effects effects = Step(command);
    EXPECT_TRUE(effects.admin_reply.has_value());
    return effects.admin_reply.value_or(AdminReply{});
  }
  uint64_t VersionOf(FileId file) {
    return Ok<AttributesReply>(kAnna, GetAttributesRequest{file}).attributes.data_version;
  }
  StageOutcome Mark(FileId file, uint64_t version) {
    const AdminReply reply = Admin(MarkStaged{{{file, version}}});
    EXPECT_EQ(reply.staged.size(), 1U);
    return reply.staged.empty() ? StageOutcome::kBusy : reply.staged[0];
  }
  // Stages as the tool does: until all clients that were asked have answered.
  StageOutcome Stage(FileId file) {
    const uint64_t version = VersionOf(file);
    const StageOutcome first = Mark(file, version);
    ConfirmAll();
    return first == StageOutcome::kBusy ? Mark(file, version) : first;
  }
  uint64_t Unstaged() { return core_->ListUnstaged(0, FileId()).files; }
  void Write(FileId file, ClientId client, bool last_close = true) {
    Ok<AttributesReply>(
        client, CommitRequest{.file = file, .size_bytes = 2 * kMiB, .last_close = last_close});
  }
  NodeId n1_;
};

TEST_F(CoreStaging, OnlyFilesThatSomebodyWantsKeptAreMissed) {
  const FileId kept = MakeBound(kAnna, kRootFile, "kept", kMiB);
  const FileId loose = MakeBound(kAnna, kRootFile, "loose", kMiB);
  Ok<EmptyReply>(kAnna, SetXattrRequest{loose, "user.mosa.lifetime", "temporary"});
  Make(kAnna, kRootFile, "dir", FileType::kDirectory);
  const UnstagedFiles unstaged = core_->ListUnstaged(10, FileId());
  EXPECT_EQ(unstaged.files, 1U);
  EXPECT_EQ(unstaged.bytes, kMiB);
  EXPECT_EQ(unstaged.kept_files, 1U);
  EXPECT_EQ(unstaged.all_files, 2U);
  EXPECT_EQ(unstaged.all_bytes, 2 * kMiB);
  ASSERT_EQ(unstaged.first.size(), 1U);
  EXPECT_EQ(unstaged.first[0], (UnstagedFile{"/kept", kept, kMiB}));
}

TEST_F(CoreStaging, AllOfThemAreNamedPieceByPiece) {
  std::vector<UnstagedFile> made, named;
  for (const char* name : {"a", "b", "c", "d", "e"})
    made.push_back({std::string("/") + name, MakeBound(kAnna, kRootFile, name, kMiB), kMiB});
  FileId after;
  for (size_t expected : {2U, 2U, 1U, 0U}) {
    const UnstagedFiles piece = core_->ListUnstaged(2, after);
    EXPECT_EQ(piece.files, made.size());
    ASSERT_EQ(piece.first.size(), expected);
    named.insert(named.end(), piece.first.begin(), piece.first.end());
    after = named.back().file;
  }
  EXPECT_EQ(named, made);
}

TEST_F(CoreStaging, AnUntaggedStoreMissesNothing) {
  Ok<EmptyReply>(kAnna, RemoveXattrRequest{kRootFile, "user.mosa.lifetime"});
  MakeBound(kAnna, kRootFile, "f", kMiB);
  EXPECT_EQ(Unstaged(), 0U);
}

TEST_F(CoreStaging, AStagedFileIsRememberedOverARestart) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
  EXPECT_EQ(Unstaged(), 0U);
  Restart();
  EXPECT_EQ(Unstaged(), 0U);
}

TEST_F(CoreStaging, AChangeMakesItUnstagedAgain) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
  SetAttributesRequest cut{.file = file};
  cut.size_bytes = 7;
  cut.generation = 1;
  Ok<AttributesReply>(kBen, cut);
  EXPECT_EQ(Unstaged(), 1U);
  Restart();
  EXPECT_EQ(Unstaged(), 1U);
}

// The staged copy has the file's old name.
TEST_F(CoreStaging, AnotherNameMakesItUnstagedAgain) {
  const FileId file = MakeBound(kAnna, kRootFile, "final.tmp", kMiB);
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
  Ok<RenameReply>(kAnna, RenameRequest{kRootFile, "final.tmp", kRootFile, "final"});
  EXPECT_EQ(Unstaged(), 1U);
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
  EXPECT_EQ(Unstaged(), 0U);
  Ok<EntryReply>(kAnna, LinkRequest{file, kRootFile, "second"});
  EXPECT_EQ(Unstaged(), 1U);
}

TEST_F(CoreStaging, WhatTakesAStagedFilesPlaceIsUnstaged) {
  const FileId old = MakeBound(kAnna, kRootFile, "f", kMiB);
  EXPECT_EQ(Stage(old), StageOutcome::kStaged);
  const FileId fresh = MakeBound(kAnna, kRootFile, "f.tmp", kMiB);
  Ok<RenameReply>(kAnna, RenameRequest{kRootFile, "f.tmp", kRootFile, "f"});
  EXPECT_EQ(Unstaged(), 1U);
  EXPECT_EQ(Stage(fresh), StageOutcome::kStaged);
  EXPECT_EQ(Unstaged(), 0U);
}

TEST_F(CoreStaging, ACopyOfAnotherVersionIsNotTakenForTheFile) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  const uint64_t copied = VersionOf(file);
  Ok<OpenReply>(kBen, OpenRequest{file, true, ""});
  Write(file, kBen);
  EXPECT_EQ(Mark(file, copied), StageOutcome::kChanged);
  EXPECT_EQ(Unstaged(), 1U);
}

TEST_F(CoreStaging, WhoHasItOpenForWritingKeepsItFromBeingStaged) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  Ok<OpenReply>(kBen, OpenRequest{file, true, ""});
  EXPECT_EQ(Mark(file, VersionOf(file)), StageOutcome::kBusy);
  ConfirmAll();
  EXPECT_EQ(Mark(file, VersionOf(file)), StageOutcome::kBusy);
  Ok<EmptyReply>(kBen, ReleaseRequest{file, std::nullopt});
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
}

TEST_F(CoreStaging, OpeningForWritingMakesItUnstagedBeforeAnythingIsCommitted) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
  Ok<OpenReply>(kBen, OpenRequest{file, true, ""});
  EXPECT_EQ(Unstaged(), 1U);
  for (const auto& [key, value] : image_) EXPECT_NE(key[0], 'T');
}

// One of two descriptors was closed: the manager has seen an end, but the mount still writes.
TEST_F(CoreStaging, AWriterOfWhomTheManagerDoesNotKnowIsAskedFor) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  Ok<OpenReply>(kBen, OpenRequest{file, true, ""});
  Write(file, kBen, /*last_close=*/true);
  const uint64_t version = VersionOf(file);
  EXPECT_EQ(Mark(file, version), StageOutcome::kBusy);
  Confirm(kAnna);
  EXPECT_EQ(Mark(file, version), StageOutcome::kBusy);
  for (const RecallPush& recall : std::exchange(recalls_[kBen], {}))
    Send(kBen, {RecallDoneRequest{recall.recall, true, false, /*writes=*/true}});
  EXPECT_EQ(Mark(file, version), StageOutcome::kBusy);
  EXPECT_EQ(Unstaged(), 1U);
  Ok<EmptyReply>(kBen, ReleaseRequest{file, std::nullopt});
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
}

TEST_F(CoreStaging, AReaderDoesNotKeepItFromBeingStaged) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  Ok<OpenReply>(kBen, OpenRequest{file, false, ""});
  const uint64_t version = VersionOf(file);
  EXPECT_EQ(Mark(file, version), StageOutcome::kBusy);
  Confirm(kAnna);
  Confirm(kBen, /*holds_open=*/true);
  EXPECT_EQ(Mark(file, version), StageOutcome::kStaged);
}

TEST_F(CoreStaging, OneWhoOpensItToWriteWhileOthersAreAskedIsHeard) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  const uint64_t version = VersionOf(file);
  EXPECT_EQ(Mark(file, version), StageOutcome::kBusy);
  Send(kBen, {OpenRequest{file, true, ""}});
  ConfirmAll();
  EXPECT_EQ(Mark(file, version), StageOutcome::kBusy);
}

TEST_F(CoreStaging, AFileThatIsGoneIsForgotten) {
  const FileId file = MakeBound(kAnna, kRootFile, "f", kMiB);
  EXPECT_EQ(Stage(file), StageOutcome::kStaged);
  RemoveRequest remove{.parent = kRootFile, .name = "f"};
  Ok<RemoveReply>(kAnna, remove);
  AdvanceAlive(Seconds(2), {kAnna, kBen}, {n1_});
  for (const auto& [key, value] : image_) EXPECT_NE(key[0], 'T');
  EXPECT_EQ(Mark(file, 1), StageOutcome::kChanged);
}

TEST_F(CoreStaging, MountsThatMakeFilesUnaskedTellOfThemFirst) {
  const FileId dir = Make(kAnna, kRootFile, "dir", FileType::kDirectory);
  Make(kAnna, dir, "first");
  ASSERT_EQ(core_->GetClusterStatus(now_).sessions[0].delegations, 1U);
  EXPECT_EQ(Admin(RecallMakers{}).status.code(), StatusCode::kAborted);
  ConfirmAll();
  EXPECT_TRUE(Admin(RecallMakers{}).status.ok());
}

TEST_F(CoreStaging, AUserInALoopRecallsOnceInTenSeconds) {
  const FileId one = Make(kAnna, kRootFile, "one", FileType::kDirectory);
  Make(kAnna, one, "first");
  EXPECT_EQ(Admin(RecallMakers{1000}).status.code(), StatusCode::kAborted);
  ConfirmAll();
  EXPECT_TRUE(Admin(RecallMakers{1000}).status.ok());
  const auto delegations = [this] { return core_->GetClusterStatus(now_).sessions[0].delegations; };
  const FileId two = Make(kAnna, kRootFile, "two", FileType::kDirectory);
  Make(kAnna, two, "second");
  ASSERT_EQ(delegations(), 1U);
  // Nor may another user; and neither is told that all files were reported.
  for (const uint32_t uid : {1000U, 1001U}) {
    EXPECT_EQ(Admin(RecallMakers{uid}).status.code(), StatusCode::kAborted);
    EXPECT_TRUE(recalls_[kAnna].empty());
  }
  AdvanceAlive(kUserRecallEvery, {kAnna, kBen}, {n1_});
  ASSERT_EQ(delegations(), 1U);
  EXPECT_EQ(Admin(RecallMakers{1001}).status.code(), StatusCode::kAborted);
  EXPECT_FALSE(recalls_[kAnna].empty());
  ConfirmAll();
  EXPECT_TRUE(Admin(RecallMakers{1001}).status.ok());
  // An administrator need not wait.
  const FileId three = Make(kAnna, kRootFile, "three", FileType::kDirectory);
  Make(kAnna, three, "third");
  EXPECT_EQ(Admin(RecallMakers{}).status.code(), StatusCode::kAborted);
  EXPECT_FALSE(recalls_[kAnna].empty());
}

// ---- scans in pieces

TEST_F(CoreStaging, ALookInPiecesFindsTheSameAndSeesWhatHasGoneMeanwhile) {
  const FileId dir = Make(kAnna, kRootFile, "dir", FileType::kDirectory);
  std::vector<FileId> files;
  for (int i = 0; i < 7; ++i)
    files.push_back(MakeBound(kAnna, i % 2 == 0 ? kRootFile : dir,
                              std::string(1, static_cast<char>('a' + i)), kMiB));
  // The directory of its latest name no longer names it.
  Ok<EntryReply>(kAnna, LinkRequest{files[0], dir, "z"});
  Ok<RemoveReply>(kAnna, RemoveRequest{dir, "z"});
  const FileScanQuestion question{.kind = FileScanQuestion::Kind::kUnstaged, .files_max = 10};
  for (size_t steps = 1; steps < 12; ++steps) {
    FileScan scan(question);
    while (!core_->ContinueScan(scan, steps)) continue;
    EXPECT_EQ(scan.unstaged, core_->ListUnstaged(10, FileId())) << steps;
    ASSERT_EQ(scan.unstaged.first.size(), 7U) << steps;
    EXPECT_EQ(scan.unstaged.first[0].path, "/a") << steps;
    EXPECT_EQ(scan.unstaged.first[1].path, "/dir/b") << steps;
  }
  // One call does no more work than allowed.
  FileScan scan(question);
  int pieces = 1;
  for (; !core_->ContinueScan(scan, 2); ++pieces) {
    if (pieces == 4) Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "g"});
  }
  EXPECT_GE(pieces, 8);
  EXPECT_EQ(scan.unstaged.first.size(), 6U);
}

}  // namespace
}  // namespace mosa::manager
