// Files that are read while they are written: what readers are told of the writers.
#include <gtest/gtest.h>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreStreams : public CoreFixture {
 protected:
  CoreStreams() {
    Start(kAnna);
    Start(kBen);
    n1_ = AddNode("n1");
  }
  FileId Expect(const std::string& name = "f") {
    const FileId file = Make(kAnna, kRootFile, name);
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa.stream", "append"});
    return file;
  }
  StreamState StateOf(FileId file, ClientId asker = kBen) {
    return Ok<AttributesReply>(asker, GetAttributesRequest{file}).attributes.stream;
  }
  void Open(FileId file, ClientId client = kAnna) {
    Ok<OpenReply>(client, OpenRequest{file, true, "w"});
  }
  void Commit(FileId file, uint64_t size, bool last_close, ClientId client = kAnna) {
    const auto bound = Ok<BindReply>(client, BindRequest{file, kMiB});
    CommitRequest commit{.file = file, .size_bytes = size};
    commit.nodes.push_back({bound.access.layout.Nodes()[0], size, 0});
    commit.last_close = last_close;
    Ok<AttributesReply>(client, commit);
  }

  // Long enough for sessions to expire, while these live and answer.
  void Pass(const std::vector<ClientId>& clients) {
    for (int i = 0; i < 60; ++i) {
      AdvanceAlive(Seconds(2), clients, {n1_});
      ConfirmAll();
    }
  }

  NodeId n1_;
};

TEST_F(CoreStreams, AreExpectedThenOpenThenEnded) {
  const FileId plain = Make(kAnna, kRootFile, "plain");
  EXPECT_EQ(StateOf(plain), StreamState::kNone);
  const FileId file = Expect();
  EXPECT_EQ(StateOf(file), StreamState::kExpected);
  Open(file);
  EXPECT_EQ(StateOf(file), StreamState::kOpen);
  Commit(file, kMiB, false);
  EXPECT_EQ(StateOf(file), StreamState::kOpen);
  Open(file, kBen);
  Commit(file, 2 * kMiB, true);
  EXPECT_EQ(StateOf(file), StreamState::kOpen) << "another session writes it";
  Ok<EmptyReply>(kBen, ReleaseRequest{.file = file, .holds_open = true});
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
  Open(file);
  EXPECT_EQ(StateOf(file), StreamState::kOpen);
}

TEST_F(CoreStreams, AnOpenThatIsStillCountedIsOneOfTheStream) {
  const FileId file = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa.stream", "append"});
  Open(file);
  Ok<EmptyReply>(kAnna, ReleaseRequest{.file = file});
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
}

TEST_F(CoreStreams, WhoeverReadsIsToldOfEachCommitAndOfTheEnd) {
  const FileId file = Expect();
  for (const bool last_close : {false, true}) {
    Open(file);
    StateOf(file);
    recalls_[kBen].clear();
    CommitRequest commit{.file = file, .size_is_exact = false, .data_changed = false};
    commit.size_bytes = last_close ? 0 : kMiB;
    commit.last_close = last_close;
    Send(kAnna, {commit});
    ASSERT_EQ(recalls_[kBen].size(), 1U) << last_close;
    EXPECT_EQ(recalls_[kBen][0].file, file);
    ConfirmAll();
  }
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
}

TEST_F(CoreStreams, AnEmptyOneEndsToo) {
  const FileId file = Expect();
  Open(file);
  Ok<EmptyReply>(kAnna, ReleaseRequest{.file = file});
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
  Restart();
  Start(kAnna);
  Start(kBen);
  Pass({kAnna, kBen});
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
}

TEST_F(CoreStreams, AnOpenFromBeforeTheHintDoesNotEndThem) {
  const FileId file = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa.stream", "append"});
  EXPECT_EQ(StateOf(file), StreamState::kOpen);
  Ok<EmptyReply>(kAnna, ReleaseRequest{.file = file});
  EXPECT_EQ(StateOf(file), StreamState::kExpected);
}

TEST_F(CoreStreams, WhatHadContentBeforeTheHintIsWhole) {
  const FileId file = Make(kAnna, kRootFile, "f");
  Open(file);
  Commit(file, kMiB, true);
  Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa.stream", "append"});
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
}

