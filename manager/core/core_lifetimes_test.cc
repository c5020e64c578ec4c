// Files that are removed automatically: which readers count, and which clients have the files open.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/units.h"
#include "common/model/task_names.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreLifetimes : public CoreFixture {
 protected:
  CoreLifetimes() {
    Start(kAnna);
    n1_ = AddNode("n1");
  }

  AdminReply Admin(const Command& command) {
    const Effects effects = Step(command);
    EXPECT_TRUE(effects.admin_reply.has_value());
    AdminReply reply = effects.admin_reply.value_or(AdminReply{});
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    return reply;
  }
  void SetLifetime(FileId file, const std::string& value) {
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa.lifetime", value});
  }
  // A file written by task "r/w" in a directory with this lifetime.
  FileId Write(const std::string& name, const std::string& lifetime, ClientId client = kAnna) {
    SetLifetime(kRootFile, lifetime);
    MakeRequest make = MakeOf(client, kRootFile, name, FileType::kRegular, true);
    make.task = "r/w";
    const FileId file = Ok<MakeReply>(client, make).entry.file;
    const auto bound = Ok<BindReply>(client, BindRequest{file, kMiB});
    CommitRequest commit{.file = file, .size_bytes = kMiB};
    commit.nodes.push_back({bound.access.layout.Nodes()[0], kMiB, 0});
    commit.last_close = true;
    Ok<AttributesReply>(client, commit);
    return file;
  }
  void Read(FileId file, const std::string& task, ClientId client = kAnna) {
    EXPECT_TRUE(Ok<OpenReply>(client, OpenRequest{file, false, ""}).counts_readers);
    Ok<EmptyReply>(client, ReleaseRequest{file, task});
  }
  // Mounts that are asked answer that they have nothing open.
  bool IsThere(const std::string& name) {
    ConfirmAll();
    return std::holds_alternative<EntryReply>(Call1(kAnna, LookupRequest{kRootFile, name}));
  }
  // Clients that are asked answer. Ben has the file open.
  void ConfirmOpenAtBens() {
    for (int round = 0; round < 4; ++round) {
      Confirm(kAnna);
      Confirm(kBen, /*holds_open=*/true);
    }
  }
  bool IsDropped(FileId file) {
    const auto& files = dropped_[n1_];
    return std::find(files.begin(), files.end(), file) != files.end();
  }
  NodeId n1_;
};

// ---- readers

TEST_F(CoreLifetimes, AFileGoesBehindTheReaderThatItWasFor) {
  const FileId f = Write("f", "readers:2");
  Read(f, "r/a");
  Read(f, "r/a");  // The same task.
  EXPECT_TRUE(IsThere("f"));
  Read(f, "r/b");
  EXPECT_FALSE(IsThere("f"));
  EXPECT_TRUE(IsDropped(f));
  for (const auto& [key, value] : image_) EXPECT_NE(key[0], 'L');
}

TEST_F(CoreLifetimes, WithoutATaskEveryClosedReadCounts) {
  const FileId f = Write("f", "readers:3");
  Read(f, "sid:7:cat");
  Read(f, "sid:7:cat");
  EXPECT_TRUE(IsThere("f"));
  Read(f, "");
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, WhoWritesAFileIsNoReaderOfIt) {
  const FileId f = Write("f", "readers:1");
  Read(f, "r/w");
  EXPECT_TRUE(IsThere("f"));
  Read(f, "r/a");
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, WhoCopiesItOutIsNoReader) {
  const FileId f = Write("f", "readers:1");
  Read(f, std::string(kStageTask));
  EXPECT_TRUE(IsThere("f"));
}

TEST_F(CoreLifetimes, FilesOfOtherLifetimesAskForNothing) {
  for (const std::string lifetime : {"keep", "temporary"}) {
    const FileId f = Write(lifetime, lifetime);
    EXPECT_FALSE(Ok<OpenReply>(kAnna, OpenRequest{f, false, ""}).counts_readers);
    Ok<EmptyReply>(kAnna, ReleaseRequest{f, "r/a"});
    EXPECT_TRUE(IsThere(lifetime));
  }
}

