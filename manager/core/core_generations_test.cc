// Stores under a layout that is no longer the file's do not become the file's bytes.
#include "manager/core/core_copies_fixture.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {
namespace {

class CoreGenerations : public CoreCopies {
 protected:
  CoreGenerations() { names_generations_ = true; }

  DataAccess Open(ClientId client, FileId f, bool write) {
    return Ok<OpenReply>(client, OpenRequest{f, write, ""}).access;
  }
  CommitRequest CommitOf(FileId f, const DataAccess& access, uint64_t size_bytes = 2 * kMiB) {
    CommitRequest commit{.file = f, .size_bytes = size_bytes, .generation = access.generation};
    for (const NodeId node : access.layout.Nodes()) commit.nodes.push_back({node, size_bytes, 0});
    return commit;
  }
  // A closed file on n1 with a valid copy.
  FileId MakeCopied(const std::string& replicas = "2") {
    const FileId f = MakeOpen("f", replicas);
    CommitRequest commit = CommitOf(f, Open(kAnna, f, true));
    commit.last_close = true;
    Ok<AttributesReply>(kAnna, commit);
    DoOrders();
    return f;
  }
  void Expire(ClientId client, const std::vector<ClientId>& alive,
              const std::vector<NodeId>& nodes) {
    Step(SessionLost{client});
    AdvanceAlive(Seconds(7), alive, nodes);
    ConfirmAll();
  }
  void ComeBack(ClientId client, std::vector<HeldOpen> opens) {
    SessionStart start;
    start.opens = std::move(opens);
    Start(client, start);
  }
};

TEST_F(CoreGenerations, AWriterWhoseHostWasAwayCannotCommitPastThePromotedCopy) {
  const FileId f = MakeCopied();
  const DataAccess before = Open(kAnna, f, true);
  Step(NodeStreamLost{nodes_[0]});  // Mount and node share a host.
  Expire(kAnna, {kBen}, Others({nodes_[0]}));
  EXPECT_NE(Readers(f).front(), nodes_[0]);
  ComeBack(kAnna, {{f, true}});
  const CommitRequest late = CommitOf(f, before);
  const Reply reply = Call1(kAnna, late);
  const auto* failure = std::get_if<Failure>(&reply);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->reason, ErrorReason::kStale);
  EXPECT_NE(failure->message.find("generation"), std::string::npos);
  const DataAccess now = Open(kAnna, f, true);
  EXPECT_GT(now.generation, before.generation);
  EXPECT_EQ(Refused(kAnna, late), ErrorReason::kStale) << "a new open does not make it true";
  Ok<AttributesReply>(kAnna, CommitOf(f, now));
}

TEST_F(CoreGenerations, AWriterThatWasAwayGoesOnIfNobodyTouchedTheFile) {
  const FileId f = MakeCopied("1");
  const DataAccess before = Open(kAnna, f, true);
  Expire(kAnna, {kBen}, nodes_);
  Open(kBen, f, false);  // Reading changes nothing.
  ComeBack(kAnna, {{f, true}});
  Ok<AttributesReply>(kAnna, CommitOf(f, before));
}

TEST_F(CoreGenerations, AWriterThatWasAwayIsFencedByAnother) {
  enum class Touch { kOpen, kLock, kWaitingLock, kEmptyNode };
  for (const Touch touch : {Touch::kOpen, Touch::kLock, Touch::kWaitingLock, Touch::kEmptyNode}) {
    const std::string name = "f" + std::to_string(static_cast<int>(touch));
    const FileId f = MakeOpen(name, "1");
    Ok<AttributesReply>(kAnna, CommitOf(f, Open(kAnna, f, true)));
    const DataAccess before = Open(kAnna, f, true);
    const Lock lock{.type = LockType::kExclusive, .begin = 0, .last = 9, .owner = 1};
    RequestId waiting{};
    if (touch == Touch::kWaitingLock) {
      Ok<EmptyReply>(kAnna, SetLockRequest{f, lock, false});
      waiting = Send(kBen, {SetLockRequest{f, lock, true}});
    }
    if (touch == Touch::kEmptyNode) Step(NodeStreamLost{nodes_[0]});
    Expire(kAnna, {kBen}, touch == Touch::kEmptyNode ? Others({nodes_[0]}) : nodes_);
    if (touch == Touch::kOpen) Open(kBen, f, true);
    if (touch == Touch::kLock) Ok<EmptyReply>(kBen, SetLockRequest{f, lock, false});
    if (touch == Touch::kWaitingLock) {
      EXPECT_TRUE(Answered(kBen, waiting));
    }
    if (touch == Touch::kEmptyNode) AddNode("n1", 1 << 30, 8);
    ComeBack(kAnna, {{f, true}});
    EXPECT_EQ(Refused(kAnna, CommitOf(f, before)), ErrorReason::kStale) << static_cast<int>(touch);
  }
}

