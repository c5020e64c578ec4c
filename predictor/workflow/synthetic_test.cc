#include "predictor/workflow/synthetic.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/workflow/patterns.h"

namespace mosa::predict {
namespace {

std::string Say(const std::vector<Transfer>& transfers) {
  std::string text;
  for (const Transfer& transfer : transfers) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", transfer.in_backend ? "backend:" : "",
                        transfer.path);
    if (transfer.content != transfer.path) text += "=" + transfer.content;
    text += transfer.begin > 0 || transfer.is_region
                ? fmt::format("[{}+{}]", transfer.begin, transfer.bytes)
                : fmt::format("[{}]", transfer.bytes);
  }
  return text;
}

// A line per task: "id: reads > writes", with a line of dashes between parts.
std::string Say(const std::vector<SyntheticPart>& parts) {
  std::string text;
  for (const SyntheticPart& part : parts) {
    if (!text.empty()) text += "---\n";
    EXPECT_EQ(part.tasks.size(), part.workflow.tasks.size());
    for (size_t i = 0; i < part.tasks.size(); ++i) {
      const Task& node = part.workflow.tasks[i];
      EXPECT_THAT(node.id, testing::StartsWith(node.stage));
      text += fmt::format("{}: {} > {}\n", node.id, Say(part.tasks[i].reads),
                          Say(part.tasks[i].writes));
    }
  }
  return text;
}

// "path name=value; ..." for all files with hints of the planner or of the workflow itself.
std::string HintsOfParts(const std::vector<SyntheticPart>& parts) {
  std::string text;
  const auto add = [&](const std::string& path, const HintMap& hints) {
    for (const auto& [name, value] : hints)
      text += fmt::format("{}{} {}={}", text.empty() ? "" : "; ", path, name, value);
  };
  for (const SyntheticPart& part : parts) {
    for (const FileHints& plan : PlanHints(part.workflow, {.hosts = 4}))
      add(part.workflow.at(plan.file).path, plan.hints);
    for (const WorkflowFile& file : part.workflow.files) {
      if (!file.producer) add(file.path, file.hints);
    }
  }
  return text;
}

struct Row {
  SyntheticOptions options;
  std::string tasks;
  std::string hints;
};

class Patterns : public testing::TestWithParam<Row> {};

TEST_P(Patterns, AreThoseOfThePaper) {
  const std::vector<SyntheticPart> parts = MakeSynthetic(GetParam().options);
  EXPECT_EQ(Say(parts), GetParam().tasks);
  EXPECT_EQ(HintsOfParts(parts), GetParam().hints);
}

const Row kRows[] = {
    {{.pattern = Pattern::kPipeline, .size = WorkloadSize::kSmall, .width = 2},
     "stage-in-0:  > in/0=in[100000]\n"
     "stage-in-1:  > in/1=in[100000]\n"
     "---\n"
     "stage-1-0: in/0=in[100000] > mid-1/0[200000]\n"
     "stage-1-1: in/1=in[100000] > mid-1/1[200000]\n"
     "stage-2-0: mid-1/0[200000] > mid-2/0[200000]\n"
     "stage-2-1: mid-1/1[200000] > mid-2/1[200000]\n"
     "stage-3-0: mid-2/0[200000] > out/0[10000]\n"
     "stage-3-1: mid-2/1[200000] > out/1[10000]\n",
     "in/0 pattern=pipeline; in/1 pattern=pipeline; mid-1/0 pattern=pipeline; "
     "mid-1/1 pattern=pipeline; mid-2/0 pattern=pipeline; mid-2/1 pattern=pipeline; "
     "out/0 placement=local; out/1 placement=local"},
    {{.pattern = Pattern::kPipeline,
      .size = WorkloadSize::kLarge,
      .scale_millionths = 20'000,
      .stage_in = true,
      .stage_out = true},
     "stage-in-0: backend:in[20000000] > in/0=in[20000000]\n"
     "---\n"
     "stage-1-0: in/0=in[20000000] > mid-1/0[40000000]\n"
     "stage-2-0: mid-1/0[40000000] > mid-2/0[40000000]\n"
     "stage-3-0: mid-2/0[40000000] > out/0[200000]\n"
     "---\n"
     "stage-out-0: out/0[200000] > backend:out-0=out/0[200000]\n",
     "in/0 pattern=pipeline; mid-1/0 pattern=pipeline; mid-2/0 pattern=pipeline; "
     "out/0 placement=local"},
    {{.pattern = Pattern::kReduce, .size = WorkloadSize::kMedium, .width = 2, .stage_out = true},
     "write-0:  > parts/0[10000000]\n"
     "write-1:  > parts/1[10000000]\n"
     "reduce-0: parts/0[10000000] parts/1[10000000] > out/all[200000000]\n"
     "---\n"
     "stage-out-0: out/all[200000000] > backend:out-all=out/all[200000000]\n",
     "parts/0 pattern=reduce:reduce-0; parts/1 pattern=reduce:reduce-0; out/all placement=local"},
    {{.pattern = Pattern::kBroadcast, .size = WorkloadSize::kMedium, .width = 2, .copies = 3},
     "write-0:  > data/shared[100000000]\n"
     "read-0: data/shared[100000000] > out/0[1000000]\n"
     "read-1: data/shared[100000000] > out/1[1000000]\n",
     "data/shared pattern=broadcast:3"},
    {{.pattern = Pattern::kBroadcast,
      .size = WorkloadSize::kSmall,
      .scale_millionths = 100,
      .width = 2},
     "write-0:  > data/shared[10]\n"
     "read-0: data/shared[10] > out/0[1]\n"
     "read-1: data/shared[10] > out/1[1]\n",
     "data/shared pattern=broadcast:2"},
    {{.pattern = Pattern::kScatter, .size = WorkloadSize::kSmall, .width = 2},
     "write-0:  > data/scattered[204800]\n"
     "read-0: data/scattered[0+102400] > \n"
     "read-1: data/scattered[102400+102400] > \n",
     "data/scattered pattern=scatter:102400"},
    {{.pattern = Pattern::kGather, .size = WorkloadSize::kSmall, .scale_millionths = 1, .width = 2},
     "write-0:  > data/gathered[0+4096]\n"
     "write-1:  > data/gathered[4096+4096]\n"
     "read-0: data/gathered[8192] > \n",
     "data/gathered pattern=gather:4096"},
};
INSTANTIATE_TEST_SUITE_P(Rows, Patterns, testing::ValuesIn(kRows));

