// Limits as clients see them.
#include <fmt/format.h>

#include <random>

#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreLimits : public CoreFixture {
 protected:
  void Begin(const QuotaOptions& quotas) {
    options_.quotas = quotas;
    core_ = std::make_unique<ManagerCore>(options_);
    Start(kAnna);
  }

  // Returns 0 if the limit `name` is not listed.
  uint64_t Used(std::string_view name) const {
    for (const LimitStatus& limit : core_->GetClusterStatus(now_).limits)
      if (limit.name == name) return limit.used;
    return 0;
  }

  MakeRequest MakeBy(uint32_t uid, std::string name, FileType type = FileType::kRegular,
                     bool open = false) {
    MakeRequest request = MakeOf(kAnna, kRootFile, std::move(name), type, open);
    request.uid = uid;
    return request;
  }
  FileId MakeFile(uint32_t uid, std::string name) {
    return Ok<MakeReply>(kAnna, MakeBy(uid, std::move(name))).entry.file;
  }
  CommitRequest InlineCommit(FileId file, size_t bytes) {
    CommitRequest commit{.file = file, .size_bytes = bytes};
    commit.inline_data = std::string(bytes, 'x');
    commit.size_is_exact = true;
    commit.data_changed = true;
    return commit;
  }
  SetXattrRequest SetOf(FileId file, std::string name, size_t bytes) {
    return {.file = file, .name = std::move(name), .value = std::string(bytes, 'v')};
  }
};

TEST_F(CoreLimits, MakingOneNameTooManyIsRefusedAndRemovingMakesRoom) {
  Begin({.all = {.names = 4, .inline_bytes = kNoLimit, .attribute_bytes = kNoLimit}});
  for (int i = 0; i < 3; ++i) MakeFile(kAlice, fmt::format("f{}", i));
  EXPECT_EQ(Refused(kAnna, MakeBy(kAlice, "f3")), ErrorReason::kNoSpace);
  EXPECT_EQ(Refused(kAnna, MakeBy(0, "d", FileType::kDirectory)), ErrorReason::kNoSpace);
  EXPECT_EQ(Refused(kAnna, MakeBy(kAlice, "s", FileType::kSymlink)), ErrorReason::kNoSpace);
  const auto status = Ok<StatFilesystemReply>(kAnna, StatFilesystemRequest{});
  EXPECT_EQ(status.files, 4U);
  EXPECT_EQ(status.files_free, 0U);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "f0"});
  MakeFile(kAlice, "f3");
}

TEST_F(CoreLimits, AUserAtHisLimitIsToldSoAndOthersGoOn) {
  Begin({.per_user = {.names = 2, .inline_bytes = kNoLimit, .attribute_bytes = kNoLimit}});
  MakeFile(kAlice, "a");
  const FileId file = MakeFile(kAlice, "b");
  EXPECT_EQ(Refused(kAnna, MakeBy(kAlice, "c")), ErrorReason::kQuota);
  EXPECT_EQ(Refused(kAnna, LinkRequest{file, kRootFile, "c"}), ErrorReason::kQuota);
  MakeFile(kBob, "c");
  MakeFile(0, "d");
  MakeFile(0, "e");
  MakeFile(0, "f");
}

TEST_F(CoreLimits, ALinkIsANameOfItsFilesOwner) {
  Begin({});
  const FileId file = MakeFile(kAlice, "a");
  Ok<EntryReply>(kAnna, LinkRequest{file, kRootFile, "b"});
  EXPECT_EQ(Used("names of user 1000"), 2U);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "a"});
  EXPECT_EQ(Used("names of user 1000"), 1U);
}