TEST_F(CoreGenerations, AFenceConcernsNobodyWhoWasHeardAllTheTime) {
  Start(kCarl);
  const FileId f = MakeCopied("1");
  const DataAccess anna = Open(kAnna, f, true);
  const DataAccess ben = Open(kBen, f, true);
  Expire(kAnna, {kBen, kCarl}, nodes_);
  const DataAccess carl = Open(kCarl, f, true);
  EXPECT_GT(carl.generation, ben.generation);
  Ok<AttributesReply>(kBen, CommitOf(f, ben));
  Ok<AttributesReply>(kCarl, CommitOf(f, carl));
  ComeBack(kAnna, {{f, true}});
  EXPECT_EQ(Refused(kAnna, CommitOf(f, anna)), ErrorReason::kStale);
  CommitRequest last = CommitOf(f, ben);
  last.last_close = true;
  Ok<AttributesReply>(kBen, last);
  Open(kBen, f, true);
  EXPECT_EQ(Refused(kBen, CommitOf(f, ben)), ErrorReason::kStale)
      << "what was stored before the close was committed by it";
}

TEST_F(CoreGenerations, NorAfterARestart) {
  const FileId f = MakeCopied("1");
  Open(kAnna, f, true);
  const DataAccess ben = Open(kBen, f, true);
  Start(kCarl);
  Expire(kAnna, {kBen, kCarl}, nodes_);
  recalls_.clear();
  const DataAccess carl = Open(kCarl, f, true);
  ASSERT_GT(carl.generation, ben.generation);
  for (int i = 0; i < 2; ++i) {
    Restart();
    ComeBack(kBen, {{f, true}});
    ComeBack(kCarl, {{f, true}});
  }
  Ok<AttributesReply>(kBen, CommitOf(f, ben));
  CommitRequest last = CommitOf(f, ben);
  last.last_close = true;
  Ok<AttributesReply>(kBen, last);
  Restart();
  ComeBack(kBen, {});
  ComeBack(kCarl, {{f, true}});
  Open(kBen, f, true);
  EXPECT_EQ(Refused(kBen, CommitOf(f, ben)), ErrorReason::kStale) << "it was closed";
  for (const auto& [key, value] : image_) EXPECT_NE(key[0], 'F');
}

TEST_F(CoreGenerations, AWriterIsToldOfAFenceThatItIsNotConcernedBy) {
  const FileId f = MakeCopied("1");
  Open(kAnna, f, true);
  const DataAccess ben = Open(kBen, f, true);
  Start(kCarl);
  Expire(kAnna, {kBen, kCarl}, nodes_);
  const RequestId opened = Send(kCarl, {OpenRequest{f, true, ""}});
  EXPECT_TRUE(Answered(kCarl, opened)) << "and nobody waits for it";
  ASSERT_EQ(recalls_[kBen].size(), 1U);
  EXPECT_EQ(recalls_[kBen][0].file, f);
  EXPECT_EQ(recalls_[kBen][0].kind, RecallKind::kAccess);
  Confirm(kBen);
  EXPECT_GT(Open(kBen, f, true).generation, ben.generation);
}

TEST_F(CoreGenerations, ASpillFencesNoWriterThatLetGoOfTheLayout) {
  const FileId f = MakeCopied("1");
  const DataAccess anna = Open(kAnna, f, true);
  const DataAccess ben = Open(kBen, f, true);
  Call(kAnna, {FreezeRequest{f}});
  const auto moved =
      Ok<BindReply>(kAnna, RelocateRequest{f, 4 * kMiB, UINT64_MAX, {nodes_[0]}}).access;
  EXPECT_EQ(moved.generation, anna.generation + 1);
  Ok<AttributesReply>(kBen, CommitOf(f, ben));
  Ok<AttributesReply>(kAnna, CommitOf(f, anna));
}

TEST_F(CoreGenerations, ASpillFencesAWriterThatIsAway) {
  const FileId f = MakeCopied("1");
  const DataAccess ben = Open(kBen, f, true);
  const DataAccess anna = Open(kAnna, f, true);
  Expire(kBen, {kAnna}, nodes_);
  Call(kAnna, {FreezeRequest{f}});
  Ok<BindReply>(kAnna, RelocateRequest{f, 4 * kMiB, UINT64_MAX, {nodes_[0]}});
  ComeBack(kBen, {{f, true}});
  EXPECT_EQ(Refused(kBen, CommitOf(f, ben)), ErrorReason::kStale);
  Ok<AttributesReply>(kAnna, CommitOf(f, anna));
}

