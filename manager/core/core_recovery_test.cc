// A manager that may have forgotten acknowledged changes, and nodes that still have the bytes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"
#include "manager/core/recovery.h"

namespace mosa::manager {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Ids = std::vector<FileId>;

class CoreRecovery : public CoreFixture {
 protected:
  CoreRecovery() { Start(kAnna); }

  // The machine crashes: changes after `image` was taken are lost.
  void Crash(std::map<std::string, std::string> image) {
    image_ = std::move(image);
    options_.may_have_forgotten = true;
    Restart();
    options_.may_have_forgotten = false;
  }
  NodeId Register(const std::string& name, const Ids& objects, std::vector<HeldSize> sizes = {},
                  std::vector<AsideObject> aside = {}) {
    orders_.clear();
    NodeRegistration registration{.name = name, .incarnation = 7, .limit_bytes = uint64_t{1} << 30};
    registration.objects = objects;
    registration.sizes = std::move(sizes);
    registration.aside = std::move(aside);
    const Effects effects = Step(RegisterNode{registration});
    for (const ToNode& to : effects.to_nodes)
      if (std::holds_alternative<NodeRegistered>(to.message)) return to.node;
    return kNoNode;
  }
  Ids Ordered(NodeId node, AsideAction action) const {
    Ids files;
    for (const auto& [to, order] : orders_) {
      const auto* aside = std::get_if<AsideOrder>(&order);
      if (to == node && aside && aside->action == action)
        files.insert(files.end(), aside->files.begin(), aside->files.end());
    }
    return files;
  }
};

TEST_F(CoreRecovery, ObjectsOfForgottenFilesArePutAsideAndNotDropped) {
  AddNode("n1");
  const FileId kept = MakeBound(kAnna, kRootFile, "kept", 8192);
  const auto image = image_;
  const FileId forgotten = MakeBound(kAnna, kRootFile, "forgotten", 8192);
  Crash(image);
  const NodeId n1 = Register("n1", {kept, forgotten});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), Ids{forgotten});
  EXPECT_TRUE(dropped_[n1].empty());
  Start(kAnna);
  Ok<OpenReply>(kAnna, OpenRequest{kept, false, ""});
}

// The node may have dropped the object and stored new bytes of the file since.
TEST_F(CoreRecovery, AnObjectThatWasToBeDroppedIsPutAsideFirst) {
  const NodeId n1 = AddNode("n1");
  const NodeId n2 = AddNode("n2");
  Ok<EmptyReply>(kAnna, SetXattrRequest{kRootFile, "user.mosa.placement", "local", false, false});
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  const bool is_on_n1 = core_->GetFileStatus("/f")->layout.NodeAt(0) == n1;
  const NodeId other = is_on_n1 ? n2 : n1;
  for (const char* copies : {"2", "1"})
    Ok<EmptyReply>(kAnna, SetXattrRequest{f, "user.mosa.replicas", copies, false, false});
  ConfirmAll();
  ASSERT_EQ(dropped_[other], Ids{f});
  Crash(image_);
  EXPECT_EQ(Register(is_on_n1 ? "n2" : "n1", {f}), other);
  EXPECT_EQ(Ordered(other, AsideAction::kSetAside), Ids{f});
}

TEST_F(CoreRecovery, WithoutACrashObjectsOfRemovedFilesAreDropped) {
  AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "f", false, false});
  dropped_.clear();
  Restart();
  const NodeId n1 = Register("n1", {f});
  EXPECT_EQ(dropped_[n1], Ids{f});
  EXPECT_TRUE(Ordered(n1, AsideAction::kSetAside).empty());
}

TEST_F(CoreRecovery, RememberedAfterTheNextRestartForNodesThatComeLater) {
  AddNode("n1");
  const auto image = image_;
  const FileId forgotten = MakeBound(kAnna, kRootFile, "forgotten", 8192);
  Crash(image);
  Advance(Seconds(1));
  Restart();
  const NodeId n1 = Register("n1", {forgotten});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), Ids{forgotten});
}

