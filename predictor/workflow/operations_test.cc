#include "predictor/workflow/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/workflow/read.h"

namespace mosa::predict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Workflow Words() {
  BuildResult result = ReadWorkflow(R"(
tasks:
  - {id: split, command: split, inputs: [book], outputs: [part]}
  - {id: count, command: wc, inputs: [part], outputs: [total]}
files: {book: {size: 1M}, part: {size: 4K}})",
                                    "words");
  EXPECT_THAT(result.faults, IsEmpty());
  return std::move(result.workflow);
}

TEST(Operations, AreReadInTheirOrder) {
  Workflow workflow = Words();
  const auto faults = AddOperations(R"({"mosa_operations": 1, "tasks": [
    {"id": "split", "files": ["book", "part"],
     "operations": ["2500 r 0 0 1048576", "5 d 1", "0 w 1 1024 3072", "0 r 1 0 10", "77 c"]}]})",
                                    workflow);
  ASSERT_THAT(faults, IsEmpty());
  const auto& operations = workflow.tasks[0].operations;
  ASSERT_EQ(operations.size(), 5U);
  EXPECT_EQ(operations[0].before, Nanoseconds(2500));
  EXPECT_EQ(operations[0].kind, TaskOperation::Kind::kRead);
  EXPECT_EQ(workflow.at(operations[0].file).path, "book");
  EXPECT_EQ(operations[0].size_bytes, 1048576U);
  EXPECT_EQ(operations[1].kind, TaskOperation::Kind::kRemove);
  EXPECT_EQ(workflow.at(operations[1].file).path, "part");
  EXPECT_EQ(operations[2].kind, TaskOperation::Kind::kWrite);
  EXPECT_EQ(operations[2].offset, 1024U);
  EXPECT_EQ(operations[4].kind, TaskOperation::Kind::kCompute);
  EXPECT_EQ(operations[4].before, Nanoseconds(77));
  EXPECT_THAT(workflow.tasks[1].operations, IsEmpty());
}

TEST(Operations, FaultsNameTheLine) {
  struct Row {
    const char* text;
    const char* fault;
  };
  const char* const kHead = "{\"mosa_operations\": 1, \"tasks\": [\n";
  const std::vector<Row> rows = {
      {R"({"id": "sort"}]})", "line 2: the workload has no task 'sort'"},
      {R"({"id": "split", "files": ["x"], "operations": []}]})", "'x', which is not a file"},
      {R"({"id": "split", "files": ["total"], "operations": ["0 r 0 0 1"]}]})",
       "reads 'total', which is none of its inputs and outputs"},
      {R"({"id": "split", "files": ["book"], "operations": ["0 w 0 0 1"]}]})",
       "writes 'book', which is none of its outputs"},
      {R"({"id": "split", "files": ["book"], "operations": ["0 d 0"]}]})",
       "removes 'book', which is none of its outputs"},
      {R"({"id": "split", "files": ["part"], "operations": ["0 d 0 1"]}]})", "must look like"},
      {"{\"id\": \"split\", \"files\": [\"part\"], \"operations\": [\"0 w 0 0 9\",\n\"0 d 0\"]}]}",
       "line 3: task 'split' removes 'part' after other operations on it"},
      {R"({"id": "split", "files": ["part"], "operations": ["0 d 0", "0 c", "0 d 0"]}]})",
       "removes 'part' after other operations on it"},
      {R"({"id": "split", "files": ["part"], "operations": ["0 w 0 4000 97"]}]})",
       "bytes 4000 to 4097 of 'part', which has only 4096"},
      {R"({"id": "split", "files": ["part"], "operations": ["0 w 1 0 1"]}]})",
       "a number below 1 for the file, not '0 w 1 0 1'"},
      {R"({"id": "split", "files": ["part"], "operations": ["-1 c"]}]})", "not '-1 c'"},
      {R"({"id": "split", "files": ["part"], "operations": ["0 r 0 0 1 2"]}]})", "not '0 r 0 0 1"},
      {R"({"id": "split", "files": []}]})", "needs a list 'operations'"},
      {R"({"id": "split", "file": [], "operations": []}]})",
       "has an unknown key 'file': did you mean 'files'?"},
  };
  for (const Row& row : rows) {
    Workflow workflow = Words();
    EXPECT_THAT(AddOperations(std::string(kHead) + row.text, workflow),
                ElementsAre(HasSubstr(row.fault)))
        << row.text;
  }
  Workflow workflow = Words();
  EXPECT_THAT(AddOperations("{\"mosa_operations\": 2}", workflow),
              ElementsAre(HasSubstr("unsupported operations version '2'")));
  EXPECT_THAT(AddOperations("{}", workflow), ElementsAre(HasSubstr("not a file of operations")));
  EXPECT_THAT(AddOperations("{\"mosa_oper", workflow), ElementsAre(HasSubstr("line 1")));
}

}  // namespace
}  // namespace mosa::predict
