// The number of copies that `replicas=auto` means: by the rule, or by a forecast.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreAutoCopies : public CoreFixture {
 protected:
  using HintPairs = std::vector<std::pair<std::string, std::string>>;
  CoreAutoCopies() {
    Start(kAnna);
    for (const char* name : {"n1", "n2", "n3", "n4"}) nodes_.push_back(AddNode(name));
  }
  std::string Xattr(FileId file, const std::string& name) {
    return Ok<GetXattrReply>(kAnna, GetXattrRequest{file, "user.mosa." + name}).value;
  }
  // A file made by kAnna on n1, bound and open for writing.
  FileId MakeOpen(const std::string& name, const std::string& replicas,
                  const std::string& replicate) {
    const FileId file = Make(kAnna, kRootFile, name, FileType::kRegular, true);
    for (const auto& [hint, value] :
         HintPairs{{"placement", "local"}, {"replicas", replicas}, {"replicate", replicate}})
      SetXattr(file, hint, value);
    Ok<BindReply>(kAnna, BindRequest{file, kMiB});
    return file;
  }
  void SetXattr(FileId file, const std::string& name, const std::string& value) {
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa." + name, value, false, false});
  }
  void Commit(FileId file, uint64_t size_bytes, bool close = true) {
    CommitRequest commit{.file = file, .size_bytes = size_bytes};
    commit.nodes.push_back({nodes_.front(), size_bytes, 0});
    commit.last_close = close;
    Ok<AttributesReply>(kAnna, commit);
  }
  FileId MakeCommitted(const std::string& name, const std::string& replicas) {
    const FileId file = MakeOpen(name, replicas, "lazy");
    Commit(file, 2 * kMiB);
    return file;
  }
  size_t CountCopyOrders() const {
    return static_cast<size_t>(std::count_if(orders_.begin(), orders_.end(), [](const auto& each) {
      return std::holds_alternative<CopyOrder>(each.second);
    }));
  }
  // Every node with a copy order reports it done.
  void DoCopyOrders() {
    for (int round = 0; round < 8; ++round) {
      for (const auto& [node, order] : std::exchange(orders_, {})) {
        const auto* copy = std::get_if<CopyOrder>(&order);
        if (!copy || copy->follow) continue;
        CopyReport report{
            .file = copy->file, .order = copy->order, .data_version = copy->data_version};
        report.copied_bytes = report.allocated_bytes = copy->size_bytes;
        report.done = true;
        Step(NodeCopyReport{node, report});
        ConfirmAll();
      }
    }
  }

  std::vector<NodeId> nodes_;
};

SetCopiesForecast ForecastOf(uint32_t nodes, uint32_t short_copies, uint32_t long_copies) {
  return {nodes, {{64 << 10, short_copies}, {kMiB, long_copies}}};
}

TEST_F(CoreAutoCopies, AutoIsWhatIsForecastForTheSizeThatTheFileHasReached) {
  EXPECT_TRUE(Step(ForecastOf(4, 1, 4)).admin_reply->status.ok());
  // The file's length is unknown, and copies follow the writer.
  const FileId f = MakeOpen("f", "auto", "eager");
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 4U);
  EXPECT_EQ(CountCopyOrders(), 3U);
  EXPECT_NE(Xattr(f, "layout").find("4 copies, predicted best for a long file"), std::string::npos);
  // Copies that have begun continue while the file is open.
  Commit(f, 1000, false);
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 4U);
  Commit(f, 1000);
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 1U);
  EXPECT_NE(Xattr(f, "layout").find(R"("auto":"1 copy, predicted best for 64.0 KiB on 4 nodes")"),
            std::string::npos)
      << Xattr(f, "layout");

  MakeCommitted("long", "auto");
  EXPECT_EQ(core_->GetFileStatus("/long")->copies_wanted, 4U);
  const auto explained = core_->ExplainHints("/long");
  ASSERT_TRUE(explained.ok());
  std::string note;
  for (const ExplainedHint& hint : explained->hints)
    if (hint.name == "replicas") note = hint.note;
  EXPECT_EQ(note, "4 copies, predicted best for 1.0 MiB on 4 nodes");
}