// A restored image shows no sign of a crash.
TEST_F(CoreRecovery, ObjectsThatAreNewerThanTheImageArePutAside) {
  AddNode("n1");
  const FileId removed = MakeBound(kAnna, kRootFile, "removed", 8192);
  const Time written = now_;
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "removed", false, false});
  const auto image = image_;
  now_ = now_ + Seconds(2);
  const FileId newer = MakeBound(kAnna, kRootFile, "newer", 8192);
  const Time written_later = now_;
  now_ = now_ + Seconds(2);
  image_ = image;
  dropped_.clear();
  Restart();
  const NodeId n1 =
      Register("n1", {removed, newer}, {{8192, 8192, written}, {8192, 8192, written_later}});
  EXPECT_EQ(dropped_[n1], Ids{removed});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), Ids{newer});
}

TEST_F(CoreRecovery, AnEmptyStorePutsTheObjectsOfTheOneBeforeAside) {
  options_.first_file_id = FirstAfterRecovery(now_);
  core_ = std::make_unique<ManagerCore>(options_);
  image_.clear();
  const NodeId n1 = Register("n1", {FileId(77)});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), Ids{FileId(77)});
  Start(kAnna);
  EXPECT_GE(ready_[kAnna].file_ids.first.value, options_.first_file_id);
  Restart();
  Register("n1", {FileId(77)});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), Ids{FileId(77)});
}

TEST_F(CoreRecovery, IdsThatANodeHasAnObjectOfAreNeverGivenOutAgain) {
  const uint64_t next = ready_[kAnna].file_ids.first.value + 1'000'000;
  const Ids held = {FileId(next), FileId(next + 1)};
  const NodeId n1 = Register("n1", held, {}, {{.file = FileId(next + 500'000)}});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), held);
  Start(kBen);
  EXPECT_GT(ready_[kBen].file_ids.first.value, next + 500'000);
  // A client keeps using ids that it was given and that are now forgotten.
  const auto image = image_;
  Start(kCarl);
  const FileIdRangeReply range = ready_[kCarl].file_ids;
  Crash(image);
  Start(kBen);
  EXPECT_GE(ready_[kBen].file_ids.first.value, range.first.value + range.count);
}

TEST_F(CoreRecovery, VersionsContinueAboveThoseThatWereForgotten) {
  AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  const auto image = image_;
  uint64_t forgotten = 0;
  for (int i = 0; i < 5; ++i) {
    CommitRequest commit{.file = f, .size_bytes = 8192};
    commit.nodes = {{NodeId(1), 8192, 0}};
    commit.data_changed = true;
    forgotten = Ok<AttributesReply>(kAnna, commit).attributes.data_version;
  }
  Crash(image);
  Register("n1", {f});
  Start(kAnna);
  const uint64_t first = Ok<OpenReply>(kAnna, OpenRequest{f, false, ""}).attributes.data_version;
  EXPECT_GT(first, forgotten);
  Restart();
  Register("n1", {f});
  Start(kAnna);
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{f, false, ""}).attributes.data_version, first);
}

// Nodes refuse a session, an incarnation or a layout older than what they have seen.
TEST_F(CoreRecovery, GenerationsContinueAboveThoseThatWereForgotten) {
  AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  const auto image = image_;
  for (int i = 0; i < 3; ++i) Start(kAnna);
  AddNode("n2");
  const CapabilityTerms forgotten = core_->TermsFor(kAnna);
  Crash(image);
  Register("n1", {f});
  Start(kAnna);
  EXPECT_GT(core_->TermsFor(kAnna).era, forgotten.era);
  EXPECT_GT(core_->TermsFor(kAnna).epoch, forgotten.epoch);
  const uint64_t generation = Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.generation;
  EXPECT_GT(generation, 1U);
  Restart();
  Register("n1", {f});
  Start(kAnna);
  EXPECT_GT(core_->TermsFor(kAnna).era, forgotten.era);
  EXPECT_EQ(Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.generation, generation);
}

TEST_F(CoreRecovery, FilesWhoseLastChangeWasForgottenAreNamed) {
  AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8192);
  const auto image = image_;
  now_ = now_ + Seconds(2);
  const Time changed = now_;
  now_ = now_ + Seconds(2);
  Crash(image);
  Register("n1", {f}, {{16384, 16384, changed}});
  EXPECT_THAT(log_, Contains(HasSubstr(fmt::format("bytes of file {} that are newer", f.value))));
}

TEST_F(CoreRecovery, AnObjectThatWasCutIsLost) {
  AddNode("n1");
  const FileId whole = MakeBound(kAnna, kRootFile, "whole", 8192);
  const FileId cut = MakeBound(kAnna, kRootFile, "cut", 8192);
  const FileId sparse = MakeBound(kAnna, kRootFile, "sparse", 4096);
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = sparse, .size_bytes = 1 << 20});
  now_ = now_ + Seconds(60);
  Restart();
  Register("n1", {whole, cut, sparse}, {{8192, 8192, {}}, {4000, 4096, {}}, {4096, 4096, {}}});
  Start(kAnna);
  Ok<OpenReply>(kAnna, OpenRequest{whole, false, ""});
  Ok<OpenReply>(kAnna, OpenRequest{sparse, false, ""});
  EXPECT_EQ(Refused(kAnna, OpenRequest{cut, false, ""}), ErrorReason::kNodeLost);
  ASSERT_EQ(core_->ListLostFiles(10).size(), 1U);
  EXPECT_EQ(core_->ListLostFiles(10)[0].path, "/cut");
}

