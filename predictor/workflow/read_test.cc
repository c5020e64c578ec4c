#include "predictor/workflow/read.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kWords = R"(name: words
tasks:
  - id: split
    command: split -n l/2 -d book.txt part.
    inputs: [book.txt]
    outputs: [part.00, ./x/../part.01]
  - id: count-0
    command: [wc, -w, part.00]
    inputs: [part.00]
    outputs: [words/0]
    runtime: 2.5
  - id: sum
    command: cat part.01 words/0 > total
    inputs: [part.01, words/0, /etc/hostname]
    outputs: [total]
    after: [split]
    stage: end
files:
  part.00: {size: 10M, pattern: pipeline}
  book.txt: {size: 20971520}
)";

Workflow Good(std::string_view text) {
  BuildResult result = ReadWorkflow(text, "unnamed");
  EXPECT_THAT(result.faults, ElementsAre());
  return std::move(result.workflow);
}

std::vector<std::string> Paths(const Workflow& workflow, const std::vector<PathIndex>& files) {
  std::vector<std::string> paths;
  for (const PathIndex file : files) paths.push_back(workflow.at(file).path);
  return paths;
}

TEST(ReadWorkflow, ReadsTheOwnForm) {
  const Workflow workflow = Good(kWords);
  EXPECT_EQ(workflow.name, "words");
  ASSERT_EQ(workflow.tasks.size(), 3U);
  const Task& split = workflow.tasks[0];
  EXPECT_THAT(split.command,
              ElementsAre("bash", "-c", "set -euo pipefail; split -n l/2 -d book.txt part."));
  EXPECT_THAT(Paths(workflow, split.outputs), ElementsAre("part.00", "part.01"));
  EXPECT_EQ(split.line, 3);
  EXPECT_EQ(split.levels_to_end, 2U);
  const Task& count = workflow.tasks[1];
  EXPECT_THAT(count.command, ElementsAre("wc", "-w", "part.00"));
  EXPECT_EQ(count.expected, Milliseconds(2500));
  EXPECT_EQ(count.stage, "count");
  const Task& sum = workflow.tasks[2];
  EXPECT_THAT(sum.predecessors, ElementsAre(TaskIndex{0}, TaskIndex{1}));
  EXPECT_EQ(sum.stage, "end");
  EXPECT_EQ(sum.level, 2U);
  EXPECT_THAT(Paths(workflow, OutsideInputs(workflow)), ElementsAre("book.txt", "/etc/hostname"));
  const WorkflowFile& part = workflow.at(split.outputs[0]);
  EXPECT_EQ(part.size_bytes, 10U << 20);
  EXPECT_THAT(part.hints, ElementsAre(testing::Pair("pattern", "pipeline")));
}

TEST(ReadWorkflow, GivesTextsToTheShellThatTheWorkflowNames) {
  const Workflow workflow = Good(R"(shell: [/bin/sh, -e, -c]
tasks:
  - {id: a, command: true | false}
  - {id: b, command: [echo, true | false]}
)");
  EXPECT_THAT(workflow.tasks[0].command, ElementsAre("/bin/sh", "-e", "-c", "true | false"));
  EXPECT_THAT(workflow.tasks[1].command, ElementsAre("echo", "true | false"));
}

TEST(ReadWorkflow, ReadsTheOwnFormAsJson) {
  const Workflow workflow = Good(R"({
  "tasks": [
    {"id": "a", "command": "true", "outputs": ["x"]},
    {"id": "b",
     "command": ["true"], "inputs": ["x"]}
  ]})");
  EXPECT_EQ(workflow.name, "unnamed");
  EXPECT_EQ(workflow.tasks[1].line, 4);
  EXPECT_THAT(workflow.tasks[1].predecessors, ElementsAre(TaskIndex{0}));
}