TEST_F(CoreGenerations, SurviveARestart) {
  const FileId f = MakeCopied();
  const DataAccess before = Open(kAnna, f, true);
  Step(NodeStreamLost{nodes_[0]});
  Expire(kAnna, {kBen}, Others({nodes_[0]}));
  const uint64_t generation = Open(kBen, f, false).generation;
  EXPECT_GT(generation, before.generation);
  Restart();
  ComeBack(kBen, {});
  ComeBack(kAnna, {{f, true}});
  EXPECT_GE(Open(kAnna, f, true).generation, generation);
  EXPECT_EQ(Refused(kAnna, CommitOf(f, before)), ErrorReason::kStale);
}

// After a restart nobody knows who has touched the file since the session expired.
TEST_F(CoreGenerations, AWriterThatWasAwayBeforeARestartIsFenced) {
  const FileId f = MakeCopied("1");
  const DataAccess before = Open(kAnna, f, true);
  Expire(kAnna, {kBen}, nodes_);
  Restart();
  ComeBack(kBen, {});
  ComeBack(kAnna, {{f, true}});
  EXPECT_EQ(Refused(kAnna, CommitOf(f, before)), ErrorReason::kStale);
  Ok<AttributesReply>(kAnna, CommitOf(f, Open(kAnna, f, true)));
}

TEST_F(CoreGenerations, AWriterGoesOnAfterARestartOfTheManagerAlone) {
  const FileId f = MakeCopied("1");
  const DataAccess before = Open(kAnna, f, true);
  Restart();
  ComeBack(kBen, {});
  ComeBack(kAnna, {{f, true}});
  Ok<AttributesReply>(kAnna, CommitOf(f, before));
}

TEST_F(CoreGenerations, WhatWasStoredOnANodeThatCameBackEmptyIsNotCommitted) {
  const FileId f = MakeCopied("1");
  const DataAccess before = Open(kAnna, f, true);
  Step(NodeStreamLost{nodes_[0]});
  AdvanceAlive(Seconds(6), {kAnna, kBen}, Others({nodes_[0]}));
  AddNode("n1", 1 << 30, 8);
  ConfirmAll();
  EXPECT_EQ(Refused(kAnna, CommitOf(f, before)), ErrorReason::kStale);
}

TEST_F(CoreGenerations, FromTheFutureAndOfUnboundFilesAreRefused) {
  const FileId f = MakeCopied("1");
  DataAccess access = Open(kAnna, f, true);
  const FileId unbound = Make(kAnna, kRootFile, "u", FileType::kRegular, true);
  CommitRequest commit{.file = unbound, .size_bytes = 1, .generation = 1};
  EXPECT_EQ(Refused(kAnna, commit), ErrorReason::kInvalid);
  ++access.generation;
  EXPECT_EQ(Refused(kAnna, CommitOf(f, access)), ErrorReason::kInvalid);
  access.generation = 0;
  EXPECT_EQ(Refused(kAnna, CommitOf(f, access)), ErrorReason::kStale) << "from before it was bound";
}

// By a mount that was away while another one put a new file in its place.
TEST_F(CoreGenerations, ACommitOfAFileThatWasRemovedAndMadeAnewChangesNothing) {
  const FileId old = MakeCopied("1");
  const DataAccess before = Open(kAnna, old, true);
  Expire(kAnna, {kBen}, nodes_);
  RemoveRequest remove;
  remove.parent = kRootFile;
  remove.name = "f";
  Ok<RemoveReply>(kBen, remove);
  const FileId fresh = Make(kBen, kRootFile, "f");
  ASSERT_NE(fresh, old);
  ComeBack(kAnna, {{old, true}});
  EXPECT_EQ(Refused(kAnna, CommitOf(old, before)), ErrorReason::kStale);
  EXPECT_EQ(Refused(kAnna, CommitOf(fresh, before)), ErrorReason::kInvalid) << "it has no layout";
  EXPECT_EQ(Ok<AttributesReply>(kBen, GetAttributesRequest{fresh}).attributes.size_bytes, 0U);
}

TEST_F(CoreGenerations, ACutByAnotherLayoutIsToBeRepeated) {
  const FileId f = MakeCopied();
  const DataAccess before = Open(kAnna, f, true);
  SetAttributesRequest cut{.file = f, .size_bytes = 100};
  cut.generation = before.generation + 1;
  const Reply reply = Call1(kAnna, cut);
  ASSERT_TRUE(std::holds_alternative<Failure>(reply));
  EXPECT_EQ(std::get<Failure>(reply).code, StatusCode::kAborted);
  cut.generation = before.generation;
  EXPECT_EQ(Ok<AttributesReply>(kAnna, cut).attributes.size_bytes, 100U);
  cut.generation = 0;
  cut.size_bytes = 1000;
  EXPECT_EQ(Ok<AttributesReply>(kAnna, cut).attributes.size_bytes, 1000U) << "nothing is cut";
}

