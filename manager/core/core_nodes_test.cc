// Storage nodes that come and go, and what clients learn about the places of bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreNodes : public CoreFixture {
 protected:
  CoreNodes() { Start(kAnna); }
};

TEST_F(CoreNodes, WhatWasCommittedWhileANodeListedItsObjectsIsNotLost) {
  const NodeId n1 = AddNode("n1");
  const FileId gone = MakeBound(kAnna, kRootFile, "gone", 8192);
  const FileId before = MakeBound(kAnna, kRootFile, "before", 8192);
  for (int i = 0; i < 40; ++i) {
    now_ = now_ + kHeartbeatEvery;
    Step(NodeReport{n1, {.used_bytes = 16384, .limit_bytes = 1 << 30}});
    Step(SessionRequest{kAnna, {}});
  }
  Step(NodeStreamLost{n1});
  // The node lists its objects, and serves clients until the list has arrived.
  const FileId after = MakeBound(kAnna, kRootFile, "after", 8192);
  AddNode("n1", 1 << 30, 7, {before});
  EXPECT_EQ(Refused(kAnna, OpenRequest{gone, false, ""}), ErrorReason::kNodeLost);
  Ok<OpenReply>(kAnna, OpenRequest{before, false, ""});
  Ok<OpenReply>(kAnna, OpenRequest{after, false, ""});
}

TEST_F(CoreNodes, WhatWasCommittedAfterARestartIsNotLostByANodeThatComesBackLater) {
  AddNode("n1");
  const FileId before = MakeBound(kAnna, kRootFile, "before", 8192);
  now_ = now_ + Seconds(2);
  Restart();
  Start(kAnna);
  const FileId after = MakeBound(kAnna, kRootFile, "after", 8192);
  AddNode("n1", 1 << 30, 7, {before});
  Ok<OpenReply>(kAnna, OpenRequest{before, false, ""});
  Ok<OpenReply>(kAnna, OpenRequest{after, false, ""});
}

// The mount of a program that has mapped the file may have been killed.
TEST_F(CoreNodes, StoresThatANodeAloneKnowsOfAreSeenByWhoeverHasReadTheFile) {
  const NodeId n1 = AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  const NodeId n2 = AddNode("n2");
  const Attributes before = Ok<OpenReply>(kAnna, OpenRequest{f, false, ""}).attributes;
  now_ = now_ + Seconds(1);
  for (const FileId file : {f, FileId{123'456}, kRootFile}) {
    Step(NodeReport{n1, {.used_bytes = 8192, .limit_bytes = 1 << 30, .untold_objects = {file}}});
  }
  const Attributes after = Ok<AttributesReply>(kAnna, GetAttributesRequest{f}).attributes;
  EXPECT_EQ(after.data_version, before.data_version + 1);
  EXPECT_EQ(after.modify_time, now_);
  EXPECT_EQ(after.size_bytes, before.size_bytes);
  Step(NodeReport{n2, {.used_bytes = 0, .limit_bytes = 1 << 30, .untold_objects = {f}}});
  EXPECT_EQ(Ok<AttributesReply>(kAnna, GetAttributesRequest{f}).attributes.data_version,
            after.data_version)
      << "its bytes are not there";
}

// A drop order could arrive after the next binding and remove the new bytes.
TEST_F(CoreNodes, AHintThatUnbindsAFileDropsItsObjectsOnlyWithTheFile) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  Ok<EmptyReply>(kAnna, SetXattrRequest{f, "user.mosa.placement", "local", false, false});
  EXPECT_TRUE(dropped_.empty());
  Restart();
  Start(kAnna);
  AddNode("n1");
  AddNode("n2");
  EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{f, 1}).access.layout.Nodes(), std::vector<NodeId>{n1});
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 0});
  EXPECT_TRUE(dropped_.empty());
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "f", false, false});
  EXPECT_EQ(dropped_[n1], std::vector<FileId>{f});
  EXPECT_EQ(dropped_[n2], std::vector<FileId>{f});
}

TEST_F(CoreNodes, AReplacedSegmentsObjectsAreDroppedWithTheFile) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<EmptyReply>(kAnna, SetXattrRequest{f, "user.mosa.placement", "local", false, false});
  ASSERT_EQ(Ok<BindReply>(kAnna, BindRequest{f, 1}).access.layout.Nodes(), std::vector<NodeId>{n1});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  const auto spilled = Ok<BindReply>(kAnna, RelocateRequest{f, 0, UINT64_MAX, {n1}});
  ASSERT_EQ(spilled.access.layout.Nodes(), std::vector<NodeId>{n2});
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "f", false, false});
  EXPECT_EQ(dropped_[n1], std::vector<FileId>{f});
  EXPECT_EQ(dropped_[n2], std::vector<FileId>{f});
}

// A client could not read a longer value, and would ask for it again and again.
TEST_F(CoreNodes, WhatIsTooLongForAnAttributeIsRefused) {
  for (int i = 0; i < 300; ++i) AddNode(fmt::format("{:0>250}", i));
  const FileId f = MakeBound(kAnna, kRootFile, "f", 4096);
  for (const char* name : {"user.mosa.layout", "user.mosa.location"})
    EXPECT_EQ(Refused(kAnna, GetXattrRequest{f, name}), ErrorReason::kArgumentTooBig) << name;
}

TEST_F(CoreNodes, ARefusalNamesOnlySomeOfManyFullNodes) {
  for (int i = 0; i < 200; ++i) AddNode(fmt::format("{:0>250}", i), 0);
  const FileId f = Make(kAnna, kRootFile, "f");
  const Reply reply = Call1(kAnna, BindRequest{f, 4096});
  const auto& failure = std::get<Failure>(reply);
  EXPECT_EQ(failure.reason, ErrorReason::kNoSpace);
  EXPECT_LT(failure.message.size(), 4096U);
  EXPECT_NE(failure.message.find("and so on with 19"), std::string::npos) << failure.message;
}

}  // namespace
}  // namespace mosa::manager
