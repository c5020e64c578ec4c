// A change whose client was told that it failed never takes effect later. A change of a name
// concerns only the file that the client saw there.
#include "manager/core/core_fixture.h"
#include "manager/core/given_up.h"
#include "manager/core/records.h"

namespace mosa::manager {
namespace {

class CoreRequests : public CoreFixture {
 protected:
  CoreRequests() {
    Start(kAnna);
    Start(kBen);
  }
  // Delivers an envelope that the client has sent before.
  void Deliver(ClientId client, RequestEnvelope envelope) {
    Step(SessionRequest{client, std::move(envelope)});
  }
  RequestId NextId(ClientId client) { return RequestId(++last_request_[client]); }
  ErrorReason ReasonOf(ClientId client, RequestId id) const {
    const auto found = replies_.find({client, id});
    if (found == replies_.end() || found->second.empty()) return ErrorReason::kNone;
    const auto* failure = std::get_if<Failure>(&found->second.back());
    return failure ? failure->reason : ErrorReason::kNone;
  }
  bool Exists(const std::string& name) {
    return Ok<EntryReply>(kAnna, LookupRequest{kRootFile, name}).entry.file != FileId{};
  }
};

TEST_F(CoreRequests, AnUnlinkThatComesTooLateRemovesNothing) {
  Make(kAnna, kRootFile, "x");
  RequestEnvelope late{.id = NextId(kBen), .requests = {RemoveRequest{kRootFile, "x"}}};
  late.expires = now_ + Seconds(1);
  AdvanceAlive(Seconds(2), {kAnna, kBen});
  Deliver(kBen, late);
  EXPECT_EQ(ReasonOf(kBen, late.id), ErrorReason::kTimedOut);
  EXPECT_TRUE(Exists("x"));
}

TEST_F(CoreRequests, ARequestThatWaitedTooLongForADelegationDoesNotRun) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);  // Delegated to her.
  Make(kAnna, d, "x");
  RequestEnvelope parked{.id = NextId(kBen), .requests = {RemoveRequest{d, "x"}}};
  parked.expires = now_ + Seconds(1);
  Deliver(kBen, parked);
  EXPECT_FALSE(Answered(kBen, parked.id));
  AdvanceAlive(Seconds(2), {kAnna, kBen});
  Confirm(kAnna);
  EXPECT_EQ(ReasonOf(kBen, parked.id), ErrorReason::kTimedOut);
  EXPECT_NE(Ok<EntryReply>(kAnna, LookupRequest{d, "x"}).entry.file, FileId{});
}

TEST_F(CoreRequests, ARequestOfWhichTheReplyIsKnownIsAnsweredHoweverLate) {
  Make(kAnna, kRootFile, "x");
  RequestEnvelope remove{.id = NextId(kBen), .requests = {RemoveRequest{kRootFile, "x"}}};
  remove.expires = now_ + Seconds(1);
  Deliver(kBen, remove);
  ConfirmAll();
  replies_.clear();
  AdvanceAlive(Seconds(2), {kAnna, kBen});
  Deliver(kBen, remove);
  EXPECT_TRUE(Answered(kBen, remove.id));
  EXPECT_EQ(ReasonOf(kBen, remove.id), ErrorReason::kNone);
}

TEST_F(CoreRequests, WhatWasGivenUpNeverRuns) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  Make(kAnna, d, "x");
  Make(kAnna, kRootFile, "y");
  const RequestId first = NextId(kBen);  // Keeps the bound low.
  const RequestEnvelope parked{.id = NextId(kBen), .requests = {RemoveRequest{d, "x"}}};
  Deliver(kBen, parked);
  const RequestEnvelope unheard{.id = NextId(kBen), .requests = {RemoveRequest{kRootFile, "y"}}};
  Deliver(kBen,
          {.id = RequestId(0), .answered_below = first, .abandoned = {parked.id, unheard.id}});
  ConfirmAll();
  Deliver(kBen, unheard);
  Deliver(kBen, parked);
  ConfirmAll();
  EXPECT_TRUE(Exists("y"));
  EXPECT_NE(Ok<EntryReply>(kAnna, LookupRequest{d, "x"}).entry.file, FileId{});
}

TEST_F(CoreRequests, WhatIsSettledNeverRunsAgain) {
  Make(kAnna, kRootFile, "x");
  const RequestEnvelope old{.id = NextId(kBen), .requests = {RemoveRequest{kRootFile, "x"}}};
  Deliver(kBen, {.id = RequestId(0), .answered_below = RequestId(old.id.value + 1)});
  Deliver(kBen, old);
  ConfirmAll();
  EXPECT_TRUE(Exists("x"));
}

TEST_F(CoreRequests, OnlyTheFileThatTheAskerMeansIsRemoved) {
  const FileId old = Make(kAnna, kRootFile, "x");
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "x"});
  const FileId precious = Make(kAnna, kRootFile, "x");
  RemoveRequest remove{kRootFile, "x"};
  remove.file = old;
  EXPECT_EQ(Refused(kBen, remove), ErrorReason::kStale);
  EXPECT_TRUE(Exists("x"));
  remove.file = precious;
  EXPECT_EQ(Ok<RemoveReply>(kBen, remove).file, precious);
  EXPECT_EQ(Refused(kBen, remove), ErrorReason::kNoEntry);
}

