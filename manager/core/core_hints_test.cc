// Hints with effects: rules, groups and their anchors, strict files, origins.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"
#include "manager/core/left_hints.h"

namespace mosa::manager {
namespace {

class CoreHints : public CoreFixture {
 protected:
  CoreHints() { Start(kAnna); }

  AdminReply Admin(const Command& command) {
    const Effects effects = Step(command);
    EXPECT_TRUE(effects.admin_reply.has_value());
    return effects.admin_reply.value_or(AdminReply{});
  }
  uint64_t AddRule(const std::string& glob, const std::vector<HintValue>& hints) {
    AdminReply reply = Admin(AddHintRule{glob, hints});
    if (!reply.settled) {
      ConfirmAll();
      reply = Admin(AddHintRule{glob, hints});
    }
    EXPECT_TRUE(reply.status.ok() && reply.settled) << reply.status;
    return reply.rule;
  }
  std::string Xattr(FileId file, const std::string& name) {
    return Ok<GetXattrReply>(kAnna, GetXattrRequest{file, "user.mosa." + name}).value;
  }
  void SetHint(FileId file, const std::string& name, const std::string& value) {
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa." + name, value});
  }
  // Returns "value<source:origin" of one hint at a path.
  std::string Explained(const std::string& path, const std::string& name) {
    const auto explanation = core_->ExplainHints(path);
    if (!explanation.ok()) return MessageOf(explanation.status());
    for (const ExplainedHint& hint : explanation->hints) {
      if (hint.name == name)
        return hint.value + "<" + std::to_string(static_cast<int>(hint.source)) + ":" + hint.origin;
    }
    return "";
  }
  // Makes and writes a file in `parent` (1 MiB on each node). Returns its nodes.
  std::vector<NodeId> WriteFile(FileId parent, const std::string& name) {
    const FileId file = MakeBound(kAnna, parent, name, kMiB);
    return LayoutOf(file).Nodes();
  }
  Layout LayoutOf(FileId file) {
    return Ok<OpenReply>(kAnna, OpenRequest{file, false, ""}).access.layout;
  }
  void SetUsed(NodeId node, uint64_t used_bytes, uint64_t limit_bytes = uint64_t{1} << 30) {
    for (int i = 0; i < 2; ++i)
      Step(NodeReport{node, {.used_bytes = used_bytes, .limit_bytes = limit_bytes}});
  }
};

// ---- hints that a file leaves to its name

TEST_F(CoreHints, ATaggedFileThatIsRemovedUnwrittenLeavesItsHintsToTheNextOfItsName) {
  AddNode("n1");
  const NodeId n2 = AddNode("n2");
  const auto tag = [&](const std::string& name) {
    const FileId file = Make(kAnna, kRootFile, name);
    SetHint(file, "pattern", "pipeline");
    SetHint(file, "placement", "node:n2");
  };
  const auto remove = [&](const std::string& name) {
    Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, name});
  };
  tag("a");
  remove("a");
  MakeRequest make = MakeOf(kAnna, kRootFile, "a");
  make.open = make.bind = true;
  const auto made = Ok<MakeReply>(kAnna, make);
  EXPECT_EQ(made.access->layout.Nodes(), std::vector<NodeId>{n2});
  EXPECT_EQ(Explained("/a", "pattern"), "pipeline<5:");
  // Another name, a second time, a written file, another user, and after a minute: none.
  EXPECT_EQ(Explained("/a", "placement"), "node:n2<5:");
  Make(kAnna, kRootFile, "b");
  EXPECT_EQ(Explained("/b", "pattern"), "default<1:");
  tag("c");
  remove("c");
  Make(kAnna, kRootFile, "c");
  EXPECT_EQ(Explained("/c", "pattern"), "pipeline<5:");
  remove("c");
  SetHint(MakeBound(kAnna, kRootFile, "d", kMiB), "lifetime", "keep");
  remove("d");
  Make(kAnna, kRootFile, "d");
  EXPECT_EQ(Explained("/d", "lifetime"), Explained("/b", "lifetime"));
  tag("e");
  remove("e");
  MakeRequest other = MakeOf(kAnna, kRootFile, "e");
  other.uid = 77;
  Ok<MakeReply>(kAnna, other);
  EXPECT_EQ(Explained("/e", "pattern"), "default<1:");
  tag("f");
  remove("f");
  AdvanceAlive(LeftHints::kKeptFor, {kAnna}, {});
  Make(kAnna, kRootFile, "f");
  EXPECT_EQ(Explained("/f", "pattern"), "default<1:");
}