// A mount cuts the objects of a file first, and then reports it to the manager.
TEST_F(CoreRecovery, AnObjectThatWasCutIsNotLostAfterItsFileIsCutAsWell) {
  AddNode("n1");
  const FileId f = MakeBound(kAnna, kRootFile, "f", 8 * kMiB);
  const FileId other = MakeBound(kAnna, kRootFile, "other", 8 * kMiB);
  now_ = now_ + Seconds(60);
  Restart();
  Register("n1", {f}, {{4 * kMiB, 4 * kMiB, {}}});
  Register("n1", {f}, {{4 * kMiB, 4 * kMiB, {}}});  // The node's connection broke.
  Start(kAnna);
  EXPECT_EQ(Refused(kAnna, OpenRequest{f, false, ""}), ErrorReason::kNodeLost);
  for (const uint64_t size : {5 * kMiB, 8 * kMiB, 9 * kMiB})
    EXPECT_EQ(Refused(kAnna, SetAttributesRequest{.file = f, .size_bytes = size}),
              ErrorReason::kNodeLost)
        << "some of " << size << " are missing";
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = f, .size_bytes = 4 * kMiB});
  Ok<OpenReply>(kAnna, OpenRequest{f, false, ""});
  EXPECT_FALSE(Ok<OpenReply>(kAnna, OpenRequest{f, true, ""}).access.lost);
  EXPECT_EQ(Refused(kAnna, SetAttributesRequest{.file = other, .size_bytes = 4096}),
            ErrorReason::kNodeLost)
      << "its object is not there at all";
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = other, .size_bytes = 0});
}

TEST_F(CoreRecovery, ANodesOldLeftoversAreDroppedOnceItHasShownThatNothingWasForgotten) {
  AddNode("n1");
  const FileId kept = MakeBound(kAnna, kRootFile, "kept", 8192);
  const FileId removed = MakeBound(kAnna, kRootFile, "removed", 8192);
  const auto image = image_;
  const FileId forgotten = MakeBound(kAnna, kRootFile, "forgotten", 8192);
  Crash(image);
  Register("n1", {kept, removed, forgotten});
  // The order to put it aside was lost.
  const NodeId n1 = Register("n1", {kept, removed, forgotten});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), Ids{forgotten});
  Register("n1", {kept, removed}, {}, {{.file = forgotten}});
  Start(kAnna);
  Ok<RemoveReply>(kAnna, RemoveRequest{kRootFile, "removed", false, false});
  Restart();
  dropped_.clear();
  Register("n1", {kept, removed}, {}, {{.file = forgotten}});
  EXPECT_EQ(dropped_[n1], Ids{removed});
  EXPECT_TRUE(Ordered(n1, AsideAction::kSetAside).empty());
  const NodeId n2 = Register("n2", {removed});
  EXPECT_EQ(Ordered(n2, AsideAction::kSetAside), Ids{removed}) << "another node may have some";
  now_ = now_ + Seconds(1);
  Crash(image_);
  Register("n1", {kept, removed}, {}, {{.file = forgotten}});
  EXPECT_EQ(Ordered(n1, AsideAction::kSetAside), Ids{removed}) << "more may be forgotten";
}

TEST_F(CoreRecovery, IdsThatWereNeverGivenOutAreNotAdopted) {
  const FileId f(uint64_t{1} << 60);
  const AsideObject part{.file = f, .size_bytes = 5, .allocated_bytes = 4096, .data = {{0, 5}}};
  Register("n1", {}, {}, {part, {.file = FileId(0)}});
  ConfirmAll();
  Effects effects = Step(AdoptFiles{{f, FileId(0)}, false});
  ConfirmAll();
  if (effects.admin_reply->status.code() == StatusCode::kAborted)
    effects = Step(AdoptFiles{{f, FileId(0)}, false});
  ASSERT_EQ(effects.admin_reply->adopted.size(), 2U);
  for (const AdoptOutcome& outcome : effects.admin_reply->adopted)
    EXPECT_THAT(outcome.refusal, HasSubstr("never allocated"));
  Restart();
}

