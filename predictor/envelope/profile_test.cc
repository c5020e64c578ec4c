#include "predictor/envelope/profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "predictor/workflow/operations.h"
#include "predictor/workflow/read.h"

namespace mosa::predict {
namespace {

using enum EnvelopeOperation;

Workflow Read(const std::string& text) {
  BuildResult read = ReadWorkflow(text, "test");
  EXPECT_TRUE(read.faults.empty()) << fmt::format("{}", fmt::join(read.faults, "\n"));
  return std::move(read.workflow);
}

// A small mProject: each task reads an image of its own and the shared header, and writes two
// files.
std::string SmallProject(int tasks) {
  std::string text = "tasks:\n";
  std::string files = "files:\n  header: {size: 300}\n";
  for (int i = 0; i < tasks; ++i) {
    text += fmt::format(
        "  - {{id: mProject-{0}, command: 'true', inputs: [raw.{0}, header], "
        "outputs: [out.{0}, area.{0}]}}\n",
        i);
    files += fmt::format("  raw.{0}: {{size: 4M}}\n  out.{0}: {{size: 8M}}\n", i);
    files += fmt::format("  area.{0}: {{size: 8M}}\n", i);
  }
  return text + files;
}

TEST(Profile, CountsFilesBytesAndSharing) {
  const auto profiles = ProfileOf(Read(SmallProject(4)));
  ASSERT_TRUE(profiles.ok()) << profiles.status();
  ASSERT_EQ(profiles->size(), 1U);
  const StageProfile& stage = profiles->front();
  EXPECT_EQ(stage.name, "mProject");
  EXPECT_EQ(stage.tasks, 4U);
  EXPECT_EQ(stage.files_read, 8U) << "as Table 1: two for each task";
  EXPECT_EQ(stage.files_written, 8U);
  EXPECT_EQ(stage.bytes_read, 4U * ((4 << 20) + 300));
  EXPECT_EQ(stage.bytes_written, 4U * (16 << 20));
  EXPECT_EQ(stage.files_by_sharing.at(Sharing::kOneToOne), 4U);
  EXPECT_EQ(stage.files_by_sharing.at(Sharing::kAllToOne), 4U);
  EXPECT_EQ(stage.transfers.at({kRead, 4 << 20}), 4U);
  EXPECT_EQ(stage.transfers.at({kSharedRead, 300}), 4U);
  EXPECT_EQ(stage.transfers.at({kWrite, 8 << 20}), 8U);
  EXPECT_EQ(stage.tasks_creating, 4U);
}

TEST(Profile, AlignsCallsByTheirOrder) {
  const auto profiles = ProfileOf(Read(SmallProject(4)));
  ASSERT_TRUE(profiles.ok()) << profiles.status();
  const StageProfile& stage = profiles->front();
  EXPECT_FALSE(stage.calls_known);
  EXPECT_EQ(stage.trace_length, 8U) << "open, read, open, read, create, write, create, write";
  EXPECT_EQ(stage.open_spikes, 2U);
  EXPECT_EQ(stage.create_spikes, 2U);
  EXPECT_EQ(stage.open_concurrency_max, 4U);
  EXPECT_EQ(stage.read_concurrency_max, 4U);
  EXPECT_EQ(stage.bytes_read_per_call_max, 4U * (4 << 20));
  EXPECT_EQ(stage.bytes_written_per_call_max, 4U * (8 << 20));
  EXPECT_EQ(stage.read_spikes.at(Sharing::kOneToOne), 1U);
  EXPECT_EQ(stage.read_spikes.at(Sharing::kAllToOne), 1U);
}

TEST(Profile, MergesFewToOneIntoOneToOne) {
  const auto profiles = ProfileOf(Read(R"(
tasks:
  - {id: a-1, command: 'true', inputs: [x], outputs: [o1]}
  - {id: a-2, command: 'true', inputs: [x], outputs: [o2]}
  - {id: a-3, command: 'true', inputs: [], outputs: [o3]}
  - {id: b, command: 'true', inputs: [o1, o2, o3], outputs: [all]}
files:
  x: {size: 100}
  o1: {size: 1}
  o2: {size: 1}
  o3: {size: 1}
  all: {size: 3}
)"));
  ASSERT_TRUE(profiles.ok()) << profiles.status();
  ASSERT_EQ(profiles->size(), 2U);
  const StageProfile& first = profiles->front();
  EXPECT_EQ(first.files_by_sharing.at(Sharing::kFewToOne), 2U);
  EXPECT_EQ(first.transfers.at({kRead, 100}), 2U);
  const StageProfile& last = profiles->back();
  EXPECT_EQ(last.name, "b");
  EXPECT_EQ(last.files_by_sharing.at(Sharing::kOneToOne), 3U) << "a stage of one task has no N";
}

TEST(Profile, GoesByOperationsWhereTheyAreKnown) {
  Workflow workflow = Read(R"(
tasks:
  - {id: s-1, command: 'true', inputs: [in, list], outputs: [out.1]}
  - {id: s-2, command: 'true', inputs: [in, list], outputs: [out.2]}
files:
  in: {size: 128K}
  list: {size: 10}
  out.1: {size: 64K}
  out.2: {size: 64K}
)");
  // One task reads half of the input in two calls. No task reads the list, but both open it.
  const auto faults = AddOperations(R"({"mosa_operations": 1, "tasks": [
      {"id": "s-1", "files": ["in", "out.1"],
       "operations": ["0 r 0 0 32768", "0 r 0 32768 32768", "5 w 1 0 65536"]},
      {"id": "s-2", "files": ["in", "out.2"],
       "operations": ["0 r 0 0 65536", "0 w 1 0 65536", "0 r 1 0 100"]}]})",
                                    workflow);
  ASSERT_TRUE(faults.empty()) << faults.front();
  const auto profiles = ProfileOf(workflow);
  ASSERT_TRUE(profiles.ok()) << profiles.status();
  const StageProfile& stage = profiles->front();
  EXPECT_TRUE(stage.calls_known);
  EXPECT_EQ(stage.bytes_read, 2U * 65536) << "not what it reads of its own";
  EXPECT_EQ(stage.files_read, 4U);
  EXPECT_EQ(stage.transfers.at({kSharedRead, 65536}), 2U);
  EXPECT_EQ(stage.transfers.at({kSharedRead, 0}), 2U) << "the list";
  // s-1: open r r create w open; s-2: open r create w r open.
  EXPECT_EQ(stage.trace_length, 6U);
  EXPECT_EQ(stage.read_concurrency_max, 2U);
  EXPECT_EQ(stage.bytes_read_per_call_max, 32768U + 65536U);
  EXPECT_EQ(stage.create_concurrency_max, 1U);
  EXPECT_EQ(stage.create_spikes, 2U) << "half of two tasks is one";
}

TEST(Profile, NamesAFileWithoutASize) {
  const auto profiles = ProfileOf(Read(R"(
tasks:
  - {id: a, command: 'true', inputs: [x]}
)"));
  EXPECT_EQ(profiles.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(profiles.status().message().find("file 'x' of task 'a' (line 3) has no size"),
            std::string::npos)
      << profiles.status();
}

}  // namespace
}  // namespace mosa::predict