TEST(LeftHints, HoldsSoManyNames) {
  LeftHints left;
  const auto number = static_cast<int>(LeftHints::kNamesMax);
  for (int i = 0; i < number + 10; ++i)
    left.Leave(kRootFile, std::to_string(i), 0, {{"pattern", {"pipeline"}}}, Time());
  EXPECT_TRUE(left.Take(kRootFile, "5", 0, Time()).empty());
  EXPECT_FALSE(left.Take(kRootFile, std::to_string(number), 0, Time()).empty());
  EXPECT_TRUE(left.Take(kRootFile, std::to_string(number), 0, Time()).empty());
}

// ---- rules

TEST_F(CoreHints, ARuleActsOnWhatIsMadeAfterItAndInNoFurtherCall) {
  const NodeId n1 = AddNode("n1");
  AddNode("n2");
  const FileId before = Make(kAnna, kRootFile, "a.dat");
  AddRule("/*.dat", {{"pattern", "pipeline"}});
  MakeRequest make = MakeOf(kAnna, kRootFile, "b.dat");
  make.open = make.bind = true;
  const auto made = Ok<MakeReply>(kAnna, make);
  EXPECT_EQ(made.access->layout.Nodes(), std::vector<NodeId>{n1});
  EXPECT_EQ(made.access->inline_bytes_max, 0U);
  EXPECT_EQ(Explained("/b.dat", "placement"), "local<2:pipeline");
  EXPECT_EQ(Explained("/b.dat", "pattern"), "pipeline<4:/*.dat");
  EXPECT_EQ(Explained("/a.dat", "pattern"), "default<1:");
  EXPECT_EQ(Xattr(made.entry.file, "placement"), "local");
  EXPECT_EQ(Refused(kAnna, GetXattrRequest{before, "user.mosa.placement"}),
            ErrorReason::kNoAttribute);
}

TEST_F(CoreHints, RulesSurviveARestartAndKeepTheirOrder) {
  AddNode("n1");
  const uint64_t first = AddRule("/a*", {{"chunk_size", "64K"}});
  const uint64_t second = AddRule("/*a", {{"chunk_size", "128K"}});
  EXPECT_LT(first, second);
  EXPECT_EQ(AddRule("/a*", {{"chunk_size", "64K"}}), first);  // As it is already.
  Restart();
  Start(kAnna);
  ASSERT_EQ(core_->ListHintRules().size(), 2U);
  EXPECT_EQ(Explained("/aa", "chunk_size"), "131072<4:/*a");
  // Replaces the first rule, and is later than the second.
  const uint64_t third = AddRule("/a*", {{"chunk_size", "256K"}});
  EXPECT_GT(third, second);
  EXPECT_EQ(Explained("/aa", "chunk_size"), "262144<4:/a*");
  EXPECT_TRUE(Admin(RemoveHintRule{third}).status.ok());
  EXPECT_EQ(Admin(RemoveHintRule{third}).status.code(), StatusCode::kNotFound);
  Restart();
  Start(kAnna);
  EXPECT_EQ(core_->ListHintRules().size(), 1U);
  EXPECT_EQ(Explained("/aa", "chunk_size"), "131072<4:/*a");
  EXPECT_EQ(Admin(AddHintRule{"x", {{"strict", "1"}}}).status.code(), StatusCode::kInvalidArgument);
}