TEST_F(CoreLifetimes, CountsSurviveARestart) {
  const FileId f = Write("f", "readers:3");
  Read(f, "r/a");
  Read(f, "sid:1:cat");
  Restart();
  AddNode("n1");
  Start(kAnna);
  Read(f, "r/a");
  EXPECT_TRUE(IsThere("f"));
  Read(f, "sid:1:cat");
  EXPECT_FALSE(IsThere("f"));
  EXPECT_TRUE(IsDropped(f));
}

TEST_F(CoreLifetimes, WhatWasDueGoesAfterARestart) {
  Start(kBen, {.node_name = "n2"});
  const FileId f = Write("f", "readers:1");
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  Read(f, "r/a");  // Nobody has answered whether it has the file open.
  Restart();
  AddNode("n1");
  Start(kAnna);
  EXPECT_FALSE(IsDropped(f));
  Start(kBen, {.node_name = "n2"});
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, OtherBytesHaveOtherReaders) {
  const FileId f = Write("f", "readers:2");
  Read(f, "r/a");
  Ok<OpenReply>(kAnna, OpenRequest{f, true, "r/w2"});
  Ok<AttributesReply>(kAnna, CommitRequest{.file = f, .size_bytes = kMiB, .last_close = true});
  Read(f, "r/b");
  EXPECT_TRUE(IsThere("f"));
  Read(f, "r/a");
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, AHintMayBeChangedAtAnyTime) {
  const FileId f = Write("f", "readers:3");
  Read(f, "r/a");
  SetLifetime(f, "readers:1");
  EXPECT_FALSE(IsThere("f"));
  const FileId g = Write("g", "readers:1");
  SetLifetime(g, "keep");
  Ok<EmptyReply>(kAnna, ReleaseRequest{g, "r/a"});
  EXPECT_TRUE(IsThere("g"));
  // Set on a file whose name is not recorded: the name is found.
  const FileId h = Write("h", "keep");
  SetLifetime(h, "readers:1");
  Read(h, "r/a");
  EXPECT_FALSE(IsThere("h"));
}

TEST_F(CoreLifetimes, AFileIsFoundUnderItsNewName) {
  const FileId f = Write("f", "readers:1");
  Ok<RenameReply>(kAnna, RenameRequest{kRootFile, "f", kRootFile, "g"});
  Read(f, "r/a");
  EXPECT_FALSE(IsThere("g"));
}

TEST_F(CoreLifetimes, WhoGivesAFileAnotherNameKeepsIt) {
  const FileId f = Write("f", "readers:1");
  Ok<EntryReply>(kAnna, LinkRequest{f, kRootFile, "g"});
  Ok<EmptyReply>(kAnna, ReleaseRequest{f, "r/a"});
  EXPECT_TRUE(IsThere("f"));
  EXPECT_TRUE(IsThere("g"));
}

// ---- which clients have it open

TEST_F(CoreLifetimes, AFileThatIsOpenAnywhereStaysUntilItIsClosed) {
  Start(kBen, {.node_name = "n2"});
  const FileId f = Write("f", "readers:1");
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  Read(f, "r/a");
  ConfirmOpenAtBens();
  EXPECT_TRUE(IsThere("f"));
  EXPECT_FALSE(IsDropped(f));
  // Its session is lost, comes back, and names the file as open.
  Start(kBen, {.node_name = "n2", .opens = {{f, false}}});
  ConfirmOpenAtBens();
  EXPECT_TRUE(IsThere("f"));
  Ok<EmptyReply>(kBen, ReleaseRequest{f});
  EXPECT_FALSE(IsThere("f"));
  EXPECT_TRUE(IsDropped(f));
}

TEST_F(CoreLifetimes, AFileThatIsBeingWrittenIsNotTakenAway) {
  Start(kBen, {.node_name = "n2"});
  const FileId f = Write("f", "temporary");
  Ok<OpenReply>(kBen, OpenRequest{f, true, "r/w"});
  EXPECT_EQ(Admin(EndWorkflow{"r"}).files_left, 1U);
  EXPECT_TRUE(IsThere("f"));
  Ok<AttributesReply>(kBen, CommitRequest{.file = f, .size_bytes = kMiB, .last_close = true});
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, WhoDiesHasNothingOpen) {
  Start(kBen, {.node_name = "n2"});
  const FileId f = Write("f", "readers:1");
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  Read(f, "r/a");
  ConfirmOpenAtBens();
  AdvanceAlive(Seconds(7), {kAnna}, {n1_});
  EXPECT_FALSE(IsThere("f"));
  EXPECT_TRUE(IsDropped(f));
}

