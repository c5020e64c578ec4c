// The cost of hints, and hints in older stores: nothing of it stops the manager.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"
#include "manager/core/hint_rules.h"
#include "manager/core/records.h"

namespace mosa::manager {
namespace {

class CoreHintLimits : public CoreFixture {
 protected:
  CoreHintLimits() { Start(kAnna); }

  AdminReply Admin(const Command& command) {
    const Effects effects = Step(command);
    EXPECT_TRUE(effects.admin_reply.has_value());
    return effects.admin_reply.value_or(AdminReply{});
  }
  Reply Get(FileId file, const std::string& name) {
    return Call1(kAnna, GetXattrRequest{file, "user.mosa." + name});
  }
  std::string Xattr(FileId file, const std::string& name) {
    return Ok<GetXattrReply>(kAnna, GetXattrRequest{file, "user.mosa." + name}).value;
  }
  void SetHint(FileId file, const std::string& name, const std::string& value) {
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa." + name, value});
  }
  ErrorReason RefusedHint(FileId file, const std::string& name, const std::string& value) {
    return Refused(kAnna, SetXattrRequest{file, "user.mosa." + name, value});
  }
  std::vector<NodeId> NodesOf(FileId file) {
    return Ok<OpenReply>(kAnna, OpenRequest{file, false, ""}).access.layout.Nodes();
  }
  // Encodes the record as a program of format 1.
  void WriteAsVersion1(FileId file, const std::string& hints) {
    std::string& value = image_.at(InodeKey(file));
    InodeRecord record = *Decode<InodeRecord>(InodeKey(file), value);
    record.hints = hints;
    record.copies.clear();
    record.objects.clear();  // Format 1 stored less about each object.
    value = Encode(record);
    // Format 1 has no copies, generations, streams, or marks of copies that may differ and of
    // abandoned files.
    value.resize(value.size() - 3 * sizeof(uint32_t) - 2 * sizeof(uint64_t) - 2);
    value[0] = 1;
  }
};

// ---- values that are too long

TEST_F(CoreHintLimits, HintsThatDoNotFitAnAttributeAreRefusedAndNotSent) {
  FileId at = kRootFile;
  for (int i = 0; i < 14; ++i) {
    at = Make(kAnna, at, std::string(255, '\1'), FileType::kDirectory);
  }
  // JSON encodes each of these bytes in six, for each hint.
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"placement", "local"}, {"lifetime", "temporary"}, {"strict", "1"}, {"ack", "2"}})
    SetHint(at, name, value);
  const FileId file = Make(kAnna, at, "f");
  const Reply reply = Get(file, "hints");
  ASSERT_TRUE(std::holds_alternative<Failure>(reply));
  EXPECT_EQ(std::get<Failure>(reply).reason, ErrorReason::kArgumentTooBig);
  EXPECT_EQ(Xattr(file, "lifetime"), "temporary");
}