TEST_F(CoreHints, AFilesOwnHintWinsOverARuleAndThatOverItsDirectory) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  SetHint(d, "stripe_width", "2");
  SetHint(d, "lifetime", "temporary");
  AddRule("/d/*", {{"stripe_width", "3"}, {"ack", "2"}});
  const FileId f = Make(kAnna, d, "f");
  EXPECT_EQ(Explained("/d/f", "stripe_width"), "3<4:/d/*");
  EXPECT_EQ(Explained("/d/f", "lifetime"), "temporary<3:/d");
  SetHint(f, "stripe_width", "4");
  EXPECT_EQ(Explained("/d/f", "stripe_width"), "4<5:");
  EXPECT_EQ(Explained("/d/f", "ack"), "2<4:/d/*");
  // Paths that do not exist, below directories that do not exist either.
  AddRule("/d/new", {{"replicas", "2"}});
  EXPECT_EQ(Explained("/d/new/x/y", "replicas"), "2<3:/d/new");
  EXPECT_EQ(Explained("/d/new/x/y", "lifetime"), "temporary<3:/d");
  EXPECT_FALSE(core_->ExplainHints("/d/new/x/y")->exists);
  EXPECT_EQ(Explained("/d/f/g", "ack"), "'/d/f' is not a directory");
  EXPECT_FALSE(core_->ExplainHints("relative").ok());
  EXPECT_FALSE(core_->ExplainHints("/d/" + std::string(256, 'n')).ok());
}

TEST_F(CoreHints, WhereARuleMaySettleWhatIsMadeNobodyMakesFilesWithoutAsking) {
  const auto made = Ok<MakeReply>(kAnna, MakeOf(kAnna, kRootFile, "d", FileType::kDirectory));
  ASSERT_TRUE(made.delegated);
  const FileId d = made.entry.file;
  const AdminReply reply = Admin(AddHintRule{"/d/*.dat", {{"placement", "local"}}});
  EXPECT_TRUE(reply.status.ok());
  EXPECT_FALSE(reply.settled);
  ASSERT_EQ(recalls_[kAnna].size(), 1U);
  EXPECT_EQ(recalls_[kAnna][0].file, d);
  Confirm(kAnna);
  EXPECT_TRUE(Admin(AddHintRule{"/d/*.dat", {{"placement", "local"}}}).settled);
  AdvanceAlive(Seconds(60), {kAnna});
  EXPECT_FALSE(Ok<MakeReply>(kAnna, MakeOf(kAnna, d, "f")).delegated);
  // Rules that allow the file to be inline do not matter.
  AddRule("/e/*.dat", {{"chunk_size", "64K"}});
  EXPECT_TRUE(Ok<MakeReply>(kAnna, MakeOf(kAnna, kRootFile, "e", FileType::kDirectory)).delegated);
}

TEST_F(CoreHints, ADirectoryThatIsRenamedToWhereRulesMatchIsNotDelegatedAnyMore) {
  AddRule("/ruled/*", {{"placement", "local"}});
  const auto made = Ok<MakeReply>(kAnna, MakeOf(kAnna, kRootFile, "d", FileType::kDirectory));
  ASSERT_TRUE(made.delegated);
  Ok<RenameReply>(kAnna, RenameRequest{kRootFile, "d", kRootFile, "ruled"});
  const auto recalled = [&] {
    return std::any_of(recalls_[kAnna].begin(), recalls_[kAnna].end(), [&](const RecallPush& push) {
      return push.file == made.entry.file && push.kind == RecallKind::kEntries;
    });
  };
  EXPECT_TRUE(recalled());
  Confirm(kAnna);
  Make(kAnna, made.entry.file, "f");
  EXPECT_EQ(Explained("/ruled/f", "placement"), "local<4:/ruled/*");
}

// ---- groups

TEST_F(CoreHints, FilesOfAGroupShareAnAnchorThatSurvivesARestart) {
  for (const char* name : {"n1", "n2", "n3", "n4"}) AddNode(name);
  AddRule("/**", {{"placement", "collocate:g"}});
  const auto anchor = WriteFile(kRootFile, "a");
  ASSERT_EQ(anchor.size(), 1U);
  EXPECT_EQ(WriteFile(kRootFile, "b"), anchor);
  Restart();
  for (const char* name : {"n1", "n2", "n3", "n4"}) AddNode(name);
  Start(kAnna);
  // Another node has more room now, but the anchor stays.
  SetUsed(anchor[0], 900 * kMiB);
  EXPECT_EQ(WriteFile(kRootFile, "c"), anchor);
}

