// What users with their own certificates may change.
#include <gtest/gtest.h>

#include "manager/core/core_fixture.h"
#include "manager/core/hint_rules.h"

namespace mosa::manager {
namespace {

class CoreOwners : public CoreFixture {
 protected:
  CoreOwners() {
    Start(kAnna);
    AddNode("n1");
  }
  AdminReply Admin(const Command& command) {
    const Effects effects = Step(command);
    EXPECT_TRUE(effects.admin_reply.has_value());
    return effects.admin_reply.value_or(AdminReply{});
  }
  StatusCode CodeOf(const Command& command) { return Admin(command).status.code(); }
  FileId MakeAs(uint32_t uid, const std::string& name) {
    MakeRequest make = MakeOf(kAnna, kRootFile, name);
    make.uid = uid;
    return Ok<MakeReply>(kAnna, make).entry.file;
  }
  std::string HintOf(const std::string& path, const std::string& name) {
    const auto explained = core_->ExplainHints(path);
    for (const ExplainedHint& hint : explained->hints)
      if (hint.name == name) return hint.value;
    return "";
  }
};

TEST_F(CoreOwners, AUsersRuleIsForWhatHeMakes) {
  ASSERT_EQ(CodeOf(AddHintRule{"/*", {{"replicas", "3"}}, kAlice}), StatusCode::kOk);
  MakeAs(kAlice, "hers");
  MakeAs(kBob, "his");
  EXPECT_EQ(HintOf("/hers", "replicas"), "3");
  EXPECT_NE(HintOf("/his", "replicas"), "3");
}

TEST_F(CoreOwners, NobodyElseChangesAUsersRuleButAnAdmin) {
  const AdminReply rule = Admin(AddHintRule{"/*", {{"replicas", "3"}}, kAlice});
  EXPECT_EQ(CodeOf(RemoveHintRule{rule.rule, kBob}), StatusCode::kPermissionDenied);
  EXPECT_EQ(core_->ListHintRules().at(0).owner, kAlice);
  const AdminReply everybodys = Admin(AddHintRule{"/*", {{"replicas", "4"}}, {}});
  EXPECT_EQ(CodeOf(RemoveHintRule{everybodys.rule, kAlice}), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(RemoveHintRule{rule.rule, {}}), StatusCode::kOk);
}

TEST_F(CoreOwners, EachUserMayHaveARuleWithTheSameGlob) {
  ASSERT_EQ(CodeOf(AddHintRule{"/*", {{"replicas", "3"}}, kAlice}), StatusCode::kOk);
  ASSERT_EQ(CodeOf(AddHintRule{"/*", {{"replicas", "2"}}, kBob}), StatusCode::kOk);
  ASSERT_EQ(CodeOf(AddHintRule{"/*", {{"replicas", "4"}}, {}}), StatusCode::kOk);
  const AdminReply again = Admin(AddHintRule{"/*", {{"replicas", "5"}}, kBob});
  EXPECT_TRUE(again.status.ok());
  EXPECT_EQ(core_->ListHintRules().size(), 3U);
  Restart();
  Start(kAnna);
  AddNode("n1");
  ASSERT_EQ(core_->ListHintRules().size(), 3U);
  MakeAs(kAlice, "hers");
  MakeAs(kBob, "his");
  MakeAs(1002, "another");
  EXPECT_EQ(HintOf("/hers", "replicas"), "3");
  EXPECT_EQ(HintOf("/his", "replicas"), "5");
  EXPECT_EQ(HintOf("/another", "replicas"), "4");
}

TEST_F(CoreOwners, TwoRulesOfOneOwnerWithOneGlobAreDamage) {
  Admin(AddHintRule{"/*", {{"replicas", "3"}}, kAlice});
  Admin(AddHintRule{"/*", {{"replicas", "2"}}, {}});
  std::erase_if(image_, [](const auto& entry) { return entry.first[0] == 'O'; });
  core_ = std::make_unique<ManagerCore>(options_);
  for (const auto& [key, value] : image_) ASSERT_TRUE(core_->LoadRecord(key, value).ok());
  EXPECT_EQ(core_->FinishLoad(now_).code(), StatusCode::kDataLoss);
}

TEST_F(CoreOwners, OwnersOutliveARestart) {
  const AdminReply rule = Admin(AddHintRule{"/*", {{"replicas", "3"}}, kAlice});
  Admin(BeginWorkflow{"run", kAlice});
  Restart();
  Start(kAnna);
  AddNode("n1");
  EXPECT_EQ(core_->ListHintRules().at(0).owner, kAlice);
  EXPECT_EQ(CodeOf(RemoveHintRule{rule.rule, kBob}), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(EndWorkflow{"run", kBob}), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(RemoveHintRule{rule.rule, kAlice}), StatusCode::kOk);
  EXPECT_EQ(CodeOf(EndWorkflow{"run", kAlice}), StatusCode::kOk);
  for (const auto& [key, value] : image_) EXPECT_NE(key[0], 'O') << "an owner of nothing is left";
}

TEST_F(CoreOwners, OneUserDoesNotTakeAllRules) {
  for (size_t i = 0; i < kWildRulesPerOwnerMax; ++i)
    ASSERT_EQ(CodeOf(AddHintRule{"/*" + std::to_string(i), {{"strict", "1"}}, kAlice}),
              StatusCode::kOk);
  EXPECT_EQ(CodeOf(AddHintRule{"/*x", {{"strict", "1"}}, kAlice}), StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(AddHintRule{"/*x", {{"strict", "1"}}, kBob}), StatusCode::kOk);
  EXPECT_EQ(CodeOf(RemoveHintRule{core_->ListHintRules().at(0).id, kAlice}), StatusCode::kOk);
  EXPECT_EQ(CodeOf(AddHintRule{"/*y", {{"strict", "1"}}, kAlice}), StatusCode::kOk);
}

TEST_F(CoreOwners, HintsAreGivenToOnesOwnFiles) {
  MakeAs(kAlice, "hers");
  EXPECT_EQ(CodeOf(SetFileHint{"/hers", "replicas", "2", kBob}), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(SetFileHint{"/", "replicas", "2", kAlice}), StatusCode::kPermissionDenied);
  // The mount makes files in the root without asking, so it must let go first.
  if (CodeOf(SetFileHint{"/hers", "replicas", "2", kAlice}) == StatusCode::kAborted) ConfirmAll();
  EXPECT_EQ(CodeOf(SetFileHint{"/hers", "replicas", "2", kAlice}), StatusCode::kOk);
  EXPECT_EQ(HintOf("/hers", "replicas"), "2");
}

TEST_F(CoreOwners, TheEndOfAUsersRunTakesHisFilesAlone) {
  Admin(BeginWorkflow{"run", kAlice});
  for (const auto& [uid, name] : {std::pair(kAlice, "hers"), std::pair(kBob, "his")}) {
    MakeRequest make = MakeOf(kAnna, kRootFile, name, FileType::kRegular, true);
    make.uid = uid;
    make.task = "run/t";
    const FileId file = Ok<MakeReply>(kAnna, make).entry.file;
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa.lifetime", "temporary"});
    Ok<AttributesReply>(kAnna, CommitRequest{.file = file, .last_close = true});
  }
  EXPECT_EQ(CodeOf(EndTask{"run/t", true, kBob}), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(EndWorkflow{"run", kAlice}), StatusCode::kOk);
  ConfirmAll();
  EXPECT_FALSE(core_->GetFileStatus("/hers").ok());
  EXPECT_TRUE(core_->GetFileStatus("/his").ok());
}

TEST_F(CoreOwners, OnlyOnesOwnFilesAreCalledStaged) {
  const FileId file = MakeAs(kAlice, "hers");
  EXPECT_EQ(CodeOf(MarkStaged{{{file, 1}}, kBob}), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(MarkStaged{{{file, 1}}, kAlice}), StatusCode::kOk);
}

}  // namespace
}  // namespace mosa::manager