// The same two tasks in each version.
constexpr const char* kOld = R"({
 "name": "montage", "schemaVersion": "VERSION",
 "workflow": {"makespan": 5, "tasks": [
  {"name": "mProject_ID0000001", "id": "ID0000001", "category": "mProject", "RUNTIME": 1.5,
   "parents": [], "children": ["mAdd_ID0000002"],
   "command": {"program": "mProject", "arguments": ["-X", "in.fits", "--name a b", "two words"]},
   "files": [{"link": "input", "name": "in.fits", "path": "raw/", "SIZE": 100},
             {"link": "output", "name": "p.fits", "SIZE": 200}]},
  {"name": "mAdd_ID0000002", "id": "ID0000002", "RUNTIME": 2, "parents": ["ID0000001"],
   "command": {"program": "mAdd"},
   "files": [{"link": "input", "name": "p.fits", "SIZE": 200},
             {"link": "output", "name": "sum.fits", "SIZE": 300}]}]}})";
constexpr const char* kNew = R"({
 "name": "montage", "schemaVersion": "VERSION",
 "workflow": {
  "specification": {"tasks": [
   {"name": "mProject", "id": "mProject_ID0000001", "parents": [], "children": ["mAdd_ID0000002"],
    "inputFiles": ["raw/in.fits"], "outputFiles": ["p.fits"]},
   {"name": "mAdd", "id": "mAdd_ID0000002", "parents": ["mProject_ID0000001"], "children": [],
    "inputFiles": ["p.fits"], "outputFiles": ["sum.fits"]}],
   "files": [{"id": "raw/in.fits", "sizeInBytes": 100}, {"id": "p.fits", "sizeInBytes": 200},
             {"id": "sum.fits", "sizeInBytes": 300}]},
  "execution": {"makespanInSeconds": 5, "executedAt": "2024-01-01T00:00:00Z", "tasks": [
   {"id": "mProject_ID0000001", "runtimeInSeconds": 1.5,
    "command": {"program": "mProject", "arguments": ["-X", "in.fits", "--name a b", "two words"]}},
   {"id": "mAdd_ID0000002", "runtimeInSeconds": 2, "command": {"program": "mAdd"}}]}}})";

std::string Replace(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

void CheckMontage(const std::string& text) {
  const Workflow workflow = Good(text);
  EXPECT_EQ(workflow.name, "montage");
  ASSERT_EQ(workflow.tasks.size(), 2U);
  const Task& project = workflow.tasks[0];
  EXPECT_EQ(project.id, "mProject_ID0000001");
  EXPECT_EQ(project.stage, "mProject");
  EXPECT_THAT(project.command,
              ElementsAre("mProject", "-X", "in.fits", "--name", "a b", "two words"));
  EXPECT_EQ(project.expected, Milliseconds(1500));
  EXPECT_THAT(Paths(workflow, project.inputs), ElementsAre("raw/in.fits"));
  EXPECT_THAT(Paths(workflow, project.outputs), ElementsAre("p.fits"));
  EXPECT_EQ(workflow.at(project.outputs[0]).size_bytes, 200U);
  EXPECT_EQ(workflow.tasks[1].stage, "mAdd");
  EXPECT_THAT(workflow.tasks[1].predecessors, ElementsAre(TaskIndex{0}));
}

TEST(ReadWorkflow, TakesIdsOfWfFormatAsNames) {
  const std::string text =
      Replace(Replace(kNew, "VERSION", "1.5"), "\"p.fits\"", "\"//c7/p.fits\"");
  const Workflow workflow = Good(Replace(text, "\"raw/in.fits\"", "\"/raw/in.fits\""));
  EXPECT_THAT(Paths(workflow, OutsideInputs(workflow)), ElementsAre("raw/in.fits"));
  EXPECT_EQ(workflow.at(workflow.tasks[0].outputs[0]).path, "c7/p.fits");
  EXPECT_THAT(workflow.tasks[1].predecessors, ElementsAre(TaskIndex{0}));
  const std::string twice = Replace(text, "\"sum.fits\"", "\"c7/p.fits\"");
  EXPECT_THAT(
      ReadWorkflow(twice, "w", {}).faults,
      Contains(HasSubstr("the files '//c7/p.fits' and 'c7/p.fits' would have the same name")));
  const std::string unnamed = Replace(Replace(kNew, "VERSION", "1.5"), "\"p.fits\"", "\"/\"");
  EXPECT_FALSE(ReadWorkflow(unnamed, "w", {}).faults.empty());
}

TEST(ReadWorkflow, ReadsWfFormat) {
  CheckMontage(
      Replace(Replace(Replace(kOld, "VERSION", "1.3"), "RUNTIME", "runtime"), "SIZE", "size"));
  CheckMontage(Replace(Replace(Replace(kOld, "VERSION", "1.4"), "RUNTIME", "runtimeInSeconds"),
                       "SIZE", "sizeInBytes"));
  CheckMontage(Replace(kNew, "VERSION", "1.5"));
  CheckMontage(Replace(kNew, "VERSION", "1.6"));
}

TEST(ReadWorkflow, TellsTasksOfOneNameApartByTheirIds) {
  const Workflow workflow = Good(R"({"name": "w", "schemaVersion": "1.3", "workflow": {"tasks": [
    {"name": "step", "id": "1", "command": {"program": "true"}},
    {"name": "step", "id": "2", "parents": ["1"], "command": {"program": "true"}}]}})");
  EXPECT_EQ(workflow.tasks[1].id, "step_2");
  EXPECT_THAT(workflow.tasks[1].predecessors, ElementsAre(TaskIndex{0}));
}