TEST_F(CoreHints, AFullSilentOrLostAnchorIsLeftAndTheNextOneIsRemembered) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  AddRule("/*", {{"placement", "collocate:g"}});
  SetUsed(n2, 600 * kMiB);
  EXPECT_EQ(WriteFile(kRootFile, "a"), std::vector<NodeId>{n1});
  SetUsed(n1, 1024 * kMiB);
  EXPECT_EQ(WriteFile(kRootFile, "b"), std::vector<NodeId>{n2});
  SetUsed(n1, 0);
  EXPECT_EQ(WriteFile(kRootFile, "c"), std::vector<NodeId>{n2});
  Restart();
  AddNode("n1");
  AddNode("n2");
  Start(kAnna);
  EXPECT_EQ(WriteFile(kRootFile, "d"), std::vector<NodeId>{n2});
  AdvanceAlive(Seconds(7), {kAnna}, {n1});  // n2 falls silent.
  EXPECT_EQ(WriteFile(kRootFile, "e"), std::vector<NodeId>{n1});
}

TEST_F(CoreHints, AFileThatOutgrowsTheAnchorSpillsByTheDefaultAndTheGroupMovesOn) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  AddRule("/*", {{"placement", "collocate:g"}});
  SetUsed(n2, 600 * kMiB);
  const FileId a = MakeBound(kAnna, kRootFile, "a", kMiB);
  SetUsed(n1, 800 * kMiB);
  Ok<BindReply>(kAnna, FreezeRequest{a});
  const auto moved = Ok<BindReply>(kAnna, RelocateRequest{a, kMiB, UINT64_MAX, {n1}});
  EXPECT_EQ(moved.access.layout.segments.at(1).nodes, std::vector<NodeId>{n2});
  EXPECT_NE(moved.access.layout.reason.find("no room on n1"), std::string::npos);
  EXPECT_EQ(WriteFile(kRootFile, "b"), std::vector<NodeId>{n2});
}

TEST_F(CoreHints, AGroupIsForgottenWithItsLastFile) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  AddRule("/*", {{"placement", "collocate:g"}});
  SetUsed(n2, 600 * kMiB);
  EXPECT_EQ(WriteFile(kRootFile, "a"), std::vector<NodeId>{n1});
  EXPECT_TRUE(image_.contains("Gg"));
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "a", false, false});
  ConfirmAll();
  AdvanceAlive(Seconds(2), {kAnna}, {n1, n2});
  EXPECT_FALSE(image_.contains("Gg"));
  SetUsed(n1, 900 * kMiB);
  EXPECT_EQ(WriteFile(kRootFile, "a"), std::vector<NodeId>{n2});
}

TEST_F(CoreHints, ReduceGathersTheFilesOfADirectory) {
  for (const char* name : {"n1", "n2", "n3", "n4"}) AddNode(name);
  std::set<std::vector<NodeId>> anchors;
  for (int i = 0; i < 4; ++i) {
    const FileId d = Make(kAnna, kRootFile, "d" + std::to_string(i), FileType::kDirectory);
    SetHint(d, "pattern", "reduce");
    const auto anchor = WriteFile(d, "a");
    EXPECT_EQ(WriteFile(d, "b"), anchor);
    anchors.insert(anchor);
    // Also for a hint on the file itself, once it is closed and before it has bytes.
    const FileId e = Make(kAnna, d, "e");
    SetHint(e, "pattern", "default");
    SetHint(e, "pattern", "reduce");
    EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{e, kMiB}).access.layout.Nodes(), anchor);
  }
  EXPECT_EQ(anchors.size(), 4U);  // Nodes with equal room take turns.
}

// ---- the other policies