// ---- workflows

TEST_F(CoreLifetimes, TemporaryFilesGoAtTheEndOfTheirOwnWorkflow) {
  const FileId f = Write("f", "temporary");
  Write("g", "keep");
  EXPECT_EQ(Admin(EndWorkflow{"s"}).files_left, 0U);
  EXPECT_TRUE(IsThere("f"));
  const AdminReply ended = Admin(EndWorkflow{"r"});
  EXPECT_FALSE(ended.more);
  EXPECT_FALSE(IsThere("f"));
  EXPECT_TRUE(IsDropped(f));
  EXPECT_TRUE(IsThere("g"));
  EXPECT_EQ(Admin(EndWorkflow{"r"}).files_left, 0U);
}

TEST_F(CoreLifetimes, WhatAWorkflowLeftOpenGoesLaterAlsoAfterARestart) {
  Start(kBen, {.node_name = "n2"});
  const FileId f = Write("f", "temporary");
  Ok<OpenReply>(kBen, OpenRequest{f, false, ""});
  EXPECT_EQ(Admin(EndWorkflow{"r"}).files_left, 1U);
  ConfirmOpenAtBens();
  EXPECT_TRUE(IsThere("f"));
  Restart();
  AddNode("n1");
  Start(kAnna);
  Start(kBen, {.node_name = "n2", .opens = {{f, false}}});
  ConfirmOpenAtBens();
  EXPECT_TRUE(IsThere("f"));
  Ok<EmptyReply>(kBen, ReleaseRequest{f});
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, ATaskOfARunThatBeganCountsWhenItHasSucceeded) {
  Admin(BeginWorkflow{"r"});
  const FileId f = Write("f", "readers:2");
  Read(f, "r/a");
  Read(f, "r/b");
  Read(f, "sid:1:less");  // Somebody looks on.
  EXPECT_TRUE(IsThere("f"));
  Admin(EndTask{"r/a", true});
  Admin(EndTask{"r/b", false});
  EXPECT_TRUE(IsThere("f"));
  Restart();
  AddNode("n1");
  Start(kAnna);
  Read(f, "r/b");
  EXPECT_TRUE(IsThere("f"));
  Admin(EndTask{"r/b", true});
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, WhatAMountTellsLateCountsAsWell) {
  Admin(BeginWorkflow{"r"});
  const FileId f = Write("f", "readers:1");
  Admin(EndTask{"r/a", true});
  Read(f, "r/a");
  EXPECT_FALSE(IsThere("f"));
}

TEST_F(CoreLifetimes, WhatARunnerSaysMustMakeSense) {
  for (const std::string run : {"", "a/b", "a b", "\n"}) {
    EXPECT_EQ(Step(BeginWorkflow{run}).admin_reply->status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Step(EndWorkflow{run}).admin_reply->status.code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(Step(EndTask{"x/y", true}).admin_reply->status.code(), StatusCode::kFailedPrecondition);
  Admin(BeginWorkflow{"r"});
  Admin(BeginWorkflow{"r"});
  Admin(EndWorkflow{"r"});
  EXPECT_FALSE(image_.contains("Wr"));
}

TEST_F(CoreLifetimes, AFileInADirectoryThatAMountMakesFilesInGoesToo) {
  Start(kBen, {.node_name = "n2"});
  const auto made = Ok<MakeReply>(kBen, MakeOf(kBen, kRootFile, "d", FileType::kDirectory));
  ASSERT_TRUE(made.delegated);
  MakeRequest make = MakeOf(kBen, made.entry.file, "f", FileType::kRegular, true);
  make.task = "r/w";
  const FileId f = Ok<MakeReply>(kBen, make).entry.file;
  Ok<EmptyReply>(kBen, SetXattrRequest{f, "user.mosa.lifetime", "temporary"});
  Ok<AttributesReply>(kBen, CommitRequest{.file = f, .last_close = true});
  EXPECT_EQ(Admin(EndWorkflow{"r"}).files_left, 1U);
  ConfirmAll();
  EXPECT_EQ(Admin(EndWorkflow{"r"}).files_left, 0U);
  const Reply reply = Call1(kBen, LookupRequest{made.entry.file, "f"});
  EXPECT_TRUE(std::holds_alternative<Failure>(reply));
}

}  // namespace
}  // namespace mosa::manager