TEST_F(CoreRecovery, WhatWasPutAsideIsAdoptedOrDiscarded) {
  const FileId f(500'000), g(500'001), known = Make(kAnna, kRootFile, "known");
  const AsideObject part{.file = f,
                         .size_bytes = 5000,
                         .allocated_bytes = 8192,
                         .modified = now_,
                         .data = {{0, 5000, 0, 1}}};
  AsideObject other = part, taken = part;
  other.file = g;
  taken.file = known;
  const NodeId n1 = Register("n1", {}, {}, {part, other, taken});
  ASSERT_EQ(core_->ListAside(10, FileId()).size(), 3U);
  EXPECT_EQ(core_->ListAside(10, f).size(), 1U);
  EXPECT_EQ(core_->ListAside(10, f)[0].parts[0].node_name, "n1");

  ConfirmAll();
  orders_.clear();
  Effects effects = Step(AdoptFiles{{f, known, FileId(9)}, false});
  ConfirmAll();
  if (effects.admin_reply->status.code() == StatusCode::kAborted)
    effects = Step(AdoptFiles{{f, known, FileId(9)}, false});
  ASSERT_TRUE(effects.admin_reply && effects.admin_reply->status.ok());
  const auto& outcomes = effects.admin_reply->adopted;
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].path, fmt::format("/lost+found/#{}", f.value));
  EXPECT_THAT(outcomes[1].refusal, HasSubstr("exists in directory"));
  EXPECT_THAT(outcomes[2].refusal, HasSubstr("no node"));
  EXPECT_EQ(Ordered(n1, AsideAction::kRestore), Ids{f});
  const auto status = core_->GetFileStatus(outcomes[0].path);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->entry.attributes.size_bytes, 5000U);
  EXPECT_EQ(status->layout.Nodes(), std::vector<NodeId>{n1});

  // The order was lost with the node's connection, or with the manager: it is repeated.
  Restart();
  Register("n1", {}, {}, {part, other});
  EXPECT_EQ(Ordered(n1, AsideAction::kRestore), Ids{f});
  EXPECT_TRUE(core_->ListLostFiles(10).empty());
  Start(kAnna);
  Ok<OpenReply>(kAnna, OpenRequest{f, false, ""});

  orders_.clear();
  effects = Step(AdoptFiles{{g}, true});
  EXPECT_EQ(effects.admin_reply->adopted[0], AdoptOutcome{});
  EXPECT_EQ(Ordered(n1, AsideAction::kDiscard), Ids{g});
  Step(NodeReportedAside{n1, {}});
  EXPECT_TRUE(core_->ListAside(10, FileId()).empty());
}