TEST(Synthetic, GathersReaderComesAfterItsWriters) {
  const auto parts = MakeSynthetic({.pattern = Pattern::kGather, .width = 3});
  EXPECT_EQ(parts.front().workflow.tasks.back().predecessors.size(), 3U);
}

TEST(Synthetic, CountsWhatIsStored) {
  const auto stored = [](Pattern pattern, uint32_t copies) {
    return StoredBytes(MakeSynthetic({.pattern = pattern, .width = 2, .stage_out = true}), copies);
  };
  EXPECT_EQ(stored(Pattern::kPipeline, 1), 2U * 510'000);
  EXPECT_EQ(stored(Pattern::kReduce, 1), 2U * 10'000 + 100'000);
  EXPECT_EQ(stored(Pattern::kBroadcast, 3), 3U * 100'000 + 2 * 1000);
  EXPECT_EQ(stored(Pattern::kGather, 1), 2U * 102'400);
}

TEST(Synthetic, IsNamedInOneWord) {
  const auto all =
      ParseSynthetic("broadcast,large,scale=0.02,width=19,copies=4,compute=0.25,make=0.3");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->pattern, Pattern::kBroadcast);
  EXPECT_EQ(all->size, WorkloadSize::kLarge);
  EXPECT_EQ(all->scale_millionths, 20'000u);
  EXPECT_EQ(all->width, 19u);
  EXPECT_EQ(all->copies, 4u);
  EXPECT_EQ(all->compute.ns, Milliseconds(250).ns);
  EXPECT_EQ(all->make_ns_per_byte, 0.3);
  const auto least = ParseSynthetic("pipeline,small");
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->width, 0u);
  EXPECT_EQ(least->scale_millionths, kScaleOne);
  const std::pair<const char*, const char*> refused[] = {
      {"", "is not a synthetic workflow"},
      {"pipeline", "is not a synthetic workflow"},
      {"pipes,small", "is not a synthetic workflow"},
      {"pipeline,small,width=0", "'width=0'"},
      {"pipeline,small,width=1.5", "'width=1.5'"},
      {"pipeline,small,scale=", "'scale='"},
      {"pipeline,small,scale=1e999", "'scale=1e999'"},
      {"pipeline,small,compute=-1", "'compute=-1'"},
      {"pipeline,small,make=1001", "'make=1001'"},
      {"pipeline,small,depth=3", "'depth=3'"},
      {"pipeline,small,copies=2", "broadcasts nothing"},
  };
  for (const auto& [text, expected] : refused) {
    const auto read = ParseSynthetic(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(MessageOf(read.status()).find(expected), std::string::npos) << read.status();
  }
}

TEST(Synthetic, WhoWritesMoreComputesLonger) {
  const auto parts = MakeSynthetic({.pattern = Pattern::kReduce,
                                    .width = 2,
                                    .compute = Milliseconds(1),
                                    .make_ns_per_byte = 10});
  const SyntheticPart& part = parts.front();
  EXPECT_EQ(ComputingOf(part, TaskIndex{0}).ns, 1'000'000 + 10 * 10'000);
  EXPECT_EQ(ComputingOf(part, TaskIndex{2}).ns, 1'000'000 + 10 * 100'000);
}

TEST(Synthetic, NamesAreReadBack) {
  EXPECT_EQ(ParsePattern("gather"), Pattern::kGather);
  EXPECT_EQ(ParsePattern("Gather"), std::nullopt);
  EXPECT_EQ(ParseWorkloadSize("large"), WorkloadSize::kLarge);
  EXPECT_EQ(ParseWorkloadSize(""), std::nullopt);
}

}  // namespace
}  // namespace mosa::predict