TEST_F(CoreStreams, DirectoriesAndCreatesThatHoldOpen) {
  const FileId directory = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  Ok<EmptyReply>(kAnna, SetXattrRequest{directory, "user.mosa.stream", "append"});
  MakeRequest make = MakeOf(kAnna, directory, "f");
  make.open = true;
  const auto made = Ok<MakeReply>(kAnna, make);
  EXPECT_EQ(made.entry.attributes.stream, StreamState::kOpen);
  EXPECT_EQ(made.access->inline_bytes_max, 0U) << "its first byte goes to a node";
  EXPECT_EQ(StateOf(made.entry.file), StreamState::kOpen);
}

TEST_F(CoreStreams, BreakWithTheSessionOfAWriter) {
  const FileId file = Expect();
  Open(file);
  Commit(file, kMiB, false);
  Pass({kBen});
  EXPECT_EQ(StateOf(file), StreamState::kBroken);
  Restart();
  Start(kBen);
  Pass({kBen});
  EXPECT_EQ(StateOf(file), StreamState::kBroken);
  Open(file, kBen);
  EXPECT_EQ(StateOf(file), StreamState::kOpen) << "it is written again";
  Commit(file, 2 * kMiB, true, kBen);
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
}

TEST_F(CoreStreams, StayBrokenWhileAnotherWriterGoesOn) {
  const FileId file = Expect();
  Open(file);
  Open(file, kBen);
  Pass({kBen});
  Open(file, kBen);  // A mount that writes on may ask again.
  Ok<EmptyReply>(kBen, ReleaseRequest{.file = file, .holds_open = true});
  EXPECT_EQ(StateOf(file), StreamState::kBroken);
}

TEST_F(CoreStreams, BreakIfTheirBytesWereLostOrTheyWereReplaced) {
  const FileId lossy = Expect("lossy");
  Open(lossy);
  Ok<EmptyReply>(kAnna, ReleaseRequest{.file = lossy, .uncommitted = true});
  EXPECT_EQ(StateOf(lossy), StreamState::kBroken);
  const FileId replaced = Expect("replaced");
  Open(replaced);
  Ok<OpenReply>(kBen, OpenRequest{replaced, false, "r"});
  Ok<RemoveReply>(kAnna,
                  RemoveRequest{.parent = kRootFile, .name = "replaced", .holds_open = true});
  Confirm(kBen, /*holds_open=*/true);
  Ok<EmptyReply>(kAnna, ReleaseRequest{.file = replaced});
  EXPECT_EQ(StateOf(replaced), StreamState::kBroken);
}

TEST_F(CoreStreams, EndIfTheMountOfTheWriterComesBackWithoutIt) {
  const FileId file = Expect();
  Open(file);
  Commit(file, kMiB, false);
  Start(kAnna);  // The connection broke, and with it the news of the close.
  ConfirmAll();
  EXPECT_EQ(StateOf(file), StreamState::kEnded);
}

TEST_F(CoreStreams, WaitForTheirWritersAfterARestart) {
  const FileId file = Expect(), closed = Expect("closed");
  Open(file);
  Open(closed);
  Restart();
  Start(kBen);
  SessionStart start;
  start.opens.push_back({file, true});
  Start(kAnna, start);
  Pass({kAnna, kBen});
  EXPECT_EQ(StateOf(file), StreamState::kOpen);
  EXPECT_EQ(StateOf(closed), StreamState::kEnded) << "its mount lives";
  Restart();
  Start(kBen);
  Pass({kBen});
  EXPECT_EQ(StateOf(file), StreamState::kBroken) << "its mount is gone";
}

TEST_F(CoreStreams, NobodyWritesWhatWasRemovedBefore) {
  const FileId file = Expect();
  Ok<OpenReply>(kBen, OpenRequest{file, false, "r"});
  Ok<RemoveReply>(kAnna, RemoveRequest{.parent = kRootFile, .name = "f"});
  Confirm(kBen, /*holds_open=*/true);
  EXPECT_EQ(StateOf(file), StreamState::kBroken);
}

}  // namespace
}  // namespace mosa::manager