TEST(ReadWorkflow, JoinsPathAndName) {
  const Workflow workflow = Good(R"({"name": "w", "schemaVersion": "1.4", "workflow": {"tasks": [
    {"name": "a", "command": {"program": "true"}, "files": [
      {"link": "output", "name": "f", "path": "data", "sizeInBytes": 1e6},
      {"link": "output", "name": "g", "path": "data/", "sizeInBytes": 1234.0}]}]}})");
  EXPECT_THAT(Paths(workflow, workflow.tasks[0].outputs), ElementsAre("data/f", "data/g"));
  EXPECT_EQ(workflow.at(workflow.tasks[0].outputs[0]).size_bytes, 1'000'000U);
  EXPECT_EQ(workflow.at(workflow.tasks[0].outputs[1]).size_bytes, 1234U);
}

// Paths of the same files, relative to the run's directory and as a host sees them.
TEST(ReadWorkflow, KnowsFilesOfTheRunByTheirAbsolutePaths) {
  const BuildResult read = ReadWorkflow(R"(tasks:
  - {id: a, command: x, inputs: [/m/h1/run/in, /m/h1/other], outputs: [/m/h2/run/./x]}
  - {id: b, command: x, inputs: [/m/h1/run/d/../x], outputs: [y]}
files:
  /m/h1/run/x: {pattern: pipeline}
)",
                                        "w", {"/m/h1/run", "/m/h2/run"});
  ASSERT_THAT(read.faults, ElementsAre());
  const Workflow& workflow = read.workflow;
  EXPECT_THAT(Paths(workflow, workflow.tasks[0].inputs), ElementsAre("in", "/m/h1/other"));
  EXPECT_THAT(Paths(workflow, workflow.tasks[0].outputs), ElementsAre("x"));
  EXPECT_THAT(workflow.tasks[1].predecessors, ElementsAre(TaskIndex{0}));
  EXPECT_EQ(workflow.at(workflow.tasks[0].outputs[0]).hints.size(), 1U);
}

TEST(ReadWorkflow, TakesWhatATaskNeedsOfItsHost) {
  const Workflow own =
      Good("tasks:\n  - {id: a, command: x, cores: 4, memory: 2G}\n  - {id: b, command: x}\n");
  EXPECT_EQ(own.tasks[0].needs, (TaskNeeds{4, uint64_t{2} << 30}));
  EXPECT_EQ(own.tasks[1].needs, TaskNeeds{});
  const Workflow recorded = Good(R"({"schemaVersion": "1.5", "name": "w", "workflow": {
    "specification": {"tasks": [{"id": "a", "name": "a"}, {"id": "b", "name": "b"}], "files": []},
    "execution": {"tasks": [
      {"id": "a", "runtimeInSeconds": 1, "coreCount": 2.0, "command": {"program": "x"}},
      {"id": "b", "runtimeInSeconds": 1, "coreCount": 0, "command": {"program": "x"}}]}}})");
  EXPECT_EQ(recorded.tasks[0].needs.cores, 2U);
  EXPECT_EQ(recorded.tasks[1].needs.cores, 1U);
}