TEST_F(CoreHints, ScatterPutsRunsOfChunksOnOneNodeAfterAnother) {
  AddNode("n1");
  AddNode("n2");
  const FileId f = Make(kAnna, kRootFile, "f");
  SetHint(f, "placement", "scatter:4");
  SetHint(f, "chunk_size", "64K");
  const auto bound = Ok<BindReply>(kAnna, BindRequest{f, kMiB});
  EXPECT_EQ(bound.access.layout.chunk_bytes, 4U * 65536);
  CommitRequest commit{.file = f, .size_bytes = kMiB};
  for (const NodeId node : bound.access.layout.Nodes()) commit.nodes.push_back({node, kMiB / 2, 0});
  Ok<AttributesReply>(kAnna, commit);
  const std::string chunks = Xattr(f, "location.chunks");
  EXPECT_TRUE(chunks == "0-3:n1,4-7:n2,8-11:n1,12-15:n2" ||
              chunks == "0-3:n2,4-7:n1,8-11:n2,12-15:n1")
      << chunks;
  EXPECT_NE(Xattr(f, "layout").find("\"chunk_size\":65536,\"run_chunks\":4"), std::string::npos);
  EXPECT_NE(Xattr(f, "layout").find("\"policy\":\"scatter:4\""), std::string::npos);
  // Setting the current value again is allowed.
  SetHint(f, "chunk_size", "64K");
  EXPECT_EQ(Refused(kAnna, SetXattrRequest{f, "user.mosa.chunk_size", "256K"}),
            ErrorReason::kNotEmpty);
}

TEST_F(CoreHints, AStrictFileFailsRatherThanGoElsewhere) {
  const NodeId n1 = AddNode("n1");
  AddNode("n2");
  const FileId f = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  SetHint(f, "placement", "node:n1");
  SetHint(f, "strict", "1");
  Ok<BindReply>(kAnna, BindRequest{f, kMiB});
  Ok<BindReply>(kAnna, FreezeRequest{f});
  const Reply reply = Call1(kAnna, RelocateRequest{f, kMiB, UINT64_MAX, {n1}});
  ASSERT_TRUE(std::holds_alternative<Failure>(reply));
  EXPECT_EQ(std::get<Failure>(reply).reason, ErrorReason::kNoSpace);
  EXPECT_NE(std::get<Failure>(reply).message.find("has strict=1 and cannot continue on another "
                                                  "node: no free space on n1; free space there"),
            std::string::npos);
  // The freeze has ended, so the file may become less strict.
  SetHint(f, "strict", "0");
  Ok<BindReply>(kAnna, FreezeRequest{f});
  Ok<BindReply>(kAnna, RelocateRequest{f, kMiB, UINT64_MAX, {n1}});
  const FileId g = Make(kAnna, kRootFile, "g");
  SetHint(g, "placement", "node:n7");
  SetHint(g, "strict", "1");
  EXPECT_EQ(Refused(kAnna, BindRequest{g, kMiB}), ErrorReason::kNoSpace);
}

// A name is no error when it is set: the node may join before the file is placed.
TEST_F(CoreHints, AFileForANodeThatIsUnknownGoesElsewhereAndSaysWhy) {
  AddNode("n1");
  const FileId f = Make(kAnna, kRootFile, "f");
  const FileId g = Make(kAnna, kRootFile, "g");
  for (const FileId file : {f, g}) SetHint(file, "placement", "node:n9");
  EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{f, kMiB}).access.layout.reason,
            "node: there is no node n9; stripe: 1 of 1 nodes, from n1 by the file's seed");
  EXPECT_NE(Xattr(f, "layout").find("there is no node n9"), std::string::npos);
  const NodeId n9 = AddNode("n9");
  EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{g, kMiB}).access.layout.Nodes(),
            std::vector<NodeId>{n9});
}

// ---- hints that come in time