TEST_F(CoreAutoCopies, ANewForecastChangesWhatIsThere) {
  const FileId f = MakeCommitted("f", "auto");
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 2U);
  EXPECT_NE(Xattr(f, "layout").find("the square root of the nodes"), std::string::npos);
  Step(ForecastOf(4, 1, 3));
  AdvanceAlive(Seconds(1), {kAnna}, nodes_);
  EXPECT_EQ(core_->GetFileStatus("/f")->copies.size(), 2U);
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 3U);
}

TEST_F(CoreAutoCopies, AForecastThatMakesNoSenseIsRefused) {
  for (const SetCopiesForecast& wrong :
       {SetCopiesForecast{0, {{1, 1}}}, SetCopiesForecast{4, {}}, SetCopiesForecast{4, {{1, 0}}},
        SetCopiesForecast{4, {{0, 1}}}, SetCopiesForecast{4, {{2, 1}, {1, 1}}}})
    EXPECT_EQ(Step(wrong).admin_reply->status.code(), StatusCode::kInvalidArgument);
  MakeCommitted("f", "auto");
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 2U);
}

TEST_F(CoreAutoCopies, ALostNodeTakesNoValidCopiesWithIt) {
  Step(ForecastOf(1, 1, 1));
  Step(ForecastOf(4, 4, 4));
  MakeCommitted("f", "auto");
  DoCopyOrders();
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_valid, 4U);
  Step(NodeStreamLost{nodes_[3]});
  AdvanceAlive(Seconds(12), {kAnna}, {nodes_[0], nodes_[1], nodes_[2]});
  ConfirmAll();
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 3U);
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_valid, 3U);
  EXPECT_TRUE(dropped_.empty());
}

// Its copy is kept in case it returns, but does not count as one that was begun.
TEST_F(CoreAutoCopies, ASilentNodeIsReplacedOnceWhileTheFileIsWritten) {
  const FileId f = MakeOpen("f", "auto", "eager");
  Commit(f, 2 * kMiB, /*close=*/false);
  const auto copies = core_->GetFileStatus("/f")->copies;
  ASSERT_EQ(copies.size(), 1U);
  std::vector<NodeId> others = nodes_;
  std::erase(others, copies[0].node);
  Step(NodeStreamLost{copies[0].node});
  AdvanceAlive(Seconds(12), {kAnna}, others);
  for (uint64_t size = 3; size < 8; ++size) Commit(f, size * kMiB, /*close=*/false);
  EXPECT_EQ(core_->GetFileStatus("/f")->copies.size(), 2U);
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 2U);
}

TEST_F(CoreAutoCopies, AShortFileThatNobodyFollowsHasNoCopiesMadeAndDropped) {
  Step(ForecastOf(4, 1, 4));
  const FileId f = MakeOpen("f", "auto", "lazy");
  EXPECT_TRUE(core_->GetFileStatus("/f")->copies.empty());
  Commit(f, 1000);
  EXPECT_EQ(CountCopyOrders(), 0U);
  EXPECT_TRUE(dropped_.empty());
}