TEST(ReadWorkflow, TakesADirectoryAsOneOutput) {
  const Workflow workflow = Good(R"(tasks:
  - {id: use, command: cat out/deep/a, inputs: [out/deep/a, out/b, out], outputs: [x]}
  - {id: make, command: fill out, outputs: [./out/]}
files: {out/: {size: 10M, lifetime: temporary}}
)");
  ASSERT_EQ(workflow.files.size(), 2U);
  const WorkflowFile& directory = workflow.files[0];
  EXPECT_TRUE(directory.is_directory);
  EXPECT_EQ(directory.path, "out");
  EXPECT_EQ(NameOf(directory), "out/");
  EXPECT_EQ(directory.size_bytes, 10U << 20);
  EXPECT_EQ(directory.producer, TaskIndex{1});
  EXPECT_THAT(workflow.tasks[0].inputs, ElementsAre(PathIndex{0}));
  EXPECT_THAT(workflow.tasks[0].predecessors, ElementsAre(TaskIndex{1}));
  EXPECT_FALSE(workflow.files[1].is_directory);
}

TEST(ReadWorkflow, TakesBytesThatAreNoText) {
  const Workflow workflow = Good(R"(tasks:
  - {id: a, command: [cat, {b64: cGFydC7/}], inputs: [{b64: cGFydC7/}, {b64: YQ==},
     {b64: YWI=}, {b64: YWJj}, {b64: YWJjZA}]})");
  EXPECT_EQ(workflow.tasks[0].command[1], "part.\xff");
  EXPECT_THAT(Paths(workflow, workflow.tasks[0].inputs),
              ElementsAre("part.\xff", "a", "ab", "abc", "abcd"));
}