TEST_F(CoreLimits, AFileGivenAwayCountsForItsNewOwner) {
  Begin({});
  const FileId file = MakeFile(kAlice, "a");
  Ok<AttributesReply>(kAnna, InlineCommit(file, 100));
  Ok<EmptyReply>(kAnna, SetOf(file, "user.a", 50));
  SetAttributesRequest chown{.file = file};
  chown.uid = kBob;
  Ok<AttributesReply>(kAnna, chown);
  EXPECT_EQ(Used("names of user 1000"), 0U);
  EXPECT_EQ(Used("names of user 1001"), 1U);
  EXPECT_EQ(Used("inline of user 1001"), 100U);
  EXPECT_GT(Used("attributes of user 1001"), 50U);
}

TEST_F(CoreLimits, AFileThatDoesNotFitInlineIsToBeGivenObjects) {
  Begin({.all = {.names = kNoLimit, .inline_bytes = 16'000, .attribute_bytes = kNoLimit}});
  AddNode("n1");
  const FileId first = MakeFile(kAlice, "a");
  Ok<AttributesReply>(kAnna, InlineCommit(first, 15'000));
  const FileId second = MakeFile(kAlice, "b");
  const Reply reply = Call1(kAnna, InlineCommit(second, 15'000));
  const auto* failure = std::get_if<Failure>(&reply);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(failure->reason, ErrorReason::kNoSpace);
  // The client learns that there is no room for inline bytes. Existing inline bytes stay.
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{second, true}).access.inline_bytes_max, 0U);
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{first, true}).access.inline_bytes_max, 15'000U);
  Ok<BindReply>(kAnna, BindRequest{second, 15'000});
  Ok<AttributesReply>(kAnna, InlineCommit(first, 14'000));
  Ok<AttributesReply>(kAnna, InlineCommit(first, 0));
  const FileId third = MakeFile(kAlice, "c");
  Ok<AttributesReply>(kAnna, InlineCommit(third, 15'000));
}

TEST_F(CoreLimits, AttributesOfOneFileHaveALimitTogether) {
  Begin({});
  const FileId file = MakeFile(kAlice, "a");
  Ok<EmptyReply>(kAnna, SetOf(file, "user.long", 65'536));
  EXPECT_EQ(Refused(kAnna, SetOf(file, "user.b", 65'536)), ErrorReason::kNoSpace);
  Ok<EmptyReply>(kAnna, SetOf(file, "user.b", 1'000));
  EXPECT_EQ(Refused(kAnna, SetOf(file, "user.c", 4'000)), ErrorReason::kNoSpace);
  Ok<EmptyReply>(kAnna, SetOf(file, "user.long", 10));
  Ok<EmptyReply>(kAnna, SetOf(file, "user.c", 4'000));
}

TEST_F(CoreLimits, AttributesOfAllFilesHaveALimitOfAUserAndInAll) {
  Begin({.all = {.names = kNoLimit, .inline_bytes = kNoLimit, .attribute_bytes = 115'000},
         .per_user = {.names = kNoLimit, .inline_bytes = kNoLimit, .attribute_bytes = 60'000}});
  const FileId a = MakeFile(kAlice, "a");
  const FileId b = MakeFile(kAlice, "b");
  const FileId c = MakeFile(kBob, "c");
  Ok<EmptyReply>(kAnna, SetOf(a, "user.a", 50'000));
  EXPECT_EQ(Refused(kAnna, SetOf(b, "user.a", 50'000)), ErrorReason::kQuota);
  EXPECT_EQ(Refused(kAnna, SetOf(c, "user.a", 65'536)), ErrorReason::kNoSpace);
  Ok<EmptyReply>(kAnna, SetOf(a, "user.a", 40'000));
  Ok<EmptyReply>(kAnna, RemoveXattrRequest{a, "user.a"});
  Ok<EmptyReply>(kAnna, SetOf(b, "user.a", 50'000));
}

TEST_F(CoreLimits, AFullDataDirectoryRefusesWhatGrowsAndDoesWhatFrees) {
  Begin({});
  AddNode("n1");
  const FileId file = MakeFile(kAlice, "a");
  Ok<AttributesReply>(kAnna, InlineCommit(file, 1'000));
  Ok<EmptyReply>(kAnna, SetOf(file, "user.a", 100));
  Step(SetStorePressure{90, 80, "the data directory is full"});
  EXPECT_EQ(core_->GetClusterStatus(now_).growth_refused, "the data directory is full");
  EXPECT_EQ(Refused(kAnna, MakeBy(0, "b")), ErrorReason::kNoSpace);
  EXPECT_EQ(Refused(kAnna, LinkRequest{file, kRootFile, "b"}), ErrorReason::kNoSpace);
  EXPECT_EQ(Refused(kAnna, SetOf(file, "user.a", 101)), ErrorReason::kNoSpace);
  EXPECT_EQ(Refused(kAnna, SetOf(file, "user.mosa.readers", 1)), ErrorReason::kInvalid);
  EXPECT_EQ(Refused(kAnna, InlineCommit(file, 1'001)), ErrorReason::kNoSpace);
  EXPECT_EQ(Ok<StatFilesystemReply>(kAnna, StatFilesystemRequest{}).files_free, 0U);
  Ok<AttributesReply>(kAnna, InlineCommit(file, 999));
  Ok<EmptyReply>(kAnna, RemoveXattrRequest{file, "user.a"});
  Ok<RenameReply>(
      kAnna,
      RenameRequest{
          .old_parent = kRootFile, .old_name = "a", .new_parent = kRootFile, .new_name = "b"});
  Start(kBen);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "b"});
  Step(SetStorePressure{10, 80, ""});
  MakeFile(kAlice, "b");
}

TEST_F(CoreLimits, ObjectsThatWereWrittenAreCommittedWhateverIsFull) {
  Begin({});
  const NodeId node = AddNode("n1");
  const FileId file =
      Ok<MakeReply>(kAnna, MakeBy(kAlice, "a", FileType::kRegular, true)).entry.file;
  Ok<BindReply>(kAnna, BindRequest{file, 1 << 20});
  Step(SetStorePressure{90, 80, "the data directory is full"});
  CommitRequest commit{.file = file, .size_bytes = 1 << 20};
  commit.nodes.push_back({node, 1 << 20, 0});
  commit.data_changed = true;
  EXPECT_EQ(Ok<AttributesReply>(kAnna, commit).attributes.size_bytes, 1U << 20);
}

TEST_F(CoreLimits, NearALimitNoMountMakesNamesByItself) {
  Begin({.per_user = {.names = 32, .inline_bytes = kNoLimit, .attribute_bytes = kNoLimit}});
  const FileId directory = Ok<MakeReply>(kAnna, MakeBy(0, "d", FileType::kDirectory)).entry.file;
  bool delegated = false;
  for (int i = 0; i < 30; ++i) {
    MakeRequest make = MakeOf(kAnna, directory, fmt::format("f{}", i));
    make.uid = kAlice;
    delegated = Ok<MakeReply>(kAnna, make).delegated;
  }
  EXPECT_TRUE(delegated);
  MakeRequest make = MakeOf(kAnna, directory, "near");
  make.uid = kAlice;
  EXPECT_FALSE(Ok<MakeReply>(kAnna, make).delegated);
  ASSERT_EQ(recalls_[kAnna].size(), 1U);
  EXPECT_EQ(recalls_[kAnna][0].file, directory);
  EXPECT_EQ(recalls_[kAnna][0].kind, RecallKind::kEntries);
}

TEST_F(CoreLimits, AFullDataDirectoryTakesDelegationsBack) {
  Begin({});
  const FileId directory = Ok<MakeReply>(kAnna, MakeBy(0, "d", FileType::kDirectory)).entry.file;
  EXPECT_TRUE(Ok<MakeReply>(kAnna, MakeOf(kAnna, directory, "f")).delegated);
  Step(SetStorePressure{90, 80, "the data directory is full"});
  std::set<FileId> recalled;
  for (const RecallPush& recall : recalls_[kAnna]) recalled.insert(recall.file);
  EXPECT_TRUE(recalled.contains(directory));
}

TEST_F(CoreLimits, RepliesThatAClientNeverConfirmsAreKeptUpToALimit) {
  options_.client_reply_log_bytes_max = 64 << 10;
  Begin({});
  for (int i = 0; i < 1'000; ++i) MakeFile(kAlice, fmt::format("f{}", i));
  EXPECT_GT(Used("bytes of replies kept"), 32U << 10);
  EXPECT_LE(Used("bytes of replies kept"), 64U << 10);
  size_t kept = 0;
  for (const auto& [key, value] : image_) kept += key[0] == 'R' ? value.size() : 0;
  EXPECT_LE(kept, 64U << 10);
}

TEST_F(CoreLimits, RequestsThatWaitHaveALimitInBytes) {
  options_.session_waiting_bytes_max = 64 << 10;
  Begin({});
  Start(kBen);
  const FileId directory = Make(kBen, kRootFile, "d", FileType::kDirectory);
  ConfirmAll();
  ASSERT_TRUE(Ok<MakeReply>(kBen, MakeOf(kBen, directory, "f")).delegated);
  // Anna's requests wait for the directory, which Ben does not give back.
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    MakeRequest make = MakeOf(kAnna, directory, fmt::format("g{}", i));
    const FileId file = make.file;
    const RequestId id = Send(kAnna, {make, InlineCommit(file, 10'000)});
    if (Answered(kAnna, id)) {
      ++refused;
      EXPECT_EQ(std::get<Failure>(replies_[{kAnna, id}].at(0)).reason, ErrorReason::kBusy);
    }
  }
  EXPECT_GT(refused, 10);
  EXPECT_LT(refused, 16);
  ConfirmAll();
  EXPECT_EQ(Used("bytes of requests waiting"), 0U);
  EXPECT_EQ(Used("requests waiting"), 0U);
}

TEST_F(CoreLimits, WhatOthersWaitForIsHeardHoweverMuchWaits) {
  options_.waiting_bytes_max = 16 << 10;
  Begin({});
  Start(kBen);
  Start(kCarl);
  const FileId directory = Make(kBen, kRootFile, "d", FileType::kDirectory);
  const FileId file = Make(kBen, kRootFile, "f", FileType::kRegular, true);
  ConfirmAll();
  ASSERT_TRUE(Ok<MakeReply>(kBen, MakeOf(kBen, directory, "f")).delegated);
  for (int i = 0; i < 5; ++i) {
    MakeRequest make = MakeOf(kAnna, directory, fmt::format("g{}", i));
    const FileId made = make.file;
    Send(kAnna, {make, InlineCommit(made, 10'000)});
  }
  const auto refused = [this](std::vector<Request> requests) {
    const RequestId id = Send(kBen, std::move(requests));
    const std::vector<Reply> replies = replies_[{kBen, id}];
    return !replies.empty() && std::holds_alternative<Failure>(replies[0]);
  };
  EXPECT_TRUE(refused({GetAttributesRequest{file}}));
  EXPECT_TRUE(refused({ReleaseRequest{file}, GetAttributesRequest{file}}));
  EXPECT_FALSE(refused({ReleaseRequest{file}}));
  EXPECT_FALSE(refused({ForgetRequest{{file}}}));
  EXPECT_FALSE(refused({CancelLockRequest{RequestId(1'000'000)}}));
  ASSERT_FALSE(recalls_[kBen].empty());
  Confirm(kBen);
  EXPECT_EQ(Used("bytes of requests waiting"), 0U);
}

TEST_F(CoreLimits, TextsOfTasksAreLeftOutWhenTheyHaveNoRoom) {
  options_.text_bytes_max = 2'000;
  Begin({});
  for (int i = 0; i < 100; ++i) {
    MakeRequest make = MakeBy(i % 2 == 0 ? kAlice : kBob, fmt::format("f{}", i));
    make.task = fmt::format("task {} {}", i, std::string(100, 't'));
    Ok<MakeReply>(kAnna, make);
  }
  EXPECT_GE(Used("texts"), 2'000U);
  EXPECT_LT(Used("texts"), 3'000U);
  MakeRequest hinted = MakeBy(kAlice, "h");
  hinted.hints = {{"replicas", "2"}};
  EXPECT_EQ(Refused(kAnna, hinted), ErrorReason::kNoSpace);
  for (int i = 0; i < 100; ++i)
    Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, fmt::format("f{}", i)});
  Advance(Seconds(1));
  EXPECT_EQ(Used("texts"), 0U);
}

TEST_F(CoreLimits, TheTextsOfOneUserLeaveRoomForThoseOfOthers) {
  options_.text_bytes_max = 4'000;
  Begin({});
  const auto hinted = [this](uint32_t uid, const std::string& name, const std::string& replicas) {
    MakeRequest make = MakeBy(uid, name);
    make.hints = {{"replicas", replicas}};
    return make;
  };
  for (int i = 0; i < 100; ++i) {
    MakeRequest make = MakeBy(kAlice, fmt::format("f{}", i));
    make.task = fmt::format("task {} {}", i, std::string(100, 't'));
    Ok<MakeReply>(kAnna, make);
  }
  EXPECT_LT(Used("texts"), 3'500U);
  EXPECT_EQ(Refused(kAnna, hinted(kAlice, "h", "2")), ErrorReason::kQuota);
  const FileId file = Ok<MakeReply>(kAnna, hinted(kBob, "h", "2")).entry.file;
  Restart();
  Start(kAnna);
  EXPECT_EQ(Refused(kAnna, hinted(kAlice, "i", "3")), ErrorReason::kQuota);
  Ok<MakeReply>(kAnna, hinted(kBob, "i", "3"));
  Ok<MakeReply>(kAnna, hinted(0, "j", "4"));
  Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa.replicas", "5", false, false});
  for (int i = 0; i < 100; ++i)
    Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, fmt::format("f{}", i)});
  Advance(Seconds(1));
  Ok<MakeReply>(kAnna, hinted(kAlice, "k", "3"));
}

TEST_F(CoreLimits, TheNodeThatIsNearestToALimitOfItsConnectionsIsShown) {
  Begin({});
  const NodeId first = AddNode("n1");
  const NodeId second = AddNode("n2");
  EXPECT_EQ(Used("connections of a node"), 0U);
  NodeHeartbeat heartbeat{.used_bytes = 0, .limit_bytes = uint64_t{1} << 30};
  heartbeat.bulk = {
      .connections = 300, .connections_max = 4096, .unproven = 2, .unproven_max = 256};
  Step(NodeReport{first, heartbeat});
  heartbeat.bulk = {.connections = 90, .connections_max = 100, .unproven = 1, .unproven_max = 256};
  Step(NodeReport{second, heartbeat});
  EXPECT_EQ(Used("connections of a node"), 90U);
  EXPECT_EQ(Used("connections not proven"), 2U);
}

// Random requests. After each, the counts equal those of a core that counts from scratch.
class CoreLimitsModel : public CoreLimits, public ::testing::WithParamInterface<uint32_t> {
 protected:
  void Compare() {
    auto fresh = std::make_unique<ManagerCore>(options_);
    for (const auto& [key, value] : image_) {
      const Status loaded = fresh->LoadRecord(key, value);
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    ASSERT_TRUE(fresh->FinishLoad(now_).ok());
    const auto counts = [this](const ManagerCore& core) {
      std::map<std::string, uint64_t> result;
      for (const LimitStatus& limit : core.GetClusterStatus(now_).limits)
        if (limit.name.starts_with("names") || limit.name.starts_with("inline") ||
            limit.name.starts_with("attributes") || limit.name == "texts" ||
            limit.name == "bytes of replies kept")
          result[limit.name] = limit.used;
      return result;
    };
    EXPECT_EQ(counts(*core_), counts(*fresh));
  }

  std::string AnyName() { return fmt::format("n{}", Below(12)); }
  uint32_t AnyUser() { return Below(3) == 0 ? 0 : kAlice + Below(2); }
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  FileId AnyFile() {
    const auto listed = Call1(kAnna, ListDirectoryRequest{.directory = kRootFile});
    const auto* list = std::get_if<ListDirectoryReply>(&listed);
    if (list == nullptr || list->items.empty()) return FileId(3);
    return list->items[Below(static_cast<uint32_t>(list->items.size()))].entry.file;
  }

  Request Any() {
    switch (Below(11)) {
      case 0:
        return MakeBy(AnyUser(), AnyName(), static_cast<FileType>(1 + Below(3)), Below(2) == 0);
      case 1:
        return MakeBy(AnyUser(), AnyName());
      case 2:
        return LinkRequest{AnyFile(), kRootFile, AnyName()};
      case 3:
        return RemoveRequest{kRootFile, AnyName(), Below(4) == 0, Below(4) == 0};
      case 4:
        return RenameRequest{.old_parent = kRootFile,
                             .old_name = AnyName(),
                             .new_parent = kRootFile,
                             .new_name = AnyName(),
                             .no_replace = false,
                             .exchange = Below(4) == 0};
      case 5: {
        SetAttributesRequest set{.file = AnyFile()};
        if (Below(2) == 0) set.uid = AnyUser();
        if (Below(2) == 0) set.size_bytes = Below(20'000);
        return set;
      }
      case 6:
        return InlineCommit(AnyFile(), Below(16'385));
      case 7:
        return SetOf(AnyFile(), fmt::format("user.{}", Below(5)), Below(30'000));
      case 8:
        return RemoveXattrRequest{AnyFile(), fmt::format("user.{}", Below(5))};
      case 9:
        return BindRequest{AnyFile(), Below(100'000)};
      default: {
        // Its content has moved to its objects.
        CommitRequest moved{.file = AnyFile(), .size_bytes = Below(50'000)};
        moved.inline_moved = true;
        moved.last_close = true;
        return moved;
      }
    }
  }

  std::mt19937_64 random_;
};

TEST_P(CoreLimitsModel, CountsAreThoseOfAFreshCount) {
  random_.seed(GetParam());
  Begin({.all = {.names = 14, .inline_bytes = 80'000, .attribute_bytes = 150'000},
         .per_user = {.names = 9, .inline_bytes = 50'000, .attribute_bytes = 100'000}});
  AddNode("n1");
  for (int i = 0; i < 400; ++i) {
    std::vector<Request> requests;
    for (uint32_t n = 1 + Below(3); n > 0; --n) requests.push_back(Any());
    Send(kAnna, std::move(requests));
    ConfirmAll();
    if (Below(20) == 0) AdvanceAlive(Seconds(1), {kAnna});
    if (Below(50) == 0) Step(SetStorePressure{1, 1, Below(2) == 0 ? "full" : ""});
    Compare();
    if (HasFailure()) FAIL() << "seed " << GetParam() << ", step " << i;
    for (const LimitStatus& limit : core_->GetClusterStatus(now_).limits) {
      // A file given away may take its new owner above the limit.
      if (limit.name == "names" || limit.name == "inline" || limit.name == "attributes") {
        EXPECT_LE(limit.used, limit.limit) << limit.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CoreLimitsModel, ::testing::Range(1U, 9U));

TEST_F(CoreLimits, WhyPathsAreNotFoundCountsInTheLengthOfTheAnswer) {
  Begin({});
  const std::vector<std::string> paths(10'000, "/" + std::string(3'000, 'n'));
  size_t bytes = 0;
  for (const FileLocation& location : core_->ListLocations(paths, false)) {
    ASSERT_TRUE(location.failure.has_value());
    bytes += location.failure->message.size();
  }
  EXPECT_LT(bytes, size_t{10} << 20);
}

}  // namespace
}  // namespace mosa::manager