// The number at the close counts, whatever it was at the open.
TEST_F(CoreAutoCopies, ACloseWaitsForAsManyAsTheFileIsToHaveByThen) {
  const struct {
    uint32_t short_copies, long_copies;
    const char* ack;
    uint64_t bytes;
    uint32_t close_copies, wanted;
  } rows[] = {
      {1, 4, "pessimistic", 1000, 4, 1}, {1, 4, "pessimistic", 2 * kMiB, 4, 4},
      {4, 1, "pessimistic", 1000, 4, 4}, {4, 1, "pessimistic", 2 * kMiB, 4, 1},
      {1, 4, "2", 1000, 2, 1},           {1, 4, "2", 2 * kMiB, 2, 2},
      {3, 4, "optimistic", 1000, 1, 1},
  };
  for (const char* replicate : {"lazy", "eager"}) {
    for (size_t i = 0; i < std::size(rows); ++i) {
      const auto& row = rows[i];
      SCOPED_TRACE(replicate + std::to_string(i));
      Step(ForecastOf(4, row.short_copies, row.long_copies));
      const FileId f = MakeOpen(replicate + std::to_string(i), "auto", replicate);
      SetXattr(f, "ack", row.ack);
      const auto open = Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
      EXPECT_EQ(open.access.close_copies, row.close_copies);
      Commit(f, row.bytes);
      const RequestId asked = Send(kAnna, {AwaitCopiesRequest{f, 1, row.close_copies}});
      EXPECT_EQ(Answered(kAnna, asked), row.wanted == 1);
      DoCopyOrders();
      ASSERT_TRUE(Answered(kAnna, asked));
      const auto reply = std::get<AwaitCopiesReply>(replies_[{kAnna, asked}].at(0));
      EXPECT_EQ(reply.copies_wanted, row.wanted);
      EXPECT_GE(reply.copies_valid, row.wanted);
    }
  }
}

TEST_F(CoreAutoCopies, TheSameForecastAgainReviewsNothing) {
  const auto reviews = [this](uint32_t long_copies) {
    const Effects effects = Step(ForecastOf(4, 1, long_copies));
    AdvanceAlive(Seconds(1), {kAnna}, nodes_);
    return effects.wake_at && *effects.wake_at <= now_ - Seconds(1) + Milliseconds(1);
  };
  EXPECT_TRUE(reviews(4));
  EXPECT_FALSE(reviews(4));
  EXPECT_TRUE(reviews(3));
}

// The forecast is a command of the stream, so a core that replays it decides the same.
TEST_F(CoreAutoCopies, WithTheSameForecastAnotherCoreDecidesTheSame) {
  struct Played {
    std::string writes, notes;
    std::vector<std::pair<NodeId, NodeOrder>> orders;
    bool operator==(const Played&) const = default;
  };
  const auto play = [&](uint32_t long_copies) {
    ManagerCore core{options_};
    Played played;
    FileId file;
    const auto step = [&](const Command& command) {
      const Effects effects = core.Step(command, now_);
      for (const auto& write : effects.writes.writes)
        played.writes += write.key + "=" + write.value.value_or("") + ";";
      for (const ToClient& to : effects.to_clients)
        if (const auto* ready = std::get_if<SessionReady>(&to.message))
          file = ready->file_ids.first;
      for (const ToNode& to : effects.to_nodes)
        if (const auto* order = std::get_if<NodeOrder>(&to.message))
          played.orders.emplace_back(to.node, *order);
    };
    step(StartSession{{.client = kAnna, .node_name = "n1"}});
    step(AddHintRule{"/**", {{"pattern", "broadcast"}, {"placement", "local"}}});
    step(ForecastOf(1, 1, 1));
    for (const char* name : {"n1", "n2", "n3", "n4"})
      step(RegisterNode{{.name = name, .incarnation = 7, .limit_bytes = uint64_t{1} << 30}});
    step(ForecastOf(4, 1, long_copies));
    MakeRequest make{.parent = kRootFile, .name = "f", .file = file};
    make.open = true;
    step(SessionRequest{kAnna, {RequestId(1), RequestId(0), {make, BindRequest{file, kMiB}}}});
    step(Tick{});
    const auto explained = core.ExplainHints("/new");
    EXPECT_TRUE(explained.ok());
    for (const ExplainedHint& hint : explained->hints) played.notes += hint.note;
    return played;
  };
  const Played three = play(3);
  EXPECT_EQ(three, play(3));
  EXPECT_NE(three.notes.find("3 copies, predicted best"), std::string::npos);
  EXPECT_EQ(three.orders.size(), 2U) << "who is to copy what is being written";
  EXPECT_EQ(play(4).orders.size(), 3U);
}

}  // namespace
}  // namespace mosa::manager