TEST(ReadWorkflow, TakesManyInputs) {
  std::string text = "tasks:\n  - {id: a, command: x, inputs: [f0";
  for (int i = 1; i < 200'000; ++i) text += fmt::format(",f{}", i);
  EXPECT_EQ(Good(text + "]}\n").tasks[0].inputs.size(), 200'000U);
}

struct Bad {
  const char* text;
  const char* sentence;
};
const Bad kBad[] = {
    {"", "the text is empty"},
    {"[", "line 1: not JSON at '['"},
    {"{\n\"a\": tru}", "line 2: not JSON at '\"a\": tru}'"},
    {"tasks: [\n", "line 2: not YAML: "},
    {"a: &x 1\nb: *x\n", "line 2: aliases are not supported: write out what it stands for"},
    {"a: 1\n---\nb: 2\n", "more than one document"},
    {"a: 1\na: 2\n", "line 2: 'a' occurs twice"},
    {"? [a]\n: 1\n", "line 1: a key must be a single word"},
    {"- a\n", "line 1: a workflow must be a map with 'tasks'"},
    {"name: x\n", "the workflow has no tasks"},
    {"tasks: 5\n", "line 1: 'tasks' of the workflow must be a list"},
    {"tasks:\n  - 5\n", "line 2: every item of 'tasks' must be a map"},
    {"tasks:\n  - {id: a, comand: x}\n",
     "line 2: task 'a' has an unknown key 'comand': did you mean 'command'?"},
    {"tasks:\n  - {id: a, command: x, in: [f]}\n",
     "line 2: task 'a' has an unknown key 'in': known keys are id, stage, command, inputs, "
     "outputs, after, runtime, cores, memory"},
    {"tasks:\n  - {id: a, command: x, priority: 1}\n",
     "has an unknown key 'priority': known keys are id, "},
    {"tasks:\n  - {id: a, command: x, output: [f]}\n", "did you mean 'outputs'?"},
    {"tasks:\n  - {id: a, command: x, inputs: y}\n",
     "line 2: 'inputs' of task 'a' must be a list of texts"},
    {"tasks:\n  - {id: a, command: x, inputs: [{b64: 'a?=='}]}\n",
     "line 2: 'inputs' of task 'a' must be a list of texts"},
    {"tasks:\n  - {id: a, command: x, inputs: [{b64: YQ=x}]}\n",
     "line 2: 'inputs' of task 'a' must be a list of texts"},
    {"tasks:\n  - {id: a, command: x, inputs: [[y]]}\n",
     "line 2: 'inputs' of task 'a' must be a list of texts"},
    {"tasks:\n  - {id: a, command: x, runtime: soon}\n",
     "line 2: 'runtime' of task 'a' must be seconds from 0 to 1e9, not 'soon'"},
    {"tasks:\n  - {id: a, command: x, cores: 0}\n",
     "line 2: 'cores' of task 'a' must be a whole number from 1 to 4096, not '0'"},
    {"tasks:\n  - {id: a, command: x, cores: 1.5}\n", "from 1 to 4096, not '1.5'"},
    {"tasks:\n  - {id: a, command: x, memory: lots}\n", "line 2: 'memory' of task 'a' must be"},
    {"tasks:\n  - {id: [a], command: x}\n", "line 2: 'id' of the task must be a text"},
    {"tasks:\n  - {id: a, command: x, outputs: [f]}\nfiles:\n  f: {size: much}\n",
     "line 4: 'size' of file 'f' must be a whole number with an optional K, M, G or T, such as "
     "1048576, 64K or 1M, not 'much'"},
    {"tasks:\n  - {id: a, command: x, outputs: [f]}\nfiles:\n  f: {size: 2.2M}\n",
     "'size' of file 'f' must be a whole number with an optional K, M, G or T, such as 1048576, "
     "64K or 1M, not '2.2M'"},
    {"tasks:\n  - {id: a, command: x, outputs: [f]}\nfiles:\n  f: 7\n",
     "line 4: file 'f' needs a map, such as {size: 10M, pattern: pipeline}"},
    {"tasks:\n  - {id: a, command: x}\nfiles: 7\n", "line 3: 'files' must be a map of paths"},
    {"tasks:\n  - {id: a, command: x}\nfiles:\n  f: {size: 1}\n",
     "file 'f' (line 4) is neither read nor written by any task"},
    {"tasks:\n  - {id: a, command: x, inputs: [f]}\nfiles:\n  f: {pattern: reduce}\n",
     "file 'f' (line 4) has hints, but no task writes it"},
    {"tasks:\n  - {command: x}\n", "task '' (line 2) needs an id of one line"},
    {"tasks:\n  - {id: a, command: x}\n  - {id: a, command: y}\n",
     "task 'a' (line 3) has the same id as that of line 2"},
    {"tasks:\n  - {id: a}\n", "task 'a' (line 2) has no command"},
    {"tasks:\n  - {id: a, command: ' '}\n", "task 'a' (line 2) has no command"},
    {"shell: sh\ntasks:\n  - {id: a, command: x}\n",
     "line 1: 'shell' of the workflow must be a list of texts"},
    {"tasks:\n  - {id: a, command: ['', x]}\n", "task 'a' (line 2) has no command"},
    {"tasks:\n  - {id: a, command: x, outputs: [../f]}\n",
     "task 'a' (line 2) writes '../f', which is outside the mount: paths may not leave the run's "
     "directory"},
    {"tasks:\n  - {id: a, command: x, outputs: [/tmp/f]}\n",
     "task 'a' (line 2) writes '/tmp/f', which is outside the mount: outputs are paths below the "
     "run's directory"},
    {"tasks:\n  - {id: a, command: x, inputs: [b/../../f]}\n",
     "task 'a' (line 2) reads 'b/../../f', which is outside the mount"},
    {"tasks:\n  - {id: a, command: x, outputs: ['.']}\n",
     "task 'a' (line 2) writes '.', which names no file"},
    {"tasks:\n  - {id: a, command: x, outputs: [f]}\n  - {id: b, command: x, outputs: [./f]}\n",
     "'./f' is written by task 'a' (line 2) and by task 'b' (line 3)"},
    {"tasks:\n  - {id: a, command: x, outputs: [f, f]}\n",
     "task 'a' (line 2) names its output 'f' twice"},
    {"tasks:\n  - {id: a, command: x, inputs: [f], outputs: [f]}\n",
     "task 'a' (line 2) reads 'f', which it also writes"},
    {"tasks:\n  - {id: a, command: x, outputs: [d]}\n  - {id: b, command: x, outputs: [d/e/f]}\n",
     "task 'b' (line 3) writes 'd/e/f', but 'd', which task 'a' (line 2) writes, is not a "
     "directory"},
    {"tasks:\n  - {id: a, command: x, outputs: [d/]}\n  - {id: b, command: x, outputs: [d/e/f]}\n",
     "task 'b' (line 3) writes 'd/e/f', but all of 'd/' is one output, of task 'a' (line 2)"},
    {"tasks:\n  - {id: a, command: x, outputs: [d/, d]}\n",
     "task 'a' (line 2) names its output 'd' twice"},
    {"tasks:\n  - {id: a, command: x, inputs: [d/f], outputs: [d/]}\n",
     "task 'a' (line 2) reads 'd/', which it also writes"},
    {"tasks:\n  - {id: a, command: x, outputs: [./]}\n",
     "task 'a' (line 2) writes './', which names no file"},
    {"tasks:\n  - {id: a, command: x, after: [b]}\n",
     "task 'a' (line 2) comes after 'b', but there is no such task"},
    {"tasks:\n  - {id: a, command: x, inputs: [g], outputs: [f]}\n"
     "  - {id: b, command: x, inputs: [f], outputs: [g]}\n"
     "  - {id: c, command: x, inputs: [g]}\n",
     "tasks wait for each other in a cycle: task 'a' (line 2) waits for task 'b' (line 3) waits "
     "for task 'a' (line 2)"},
    {R"({"schemaVersion": "1.2", "name": "w", "workflow": {}})",
     "unsupported WfFormat '1.2': 1.3, 1.4, 1.5 and 1.6 can be read"},
    {R"({"schemaVersion": "1.3", "name": "w"})", "a WfFormat text needs a map 'workflow'"},
    {R"({"schemaVersion": "1.5", "name": "w", "workflow": {}})",
     "'workflow' needs a map 'specification'"},
    {R"({"schemaVersion": "1.3", "workflow": {"tasks": [{"name": "a"}]}})",
     "task 'a' (line 1) has no command"},
    {R"({"schemaVersion": "1.3", "workflow": {"tasks": [{"name": "a", "children": ["b"]}]}})",
     "task 'a' has the child 'b', but there is no such task"},
    {R"({"schemaVersion": "1.3", "workflow": {"tasks": [
         {"name": "a", "id": "1"}, {"name": "a", "id": "2"}, {"name": "b", "parents": ["a"]}]}})",
     "task 'b' has the parent 'a', but several tasks have that name: give their ids"},
    {R"({"schemaVersion": "1.3", "workflow": {"tasks": [
         {"name": "a", "files": [{"name": "f"}]}]}})",
     "'link' of a file of task 'a' must be input or output, not ''"},
    {R"({"schemaVersion": "1.5", "workflow": {"specification": {"tasks": []},
         "execution": {"tasks": [{"id": "a"}]}}})",
     "line 2: 'execution' has task 'a', but 'specification' does not"},
};

