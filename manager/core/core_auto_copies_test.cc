// What `replicas=auto` comes to: by the rule, or as was forecast.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

constexpr uint64_t kMiB = 1 << 20;

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
  // Made by kAnna on n1, open for writing and bound.
  FileId MakeOpen(const std::string& name, const std::string& replicas,
                  const std::string& replicate) {
    const FileId file = Make(kAnna, kRootFile, name, FileType::kRegular, true);
    for (const auto& [hint, value] :
         HintPairs{{"placement", "local"}, {"replicas", replicas}, {"replicate", replicate}})
      Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa." + hint, value, false, false});
    Ok<BindReply>(kAnna, BindRequest{file, kMiB});
    return file;
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

  std::vector<NodeId> nodes_;
};

SetCopiesForecast ForecastOf(uint32_t nodes, uint32_t short_copies, uint32_t long_copies) {
  return {nodes, {{64 << 10, short_copies}, {kMiB, long_copies}}};
}

TEST_F(CoreAutoCopies, AutoIsWhatIsForecastForTheSizeThatTheFileHasReached) {
  EXPECT_TRUE(Step(ForecastOf(4, 1, 4)).admin_reply->status.ok());
  // Nobody knows yet how long it becomes, and copies follow the writer.
  const FileId f = MakeOpen("f", "auto", "eager");
  EXPECT_EQ(core_->GetFileStatus("/f")->copies_wanted, 4U);
  EXPECT_EQ(CountCopyOrders(), 3U);
  EXPECT_NE(Xattr(f, "layout").find("4 copies, predicted best for a long file"), std::string::npos);
  // What was begun goes on as long as it is open.
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

// The command is part of the stream: who replays that decides the same.
TEST_F(CoreAutoCopies, WithTheSameForecastAnotherCoreDecidesTheSame) {
  const std::vector<Command> commands = {
      StartSession{{.client = kAnna, .node_name = "n1"}},
      RegisterNode{{.name = "n1", .incarnation = 7, .limit_bytes = uint64_t{1} << 30}},
      ForecastOf(1, 1, 1),
      AddHintRule{"/**", {{"pattern", "broadcast"}}},
      RegisterNode{{.name = "n2", .incarnation = 7, .limit_bytes = uint64_t{1} << 30}},
      ForecastOf(2, 1, 2),
      Tick{}};
  const auto play = [&] {
    ManagerCore core{options_};
    std::string all;
    for (const Command& command : commands)
      for (const auto& write : core.Step(command, now_).writes.writes)
        all += write.key + "=" + write.value.value_or("") + ";";
    const auto explained = core.ExplainHints("/new");
    EXPECT_TRUE(explained.ok());
    for (const ExplainedHint& hint : explained->hints) all += hint.note;
    return all;
  };
  EXPECT_EQ(play(), play());
  EXPECT_NE(play().find("2 copies, predicted best"), std::string::npos);
}

}  // namespace
}  // namespace mosa::manager
