#include "predictor/workflow/patterns.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

struct Line {
  std::string id;
  std::vector<std::string> inputs, outputs;
};

Workflow Graph(const std::vector<Line>& lines, std::vector<FileDraft> files = {}) {
  WorkflowDraft draft;
  for (const Line& line : lines) {
    TaskDraft task;
    task.id = line.id;
    task.command = {"true"};
    task.inputs = line.inputs;
    task.outputs = line.outputs;
    draft.tasks.push_back(task);
  }
  draft.files = std::move(files);
  BuildResult built = BuildWorkflow(draft);
  EXPECT_THAT(built.faults, testing::IsEmpty());
  return std::move(built.workflow);
}

// "path name=value name=value; ..." for all files with hints.
std::string Hints(const Workflow& workflow, uint32_t hosts) {
  std::string text;
  for (const FileHints& plan : PlanHints(workflow, {.hosts = hosts})) {
    EXPECT_FALSE(plan.reason.empty());
    if (plan.hints.empty()) continue;
    text += (text.empty() ? "" : "; ") + workflow.at(plan.file).path;
    for (const auto& [name, value] : plan.hints) text += fmt::format(" {}={}", name, value);
  }
  return text;
}

TEST(PlanHints, SeesAPipeline) {
  EXPECT_EQ(Hints(Graph({{"a", {"in"}, {"x"}}, {"b", {"x"}, {"y"}}, {"c", {"y"}, {"out"}}}), 4),
            "x pattern=pipeline; y pattern=pipeline");
}

TEST(PlanHints, SeesAReduce) {
  EXPECT_EQ(
      Hints(Graph({{"a", {}, {"x"}}, {"b", {}, {"y", "z"}}, {"sum", {"x", "y", "z"}, {"s"}}}), 4),
      "x pattern=reduce:sum; y pattern=reduce:sum; z pattern=reduce:sum");
}

TEST(PlanHints, FilesOfOneWriterAreNoReduce) {
  EXPECT_EQ(Hints(Graph({{"a", {}, {"x", "y"}}, {"b", {"x", "y"}, {"s"}}}), 4),
            "x pattern=pipeline; y pattern=pipeline");
}

TEST(PlanHints, SeesABroadcast) {
  const Workflow workflow =
      Graph({{"a", {}, {"db"}}, {"b", {"db"}, {}}, {"c", {"db"}, {}}, {"d", {"db"}, {}}});
  EXPECT_EQ(Hints(workflow, 8), "db pattern=broadcast:3");
  EXPECT_EQ(Hints(workflow, 2), "db pattern=broadcast:2");
  EXPECT_EQ(Hints(workflow, 1), "db placement=local");
}

TEST(PlanHints, LimitsCopies) {
  std::vector<Line> lines = {{"a", {}, {"db"}}};
  for (int i = 0; i < 20; ++i) lines.push_back({fmt::format("t{}", i), {"db"}, {}});
  EXPECT_EQ(Hints(Graph(lines), 100), "db pattern=broadcast:8");
}

// Montage's projected images: there are many, and the tasks of its neighbours read each.
TEST(PlanHints, ManyFanOutsSpreadTheReadersThemselves) {
  std::vector<Line> lines;
  for (int i = 0; i < 8; ++i) lines.push_back({fmt::format("p{}", i), {}, {fmt::format("f{}", i)}});
  for (int i = 0; i < 8; ++i)
    lines.push_back(
        {fmt::format("d{}", i), {fmt::format("f{}", i), fmt::format("f{}", (i + 1) % 8)}, {}});
  EXPECT_THAT(Hints(Graph(lines), 4), testing::HasSubstr("f0 placement=local; f1 placement=local"));
  EXPECT_THAT(Hints(Graph(lines), 16), testing::HasSubstr("f0 pattern=broadcast:2"));
}

// Protein docking: every dock task reads the one large protein and one of several small ligands.
TEST(PlanHints, FanOutsOfALevelShareTheHostsByTheirBytes) {
  const auto hints = [](std::optional<uint64_t> protein_bytes) {
    std::vector<Line> lines = {{"p", {}, {"protein"}}};
    std::vector<FileDraft> files = {{.path = "protein", .size_bytes = protein_bytes, .hints = {}}};
    for (int i = 0; i < 4; ++i) {
      const std::string ligand = fmt::format("l{}", i);
      lines.push_back({"w" + ligand, {}, {ligand}});
      files.push_back({.path = ligand, .size_bytes = 100'000, .hints = {}});
      for (const char* dock : {"a", "b"}) lines.push_back({ligand + dock, {"protein", ligand}, {}});
    }
    return Hints(Graph(lines, files), 4);
  };
  const std::string ligands =
      "l0 placement=local; l1 placement=local; l2 placement=local; l3 placement=local";
  EXPECT_EQ(hints(75'000'000), "protein pattern=broadcast:4; " + ligands);
  EXPECT_EQ(hints(100'000), "protein placement=local; " + ligands);
  EXPECT_EQ(hints(std::nullopt), "protein placement=local; " + ligands);
}

// BLAST's database, if nobody says how large its parts are: all lie on the host of the one task
// that writes them, which would serve all hosts.
TEST(PlanHints, FilesOfOneTaskDoNotSpreadTheirReaders) {
  std::vector<Line> lines = {{"makeblastdb", {}, {"phr", "pin", "psq"}}};
  for (int i = 0; i < 6; ++i) lines.push_back({fmt::format("p{}", i), {"phr", "pin", "psq"}, {}});
  EXPECT_EQ(Hints(Graph(lines), 4),
            "phr pattern=broadcast:4; pin pattern=broadcast:4; psq pattern=broadcast:4");
}

// BLAST: a shared input does not turn a private file into a reduce.
TEST(PlanHints, ABroadcastBesideAPrivateFileLeavesItAPipeline) {
  EXPECT_EQ(Hints(Graph({{"db", {}, {"db"}},
                         {"p1", {}, {"q1"}},
                         {"p2", {}, {"q2"}},
                         {"s1", {"db", "q1"}, {}},
                         {"s2", {"db", "q2"}, {}}}),
                  4),
            "db pattern=broadcast:2; q1 pattern=pipeline; q2 pattern=pipeline");
}

TEST(PlanHints, TheUsersOwnHintsWin) {
  FileDraft x{.path = "x", .size_bytes = {}, .hints = {{"pattern", "scatter:1M"}}};
  FileDraft y{.path = "y", .size_bytes = {}, .hints = {{"lifetime", "keep"}}};
  EXPECT_EQ(Hints(Graph({{"a", {}, {"x", "y"}}, {"b", {"x"}, {}}, {"c", {"y"}, {}}}, {x, y}), 4),
            "x pattern=scatter:1M; y lifetime=keep pattern=pipeline");
}

TEST(PlanHints, AGroupIsAWord) {
  const std::string id = "sum of all/" + std::string(300, 'x');
  const std::string hints =
      Hints(Graph({{"a", {}, {"x"}}, {"b", {}, {"y"}}, {id, {"x", "y"}, {}}}), 4);
  const std::string group = hints.substr(2, hints.find(';') - 2);
  EXPECT_THAT(group, testing::StartsWith("pattern=reduce:sum_of_all_xxx"));
  EXPECT_EQ(group.find(' '), std::string::npos);
  EXPECT_LT(group.size(), 200U);
}

}  // namespace
}  // namespace mosa::predict