TEST(ReadWorkflow, SaysWhatIsWrongAndWhere) {
  for (const Bad& bad : kBad) {
    EXPECT_THAT(ReadWorkflow(bad.text, "x").faults, Contains(HasSubstr(bad.sentence))) << bad.text;
  }
}

TEST(ReadWorkflow, NamesEveryFault) {
  const auto result = ReadWorkflow(
      "tasks:\n  - {id: a, outputs: [/f]}\n  - {id: b, command: x, after: [c]}\n", "x");
  EXPECT_EQ(result.faults.size(), 3U);
}

TEST(ReadWorkflow, RefusesWhatIsTooDeep) {
  EXPECT_THAT(ReadWorkflow(std::string(10'000, '['), "x").faults,
              ElementsAre(HasSubstr("more than 64 levels deep")));
  EXPECT_FALSE(ReadWorkflow("a: " + std::string(10'000, '['), "x").faults.empty());
}

TEST(StageOf, DropsWhatTellsTasksApart) {
  EXPECT_EQ(StageOf("mProject_ID0000012"), "mProject");
  EXPECT_EQ(StageOf("count-3"), "count");
  EXPECT_EQ(StageOf("12"), "12");
  EXPECT_EQ(StageOf("merge"), "merge");
}

}  // namespace
}  // namespace mosa::predict