TEST_F(CoreRequests, OnlyTheFilesThatTheAskerMeansAreRenamedAndReplaced) {
  const FileId a = Make(kAnna, kRootFile, "a");
  const FileId b = Make(kAnna, kRootFile, "b");
  struct Row {
    FileId moved;
    std::optional<FileId> replaced;
    ErrorReason expected;
  };
  const Row rows[] = {{b, b, ErrorReason::kStale},
                      {a, a, ErrorReason::kStale},
                      {a, FileId{}, ErrorReason::kStale},
                      {a, b, ErrorReason::kNone}};
  for (const Row& row : rows) {
    RenameRequest rename{kRootFile, "a", kRootFile, "b"};
    rename.moved = row.moved;
    rename.replaced = row.replaced;
    EXPECT_EQ(Refused(kBen, rename), row.expected);
  }
  EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{kRootFile, "b"}).entry.file, a);
  const FileId c = Make(kAnna, kRootFile, "c");
  RenameRequest absent{kRootFile, "c", kRootFile, "d"};
  absent.moved = c;
  absent.replaced = b;
  EXPECT_EQ(Refused(kBen, absent), ErrorReason::kStale) << "what is to be replaced is gone";
  absent.replaced = FileId{};
  Ok<RenameReply>(kBen, absent);
}

TEST_F(CoreRequests, AClientIsToldWhetherItsRepliesAreStillKnown) {
  EXPECT_FALSE(ready_[kAnna].replies_kept) << "it is new";
  Start(kAnna);
  EXPECT_TRUE(ready_[kAnna].replies_kept);
  Step(SessionLost{kAnna});
  Advance(Seconds(10));
  Start(kAnna);
  EXPECT_TRUE(ready_[kAnna].replies_kept);
  Step(SessionLost{kAnna});
  Advance(Seconds(10));
  Advance(Seconds(61));
  Start(kAnna);
  EXPECT_FALSE(ready_[kAnna].replies_kept);
}

TEST_F(CoreRequests, WhatWasCutOffTheRepliesIsNotRunAgain) {
  options_.client_reply_log_bytes_max = 16 << 10;
  core_ = std::make_unique<ManagerCore>(options_);
  image_.clear();
  Start(kAnna);
  Start(kBen);
  RequestEnvelope first{.id = NextId(kAnna), .requests = {MakeOf(kAnna, kRootFile, "x")}};
  const RequestEnvelope asked{.id = NextId(kAnna), .requests = {GetAttributesRequest{kRootFile}}};
  Deliver(kAnna, first);
  Deliver(kAnna, asked);
  for (int i = 0; i < 200; ++i) Make(kAnna, kRootFile, std::to_string(i));
  const RequestEnvelope last{.id = NextId(kAnna), .requests = {MakeOf(kAnna, kRootFile, "z")}};
  Deliver(kAnna, last);
  Ok<RemoveReply>(kBen, RemoveRequest{kRootFile, "x"});
  for (const bool restarts : {false, true}) {
    replies_.clear();
    if (restarts) {
      Restart();
      Start(kBen);
    }
    Start(kAnna);
    for (const RequestEnvelope& envelope : {first, asked, last}) Deliver(kAnna, envelope);
    ConfirmAll();
    EXPECT_EQ(ReasonOf(kAnna, first.id), ErrorReason::kTimedOut) << restarts;
    EXPECT_EQ(ReasonOf(kAnna, asked.id), ErrorReason::kNone) << restarts;
    EXPECT_EQ(ReasonOf(kAnna, last.id), ErrorReason::kNone) << restarts;
    EXPECT_TRUE(Answered(kAnna, last.id)) << restarts;
    EXPECT_EQ(Refused(kBen, LookupRequest{kRootFile, "x"}), ErrorReason::kNoEntry) << restarts;
  }
  // Once everything is confirmed, no record is kept.
  Deliver(kAnna, {.id = RequestId(0), .answered_below = RequestId(last.id.value + 1)});
  EXPECT_FALSE(image_.contains(CutRepliesKey(kAnna)));
  EXPECT_FALSE(image_.contains(RepliesKey(kAnna, last.id)));
}

TEST(GivenUp, RemembersOnlySoMany) {
  GivenUp given_up;
  std::vector<RequestId> ids;
  for (uint64_t i = 0; i < kAbandonedMax + 10; ++i) ids.emplace_back(100 + 2 * i);
  given_up.Note(RequestId(50), ids);
  EXPECT_TRUE(given_up.Contains(RequestId(49)));
  EXPECT_FALSE(given_up.Contains(RequestId(50)));
  EXPECT_FALSE(given_up.Contains(RequestId(100)));
  EXPECT_TRUE(given_up.Contains(ids.back()));
  given_up.Note(RequestId(200), {});
  EXPECT_TRUE(given_up.Contains(RequestId(151)));
}

}  // namespace
}  // namespace mosa::manager