TEST_F(CoreHintLimits, PathsThatNoKernelTakesAreRefused) {
  ASSERT_TRUE(Admin(AddHintRule{"/x*", {{"strict", "1"}}}).status.ok());
  SetHint(kRootFile, "ack", "2");
  std::string path;
  for (int i = 0; i < 3000; ++i) path += "/a";
  EXPECT_EQ(core_->ExplainHints(path).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Admin(SetFileHint{path, "strict", "1"}).status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(core_->ExplainHints(path.substr(0, 2000)).ok());
}

TEST_F(CoreHintLimits, WhatIsRepeatedInAMessageIsShort) {
  const std::string name(size_t{1} << 20, 'n');
  const AdminReply reply = Admin(SetFileHint{"/", name, "1"});
  EXPECT_EQ(reply.status.code(), StatusCode::kInvalidArgument);
  EXPECT_LT(MessageOf(reply.status).size(), 1000U);
  const AdminReply rule = Admin(AddHintRule{"/a", {{name, "1"}}});
  EXPECT_LT(MessageOf(rule.status).size(), 1000U);
}

TEST_F(CoreHintLimits, ADeepDirectoryIsShownByItsEnd) {
  FileId at = kRootFile;
  for (int i = 0; i < 100; ++i) at = Make(kAnna, at, std::string(255, 'd'), FileType::kDirectory);
  SetHint(at, "strict", "1");
  ASSERT_TRUE(Admin(AddHintRule{"/**/f", {{"ack", "2"}}}).status.ok());
  ConfirmAll();
  const FileId file = Make(kAnna, at, "f");
  const std::string hints = Xattr(file, "hints");
  EXPECT_NE(hints.find("\"origin\":\"/.../ddd"), std::string::npos);
  EXPECT_LT(hints.size(), 5000U);
  EXPECT_EQ(Xattr(file, "ack"), "2");  // Rules look at the same.
}

// ---- lists that are too long

TEST_F(CoreHintLimits, ListsThatAreTooLongCountInAnAnswerToo) {
  AddNode("n1");
  AddNode("n2");
  const FileId file = Make(kAnna, kRootFile, "f");
  SetHint(file, "placement", "scatter:1");
  SetHint(file, "chunk_size", "4K");
  const auto bound = Ok<BindReply>(kAnna, BindRequest{file, 4096});
  CommitRequest commit{.file = file, .size_bytes = 64 * kMiB};
  for (const NodeId node : bound.access.layout.Nodes()) commit.nodes.push_back({node, kMiB, 0});
  Ok<AttributesReply>(kAnna, commit);
  const auto locations = core_->ListLocations(std::vector<std::string>(200, "/f"), true);
  ASSERT_TRUE(locations[0].failure.has_value());
  EXPECT_NE(locations[0].failure->message.find("read user.mosa.layout"), std::string::npos);
  EXPECT_EQ(locations[0].nodes.size(), 2U);
  EXPECT_NE(locations[199].failure->message.find("ask for fewer files"), std::string::npos);
}

TEST_F(CoreHintLimits, OnlySoManyRulesMayHaveWildCards) {
  for (size_t i = 0; i < kWildRulesMax; ++i)
    ASSERT_TRUE(Admin(AddHintRule{"/**/x" + std::to_string(i), {{"ack", "2"}}}).status.ok());
  const AdminReply refused = Admin(AddHintRule{"/**/y", {{"ack", "2"}}});
  EXPECT_EQ(refused.status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(MessageOf(refused.status).find("name the paths one by one"), std::string::npos);
  EXPECT_TRUE(Admin(AddHintRule{"/y", {{"ack", "2"}}}).status.ok());
  EXPECT_TRUE(Admin(AddHintRule{"/**/x7", {{"ack", "3"}}}).status.ok());  // In the place of one.
  EXPECT_TRUE(Admin(RemoveHintRule{3}).status.ok());
  EXPECT_TRUE(Admin(AddHintRule{"/**/y", {{"ack", "2"}}}).status.ok());
  const FileId file = Make(kAnna, kRootFile, "y");
  EXPECT_EQ(Xattr(file, "ack"), "2");
}

TEST_F(CoreHintLimits, BroadcastEndsWhereReplicasEnd) {
  const FileId file = Make(kAnna, kRootFile, "f");
  EXPECT_EQ(RefusedHint(file, "pattern", "broadcast:65"), ErrorReason::kInvalid);
  EXPECT_EQ(RefusedHint(file, "replicas", "65"), ErrorReason::kInvalid);
  SetHint(file, "pattern", "broadcast:64");
  EXPECT_EQ(Xattr(file, "replicas"), "64");
}

// ---- older formats

TEST_F(CoreHintLimits, AStoreOfTheFirstFormatLoadsWithoutWhatIsRefusedToday) {
  AddNode("n1");
  const FileId file = Make(kAnna, kRootFile, "f");
  WriteAsVersion1(file, std::string("placement\0sscatter:2000000\0strict\0s1\0", 37));
  Restart();
  Start(kAnna);
  const auto lost = [](const std::string& line) {
    return line.find("has lost hint placement=scatter:2000000") != std::string::npos;
  };
  EXPECT_TRUE(std::any_of(log_.begin(), log_.end(), lost));
  EXPECT_EQ(Xattr(file, "strict"), "1");
  EXPECT_EQ(Refused(kAnna, GetXattrRequest{file, "user.mosa.placement"}),
            ErrorReason::kNoAttribute);
  // Corrupt hints are still an error.
  WriteAsVersion1(file, std::string("placement\0xlocal\0", 17));
  core_ = std::make_unique<ManagerCore>(options_);
  EXPECT_EQ(core_->LoadRecord(InodeKey(file), image_.at(InodeKey(file))).code(),
            StatusCode::kDataLoss);
}

TEST_F(CoreHintLimits, ChunksOfAFileFromBeforeThereWereRunsAreShown) {
  AddNode("n1");
  AddNode("n2");
  const FileId file = Make(kAnna, kRootFile, "f");
  SetHint(file, "chunk_size", "64K");
  const auto bound = Ok<BindReply>(kAnna, BindRequest{file, kMiB});
  CommitRequest commit{.file = file, .size_bytes = 128 * 1024};
  for (const NodeId node : bound.access.layout.Nodes()) commit.nodes.push_back({node, 65536, 0});
  Ok<AttributesReply>(kAnna, commit);
  WriteAsVersion1(file, std::string("chunk_size\0s65536\0placement\0sscatter:1048576\0", 45));
  Restart();
  Start(kAnna);
  const std::string chunks = Xattr(file, "location.chunks");
  EXPECT_TRUE(chunks == "0-0:n1,1-1:n2" || chunks == "0-0:n2,1-1:n1") << chunks;
  EXPECT_NE(Xattr(file, "layout").find("\"chunk_size\":65536,\"run_chunks\":1,"),
            std::string::npos);
  EXPECT_NE(Xattr(file, "hints").find("\"chunk_size\":{\"value\":\"65536\""), std::string::npos);
}

TEST_F(CoreHintLimits, ARuleWithAValueThatIsRefusedTodayActsWithoutIt) {
  const uint64_t rule =
      Admin(AddHintRule{"/*.dat", {{"ack", "2"}, {"pattern", "broadcast:64"}}}).rule;
  image_[RuleKey(rule)] =
      Encode(RuleRecord{"/*.dat", {{"ack", "2"}, {"pattern", "broadcast:500"}}});
  Restart();
  Start(kAnna);
  const FileId file = Make(kAnna, kRootFile, "a.dat");
  EXPECT_EQ(Xattr(file, "ack"), "2");
  EXPECT_EQ(Refused(kAnna, GetXattrRequest{file, "user.mosa.pattern"}), ErrorReason::kNoAttribute);
}

TEST_F(CoreHintLimits, ARulesIdIsNeverThatOfAnother) {
  const uint64_t first = Admin(AddHintRule{"/a", {{"ack", "2"}}}).rule;
  ASSERT_TRUE(Admin(RemoveHintRule{first}).status.ok());
  Restart();
  Start(kAnna);
  EXPECT_GT(Admin(AddHintRule{"/b", {{"ack", "2"}}}).rule, first);
  EXPECT_EQ(Admin(RemoveHintRule{first}).status.code(), StatusCode::kNotFound);
}

// ---- hints that come too late

TEST_F(CoreHintLimits, AReaderThatHasTheObjectOpenElsewhereKeepsAnEmptyFileWhereItIs) {
  Start(kBen, {.node_name = "n2"});
  AddNode("n1");
  const NodeId n2 = AddNode("n2");
  SetHint(kRootFile, "placement", "local");
  MakeRequest make = MakeOf(kBen, kRootFile, "f");
  make.open = make.bind = true;
  const FileId file = Ok<MakeReply>(kBen, make).entry.file;
  Ok<AttributesReply>(kBen, CommitRequest{.file = file, .last_close = true});
  Ok<OpenReply>(kBen, OpenRequest{file, false, ""});  // By its kernel alone, for all we know.
  const SetXattrRequest hint{file, "user.mosa.placement", "node:n1"};
  const Reply first = Call1(kAnna, hint);
  EXPECT_EQ(std::get<Failure>(first).code, StatusCode::kAborted);
  const RequestId freeze = Send(kAnna, {FreezeRequest{file}});
  EXPECT_FALSE(Answered(kAnna, freeze));
  for (const RecallPush& recall : std::exchange(recalls_[kBen], {}))
    Send(kBen, {RecallDoneRequest{recall.recall, true, true}});
  ASSERT_TRUE(Answered(kAnna, freeze));
  EXPECT_EQ(Refused(kAnna, hint), ErrorReason::kBusy);
  EXPECT_EQ(NodesOf(file), std::vector<NodeId>{n2});
  // The freeze ended with the answer. A client that has closed the file does not prevent the
  // change.
  EXPECT_EQ(std::get<Failure>(Call1(kAnna, hint)).code, StatusCode::kAborted);
  Call1(kAnna, FreezeRequest{file});
  Ok<EmptyReply>(kAnna, hint);
  EXPECT_NE(NodesOf(file), std::vector<NodeId>{n2});
}

TEST_F(CoreHintLimits, PeopleWhoSetAHintByPathWaitForReadersElsewhereToo) {
  Start(kBen, {.node_name = "n2"});
  AddNode("n1");
  const NodeId n2 = AddNode("n2");
  SetHint(kRootFile, "placement", "local");
  MakeRequest make = MakeOf(kBen, kRootFile, "f");
  make.open = make.bind = true;
  const FileId file = Ok<MakeReply>(kBen, make).entry.file;
  Ok<AttributesReply>(kBen, CommitRequest{.file = file, .last_close = true});
  Ok<OpenReply>(kBen, OpenRequest{file, false, ""});
  const SetFileHint hint{"/f", "placement", "node:n1"};
  EXPECT_EQ(Admin(hint).status.code(), StatusCode::kAborted);
  EXPECT_EQ(Admin(hint).status.code(), StatusCode::kAborted);  // No client has answered.
  for (const RecallPush& recall : std::exchange(recalls_[kBen], {}))
    Send(kBen, {RecallDoneRequest{recall.recall, true, true}});
  EXPECT_EQ(Admin(hint).status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(NodesOf(file), std::vector<NodeId>{n2});
  EXPECT_EQ(Admin(hint).status.code(), StatusCode::kAborted);
  ConfirmAll();
  EXPECT_TRUE(Admin(hint).status.ok());
}

TEST_F(CoreHintLimits, BytesGoIntoObjectsOnceAHintSaysWhere) {
  AddNode("n1");
  const FileId file = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  SetHint(file, "placement", "local");
  CommitRequest commit{.file = file, .size_bytes = 1};
  commit.inline_data = "x";
  EXPECT_EQ(std::get<Failure>(Call1(kAnna, commit)).code, StatusCode::kFailedPrecondition);
  commit.inline_data = "";
  commit.size_bytes = 0;
  Ok<AttributesReply>(kAnna, commit);
  // A file that is inline already may stay so until it is written to objects.
  const FileId old = Make(kAnna, kRootFile, "old", FileType::kRegular, true);
  Ok<AttributesReply>(kAnna, CommitRequest{.file = old, .size_bytes = 1, .inline_data = "x"});
  SetHint(old, "replicas", "2");
  Ok<AttributesReply>(kAnna, CommitRequest{.file = old, .size_bytes = 2, .inline_data = "xy"});
}

TEST_F(CoreHintLimits, AFlagOfSetxattrHoldsForHintsToo) {
  const FileId file = Make(kAnna, kRootFile, "f");
  const std::string name = "user.mosa.ack";
  EXPECT_EQ(Refused(kAnna, SetXattrRequest{file, name, "2", false, true}),
            ErrorReason::kNoAttribute);
  Ok<EmptyReply>(kAnna, SetXattrRequest{file, name, "2", true, false});
  EXPECT_EQ(Refused(kAnna, SetXattrRequest{file, name, "3", true, false}), ErrorReason::kExists);
  Ok<EmptyReply>(kAnna, SetXattrRequest{file, name, "3", false, true});
  EXPECT_EQ(Xattr(file, "ack"), "3");
}

TEST_F(CoreHintLimits, WhatCanOnlyBeReadIsNotPermittedByPathEither) {
  EXPECT_EQ(Admin(SetFileHint{"/", "location", "n1"}).status.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Admin(SetFileHint{"/", "colour", "n1"}).status.code(), StatusCode::kInvalidArgument);
}

TEST_F(CoreHintLimits, APatternFindsItsGroupWhenThePlacementIsTakenAway) {
  AddNode("n1");
  AddNode("n2");
  const FileId file = Make(kAnna, kRootFile, "f");
  SetHint(file, "placement", "local");
  SetHint(file, "pattern", "reduce");
  SetHint(file, "placement", "stripe");
  Ok<EmptyReply>(kAnna, RemoveXattrRequest{file, "user.mosa.placement"});
  EXPECT_NE(Xattr(file, "layout").find("\"policy\":\"collocate:"), std::string::npos);
}

TEST_F(CoreHintLimits, StrictAsksForNoWidthThatOnlyTheDefaultNames) {
  options_.stripe_width = 8;
  core_ = std::make_unique<ManagerCore>(options_);
  image_.clear();
  Start(kAnna);
  for (const char* name : {"n1", "n2", "n3"}) AddNode(name);
  const FileId file = Make(kAnna, kRootFile, "f");
  SetHint(file, "strict", "1");
  EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{file, kMiB}).access.layout.Nodes().size(), 3U);
  const FileId wide = Make(kAnna, kRootFile, "wide");
  SetHint(wide, "strict", "1");
  SetHint(wide, "stripe_width", "8");
  EXPECT_EQ(Refused(kAnna, BindRequest{wide, kMiB}), ErrorReason::kNoSpace);
}

TEST_F(CoreHintLimits, FilesOfADefaultGroupAreCountedThroughARestart) {
  options_.default_placement = "collocate:all";
  core_ = std::make_unique<ManagerCore>(options_);
  image_.clear();
  Start(kAnna);
  for (const char* name : {"n1", "n2"}) AddNode(name);
  MakeBound(kAnna, kRootFile, "a", kMiB);
  MakeBound(kAnna, kRootFile, "b", kMiB);
  Restart();
  for (const char* name : {"n1", "n2"}) AddNode(name);
  Start(kAnna);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "a", false, false});
  ConfirmAll();
  AdvanceAlive(Seconds(2), {kAnna});
  EXPECT_TRUE(image_.contains("Gall"));
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "b", false, false});
  ConfirmAll();
  AdvanceAlive(Seconds(2), {kAnna});
  EXPECT_FALSE(image_.contains("Gall"));
}

}  // namespace
}  // namespace mosa::manager