class CoreAdoption : public CoreRecovery {
 protected:
  // Has the file adopted, as the tool does: retries until mounts have let go of the directories.
  AdoptOutcome Adopt(FileId file) {
    Register(
        "n1", {}, {},
        {{.file = file, .size_bytes = 5000, .allocated_bytes = 8192, .data = {{0, 5000, 0, 1}}}});
    for (int i = 0; i < 4; ++i) {
      const Effects effects = Step(AdoptFiles{{file}, false});
      if (effects.admin_reply->status.ok()) return effects.admin_reply->adopted.at(0);
      ConfirmAll();
    }
    ADD_FAILURE() << "nobody lets go";
    return {};
  }
  // Any user who may make names in the root may make this one.
  FileId MakeOwned(const std::string& name, FileType type, uint32_t uid, uint32_t permissions) {
    MakeRequest make = MakeOf(kAnna, kRootFile, name, type);
    make.uid = uid;
    make.permissions = permissions;
    return Ok<MakeReply>(kAnna, make).entry.file;
  }
  const FileId file_{500'000};
};

TEST_F(CoreAdoption, GoesOnlyWhereRootAloneMayEnter) {
  MakeOwned("lost+found", FileType::kDirectory, 1000, 0700);
  MakeOwned("lost+found.1", FileType::kDirectory, 0, 0750);
  MakeOwned("lost+found.2", FileType::kDirectory, 0, 0701);
  MakeOwned("lost+found.3", FileType::kSymlink, 0, 0777);
  MakeOwned("lost+found.4", FileType::kRegular, 0, 0600);
  EXPECT_EQ(Adopt(file_).path, "/lost+found.5/#500000");
  EXPECT_THAT(log_, Contains(HasSubstr("adopted files go to /lost+found.5")));
  const auto made = core_->GetFileStatus("/lost+found.5");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->entry.attributes.permissions & 0777, 0700U);
  EXPECT_EQ(Adopt(FileId(500'001)).path, "/lost+found.5/#500001");
}

TEST_F(CoreAdoption, TakesADirectoryOfRootsThatIsThere) {
  MakeOwned("lost+found", FileType::kDirectory, 0, 0700);
  EXPECT_EQ(Adopt(file_).path, "/lost+found/#500000");
}

TEST_F(CoreAdoption, FindsANameBesideOneThatIsTaken) {
  const FileId directory = MakeOwned("lost+found", FileType::kDirectory, 0, 0700);
  Make(kAnna, directory, "#500000");
  Make(kAnna, directory, "#500000.1");
  EXPECT_EQ(Adopt(file_).path, "/lost+found/#500000.2");
}

TEST_F(CoreAdoption, SaysWhatToRemoveWhenAllPlacesAreTaken) {
  MakeOwned("lost+found", FileType::kRegular, 1000, 0644);
  for (int i = 1; i < 100; ++i)
    MakeOwned(fmt::format("lost+found.{}", i), FileType::kRegular, 1000, 0644);
  EXPECT_THAT(Adopt(file_).refusal, HasSubstr("/lost+found.1 to /lost+found.99"));
  EXPECT_EQ(core_->ListAside(10, FileId()).size(), 1U);
}

// ---- joining parts

AsideObject Part(uint64_t size_bytes, std::vector<DataRuns> data) {
  return {.file = FileId(5),
          .size_bytes = size_bytes,
          .allocated_bytes = size_bytes,
          .data = std::move(data)};
}

TEST(JoinParts, FindsStripesHolesAndCopies) {
  const uint64_t mib = 1 << 20;
  const AsideObject even = Part(9 * mib, {{0, mib, 2 * mib, 5}});
  const AsideObject odd = Part(8 * mib, {{mib, mib, 2 * mib, 4}});
  const AsideObject all = Part(3 * mib, {{0, 3 * mib, 0, 1}});
  const AsideObject tail = Part(7 * mib, {{5 * mib, 2 * mib, 0, 1}});
  const NodeId a(1), b(2), c(3);

  const auto stripe = JoinParts({{a, &even}, {b, &odd}}, 4096, 10);
  ASSERT_TRUE(stripe);
  EXPECT_EQ(stripe->layout.chunk_bytes, mib);
  EXPECT_EQ(stripe->layout.segments, (std::vector<Segment>{{0, 2, {a, b}}}));
  EXPECT_EQ(stripe->size_bytes, 9 * mib);

  const auto spilled = JoinParts({{b, &all}, {c, &tail}}, 4096, 10);
  ASSERT_TRUE(spilled);
  EXPECT_EQ(spilled->layout.chunk_bytes, 4096U);
  EXPECT_EQ(spilled->layout.segments, (std::vector<Segment>{{0, 1, {b}}, {5 * mib, 1, {c}}}));

  const AsideObject longer = Part(4 * mib, {{0, 4 * mib, 0, 1}});
  const auto copies = JoinParts({{a, &all}, {b, &longer}}, 4096, 10);
  ASSERT_TRUE(copies);
  EXPECT_EQ(copies->layout.segments, (std::vector<Segment>{{0, 1, {b}}}));
  EXPECT_EQ(copies->unused, std::vector<NodeId>{a});

  const AsideObject empty = Part(10, {});
  EXPECT_EQ(JoinParts({{a, &empty}}, 4096, 10)->layout.segments,
            (std::vector<Segment>{{0, 1, {a}}}));
  EXPECT_FALSE(JoinParts({}, 4096, 10));
  const AsideObject odd_bits = Part(9 * mib, {{0, 4096, 0, 1}, {9 * mib, mib, 0, 1}});
  EXPECT_FALSE(JoinParts({{a, &odd_bits}, {c, &odd}}, 4096, 2));
}

}  // namespace
}  // namespace mosa::manager