TEST_F(CoreHints, AnEmptyFileThatIsBoundAlreadyIsLaidOutAnew) {
  Start(kBen, {.node_name = "n2"});
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  AddRule("/*", {{"placement", "local"}});
  MakeRequest make = MakeOf(kAnna, kRootFile, "f");
  make.open = make.bind = true;
  const FileId f = Ok<MakeReply>(kAnna, make).entry.file;
  EXPECT_EQ(
      Refused(kAnna, SetXattrRequest{f, "user.mosa.placement", "node:n2", false, false, true}),
      ErrorReason::kBusy);
  EXPECT_EQ(Refused(kBen, SetXattrRequest{f, "user.mosa.placement", "node:n2"}),
            ErrorReason::kBusy);
  Ok<EmptyReply>(kBen, SetXattrRequest{f, "user.mosa.placement", "local"});  // As it is.
  SetHint(f, "lifetime", "temporary");  // Has nothing to do with where it is.
  EXPECT_EQ(LayoutOf(f).Nodes(), std::vector<NodeId>{n1});
  SetHint(f, "placement", "node:n2");
  EXPECT_EQ(Ok<BindReply>(kAnna, BindRequest{f, kMiB}).access.layout.Nodes(),
            std::vector<NodeId>{n2});
}

// ---- hints by path

TEST_F(CoreHints, HintsAreSetByPathOnceMountsHaveLetGo) {
  const auto made = Ok<MakeReply>(kAnna, MakeOf(kAnna, kRootFile, "d", FileType::kDirectory));
  ASSERT_TRUE(made.delegated);
  EXPECT_EQ(Admin(SetFileHint{"/d", "placement", "local"}).status.code(), StatusCode::kAborted);
  Confirm(kAnna);
  EXPECT_TRUE(Admin(SetFileHint{"/d", "placement", "local"}).status.ok());
  EXPECT_EQ(Explained("/d/x", "placement"), "local<3:/d");
  EXPECT_EQ(Admin(SetFileHint{"/d", "placement", "far"}).status.code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Admin(SetFileHint{"/d", "colour", "blue"}).status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Admin(SetFileHint{"/x", "strict", "1"}).status.code(), StatusCode::kNotFound);
  EXPECT_EQ(Admin(SetFileHint{"", "strict", "1"}).status.code(), StatusCode::kInvalidArgument);
}

TEST_F(CoreHints, NothingIsChangedByPathWhileMountsAreAwaitedAfterARestart) {
  Restart();
  EXPECT_EQ(Admin(AddHintRule{"/a", {{"strict", "1"}}}).status.code(), StatusCode::kAborted);
  EXPECT_EQ(Admin(RemoveHintRule{1}).status.code(), StatusCode::kAborted);
  EXPECT_EQ(Admin(SetFileHint{"/", "strict", "1"}).status.code(), StatusCode::kAborted);
  Start(kAnna);
  EXPECT_TRUE(Admin(SetFileHint{"/", "strict", "1"}).status.ok());
}

TEST_F(CoreHints, LocationsOfManyPathsComeInTheirOrderAndFailOneByOne) {
  AddNode("n1");
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  MakeBound(kAnna, d, "f", kMiB);
  const auto locations = core_->ListLocations({"/d/f", "/d/g", "/d", "/d/./f", "no"}, true);
  ASSERT_EQ(locations.size(), 5U);
  EXPECT_EQ(locations[0].nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(locations[0].chunks, "0-0:n1");
  EXPECT_EQ(locations[0].size_bytes, kMiB);
  EXPECT_EQ(locations[1].failure->code, StatusCode::kNotFound);
  EXPECT_EQ(locations[1].failure->message, "there is no '/d/g'");
  EXPECT_EQ(locations[2].failure->message, "'/d' is not a regular file");
  EXPECT_EQ(locations[3], locations[0]);
  EXPECT_EQ(locations[4].failure->code, StatusCode::kInvalidArgument);
  EXPECT_TRUE(core_->ListLocations({"/d/f"}, false)[0].chunks.empty());
}

TEST_F(CoreHints, JsonIsTextWhateverBytesAGroupHas) {
  const FileId f = Make(kAnna, kRootFile, "f");
  SetHint(f, "placement", "collocate:\xc3\xa4\xff\"");
  EXPECT_NE(Xattr(f, "hints").find("\"collocate:\xc3\xa4\\u00ff\\\"\""), std::string::npos);
}

}  // namespace
}  // namespace mosa::manager