TEST_F(CoreGenerations, AnAccessNamesTheNodesWithoutABytes) {
  const FileId f = MakeOpen("f", "1", "lazy", "stripe");
  const DataAccess fresh = Open(kAnna, f, true);
  EXPECT_EQ(fresh.empty_nodes, fresh.layout.Nodes());
  CommitRequest commit = CommitOf(f, fresh, kMiB);
  commit.nodes.resize(1);
  Ok<AttributesReply>(kAnna, commit);
  const DataAccess access = Open(kBen, f, false);
  EXPECT_EQ(access.empty_nodes.size() + 1, access.layout.Nodes().size());
  EXPECT_EQ(
      std::count(access.empty_nodes.begin(), access.empty_nodes.end(), commit.nodes.front().node),
      0);
}

TEST_F(CoreGenerations, EverySessionHasAnEraAndEveryIncarnationAnEpoch) {
  const uint64_t era = ready_[kAnna].era;
  Start(kAnna);
  EXPECT_GT(ready_[kAnna].era, era);
  const uint64_t epoch = core_->TermsFor(kAnna).epoch;
  EXPECT_EQ(core_->TermsFor(kAnna).era, ready_[kAnna].era);
  const auto epoch_told = [&](uint64_t incarnation) -> uint64_t {
    Step(NodeStreamLost{nodes_[0]});
    const Effects effects = Step(
        RegisterNode{{.name = "n1", .incarnation = incarnation, .limit_bytes = uint64_t{1} << 30}});
    for (const ToNode& to : effects.to_nodes)
      if (const auto* registered = std::get_if<NodeRegistered>(&to.message))
        return registered->epoch;
    return 0;
  };
  EXPECT_EQ(epoch_told(7), 1U) << "the same objects as when it first came";
  AdvanceAlive(Seconds(6), {kAnna, kBen});
  EXPECT_EQ(epoch_told(8), epoch + 1);
  EXPECT_EQ(core_->TermsFor(kAnna).epoch, epoch + 1);
  Restart();
  Start(kAnna);
  Start(kBen);
  EXPECT_EQ(core_->TermsFor(kAnna).epoch, epoch + 1);
  EXPECT_EQ(epoch_told(8), epoch + 1) << "the node's is durable";
  EXPECT_GT(ready_[kAnna].era, era + 1);
}

TEST(WriterFences, AreLimited) {
  WriterFences fences;
  for (uint64_t i = 0; i < WriterFences::kFilesMax; ++i) fences.NoteAbsent(FileId(i + 1), kAnna);
  EXPECT_FALSE(fences.Surplus());
  // The oldest entry goes first, whatever its file id.
  fences.ForgetFile(FileId(1));
  fences.NoteAbsent(FileId(1), kBen);
  fences.NoteAbsent(FileId(WriterFences::kFilesMax + 1), kBen);
  EXPECT_EQ(fences.Surplus(), FileId(2));
  fences.Fence(*fences.Surplus(), {}, 0);
  EXPECT_FALSE(fences.Surplus());
  fences.ForgetAbsent(kAnna);
  EXPECT_EQ(fences.FilesWithAbsent(),
            (std::vector<FileId>{FileId(1), FileId(WriterFences::kFilesMax + 1)}));
  EXPECT_FALSE(fences.TakeBack(FileId(3), kAnna));
  EXPECT_TRUE(fences.TakeBack(FileId(1), kBen));
}

TEST_F(CoreGenerations, ACutToNothingTellsAWriterWhereTheBytesGoNow) {
  AddNode("n1");
  const FileId f = Make(kAnna, kRootFile, "f");
  const auto fill = [&] {
    CommitRequest commit{.file = f, .size_bytes = 5, .inline_data = "hello"};
    Ok<AttributesReply>(kAnna, commit);
  };
  fill();
  const auto cut_to = [&](uint64_t size_bytes) {
    return Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = size_bytes})
        .access;
  };
  EXPECT_FALSE(cut_to(0)) << "it does not count as a writer";
  fill();
  Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
  EXPECT_FALSE(cut_to(2));
  const auto access = cut_to(0);
  ASSERT_TRUE(access);
  EXPECT_EQ(*access, (Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access));
  EXPECT_TRUE(access->may_write && !access->is_inline);
}

}  // namespace
}  // namespace mosa::manager
