#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "predictor/workflow/read.h"
#include "tools/mosa/run_engine.h"
#include "tools/mosa/run_files.h"
#include "tools/mosa/run_hosts.h"
#include "tools/mosa/run_process.h"
#include "tools/mosa/run_record.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class Directory {
 public:
  Directory() {
    std::string name = fs::temp_directory_path() / "mosa-run-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Directory() { fs::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(path + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path;
};

// ---- where bytes are

std::map<std::string, uint64_t> Held(const char* layout, uint64_t size) {
  return BytesByNode(nlohmann::json::parse(layout), size);
}

TEST(BytesByNode, CountsStripesSpillsAndCopies) {
  EXPECT_THAT(Held(R"({"chunk_size":100,"segments":[{"begin":0,"width":1,"nodes":["a"]}]})", 250),
              ElementsAre(Pair("a", 250)));
  EXPECT_THAT(
      Held(R"({"chunk_size":100,"segments":[{"begin":0,"width":2,"nodes":["a","b"]}]})", 250),
      ElementsAre(Pair("a", 150), Pair("b", 100)));
  EXPECT_THAT(Held(R"({"chunk_size":100,"segments":[{"begin":0,"width":1,"nodes":["a"]},
                       {"begin":150,"width":2,"nodes":["b","a"]}]})",
                   350),
              ElementsAre(Pair("a", 250), Pair("b", 100)));
  EXPECT_THAT(
      Held(R"({"chunk_size":100,"segments":[{"begin":0,"width":1,"nodes":["a","b"]}]})", 50),
      ElementsAre(Pair("a", 50), Pair("b", 50)));
  EXPECT_THAT(Held(R"({"chunk_size":50,"run_chunks":2,
                       "segments":[{"begin":0,"width":2,"nodes":["a","b"]}]})",
                   250),
              ElementsAre(Pair("a", 150), Pair("b", 100)));
  EXPECT_THAT(Held(R"({"chunk_size":0,"segments":[]})", 50), IsEmpty());
}

TEST(ParseRate, KnowsUnits) {
  EXPECT_EQ(*ParseRate("200mbit"), 25'000'000U);
  EXPECT_EQ(*ParseRate("1gbit"), 125'000'000U);
  for (const char* bad : {"", "1", "mbit", "0mbit", "-1mbit", "1mb", "1mbit "})
    EXPECT_FALSE(ParseRate(bad).ok()) << bad;
}

TEST(FindHosts, SaysWhatDoesNotFit) {
  const struct {
    HostsRequest request;
    const char* sentence;
  } rows[] = {
      {{.names = {"a"}}, "--hosts and --exec need --mount"},
      {{.mount = "/tmp", .exec = "ssh {host}"}, "--exec and {host} need --hosts"},
      {{.mount = "/tmp", .names = {"a", "a"}}, "--hosts names a host twice"},
      {{.mount = "/tmp", .names = {"a", ""}}, "--hosts has an empty name"},
      {{.cluster = "nobody", .cluster_directory = "/no/such"},
       "there is no cluster named 'nobody'"},
      {{.mount = "/no/such"}, "/no/such: there is no such directory"},
      {{.mount = "/tmp", .directory = "../x"}, "--workdir '../x' is outside the mount"},
      {{.mount = "/tmp", .link = "fast"}, "'fast' is no rate: write it like 200mbit or 1gbit"},
  };
  for (const auto& row : rows)
    EXPECT_THAT(MessageOf(FindHosts(row.request).status()), HasSubstr(row.sentence));
}

// ---- processes

RunHost HostAt(const std::string& directory) {
  RunHost host;
  host.name = "a";
  host.mount_point = host.directory = directory;
  host.environment = {{"MOSA_HOST", "a"}};
  return host;
}

TaskProcesses::Ended RunOne(TaskProcesses& processes, const TaskCommand& command) {
  const auto pid = processes.Start(command);
  EXPECT_TRUE(pid.ok());
  for (int i = 0; i < 1000; ++i) {
    for (const auto& ended : processes.Wait(Milliseconds(50))) {
      if (ended.pid == *pid) return ended;
    }
  }
  ADD_FAILURE() << "it does not end";
  return {};
}

void CheckRunsCommands(const std::vector<std::string>& exec) {
  const Directory directory;
  RunHost host = HostAt(directory.path);
  host.exec = exec;
  TaskProcesses processes;
  TaskCommand command;
  command.host = &host;
  command.environment = {{"MOSA_TASK", "it's one"}};
  command.output_path = directory.path + "/out";
  command.error_path = directory.path + "/err";
  command.argv = {"sh", "-c", "echo \"$MOSA_TASK $MOSA_HOST $1\"; pwd; echo why >&2; exit 7", "sh",
                  "a 'b"};
  EXPECT_EQ(RunOne(processes, command).exit_code, 7);
  EXPECT_EQ(directory.Read("out"), "it's one a a 'b\n" + directory.path + "\n");
  EXPECT_EQ(directory.Read("err"), "why\n");
  command.argv = {"/no/such/program"};
  EXPECT_EQ(RunOne(processes, command).exit_code, 127);
  EXPECT_THAT(directory.Read("err"), HasSubstr("/no/such/program"));
  host.directory = "/no/such/directory";
  EXPECT_EQ(RunOne(processes, command).exit_code, 126);
}

TEST(TaskProcesses, RunsCommands) { CheckRunsCommands({}); }
TEST(TaskProcesses, RunsCommandsElsewhere) { CheckRunsCommands({"sh", "-c"}); }

bool Lives(const std::string& pid_text) {
  return !pid_text.empty() && kill(std::stoi(pid_text), 0) == 0;
}

// What a task started ends with it, in whatever session it is.
void CheckEndsAll(const std::vector<std::string>& exec) {
  const Directory directory;
  RunHost host = HostAt(directory.path);
  host.exec = exec;
  TaskCommand command;
  command.host = &host;
  command.output_path = directory.path + "/out";
  command.error_path = directory.path + "/err";
  command.argv = {"sh", "-c",
                  "sleep 100 & echo $! > child; setsid sleep 100 & echo $! > other; wait"};
  {
    TaskProcesses processes;
    ASSERT_TRUE(processes.Start(command).ok());
    for (int i = 0; i < 500 && directory.Read("other").empty(); ++i)
      processes.Wait(Milliseconds(10));
    EXPECT_TRUE(Lives(directory.Read("child")));
    EXPECT_THAT(processes.EndAll(Seconds(2)), testing::SizeIs(1));
    EXPECT_EQ(processes.running(), 0U);
  }
  EXPECT_FALSE(Lives(directory.Read("child")));
  EXPECT_FALSE(Lives(directory.Read("other")));
}

TEST(TaskProcesses, EndsAll) { CheckEndsAll({}); }
TEST(TaskProcesses, EndsAllElsewhere) { CheckEndsAll({"sh", "-c"}); }

// ---- whole runs in a plain directory

struct OneRun {
  Directory directory;
  Directory logs;
  predict::Workflow workflow;
  RunRecord record;
  EngineOptions options;

  explicit OneRun(const std::string& text, uint32_t slots = 2) {
    predict::BuildResult read = predict::ReadWorkflow(text, "w");
    EXPECT_THAT(read.faults, IsEmpty());
    workflow = std::move(read.workflow);
    record.hosts = {HostAt(directory.path), HostAt(directory.path)};
    record.hosts[1].name = "b";
    for (RunHost& host : record.hosts) host.slots = slots;
    record.tasks.resize(workflow.tasks.size());
    options.record_path = logs.path + "/record.json";
    options.logs = logs.path;
  }
  Status Run() { return Engine(workflow, record, options).Run(); }
  nlohmann::json Saved() const { return nlohmann::json::parse(logs.Read("record.json")); }
};

TEST(Engine, RunsEveryTaskOnceItsInputsAreThere) {
  OneRun setup(R"(tasks:
  - {id: sum, command: cat d/x y > sum, inputs: [d/x, y], outputs: [sum]}
  - {id: x, command: "sleep 0.1; echo x > d/x", outputs: [d/x]}
  - {id: y, command: "cat in > y", inputs: [in], outputs: [y]})");
  setup.directory.Write("in", "y\n");
  ASSERT_TRUE(setup.Run().ok());
  EXPECT_EQ(setup.directory.Read("sum"), "x\ny\n");
  const auto saved = setup.Saved();
  EXPECT_EQ(saved["outcome"], "done");
  const auto& sum = saved["tasks"][0];
  EXPECT_EQ(sum["state"], "done");
  EXPECT_EQ(sum["exit_code"], 0);
  EXPECT_EQ(sum["outputs"][0]["size_bytes"], 4);
  EXPECT_EQ(sum["inputs"][1]["path"], "y");
  EXPECT_GE(sum["start"].get<double>(), saved["tasks"][1]["end"].get<double>());
}

TEST(Engine, RetriesThenGivesUp) {
  OneRun setup(R"(tasks:
  - {id: a, command: "echo t >> tries; echo too bad >&2; test $(wc -l < tries) = 3", outputs: [o]}
  - {id: b, command: "cat o > p", inputs: [o], outputs: [p]})");
  const Status ended = setup.Run();
  EXPECT_EQ(ended.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(ended), HasSubstr("task 'a' (line 2) failed 3 times, at last on "));
  EXPECT_THAT(MessageOf(ended), HasSubstr("exit code 0, but it did not write 'o'"));
  const auto saved = setup.Saved();
  EXPECT_EQ(saved["outcome"], "failed");
  EXPECT_EQ(saved["tasks"][0]["attempts"].size(), 3U);
  EXPECT_EQ(saved["tasks"][0]["attempts"][0]["failure"], "exit code 1: too bad");
  EXPECT_NE(saved["tasks"][0]["attempts"][0]["host"], saved["tasks"][0]["attempts"][1]["host"]);
  EXPECT_EQ(saved["tasks"][1]["state"], "not run");
}

TEST(Engine, KeepsGoingIfTold) {
  const char* text = R"(tasks:
  - {id: bad, command: "false"}
  - {id: b, command: "sleep 0.2; echo > o", outputs: [o]}
  - {id: c, command: "echo > p", inputs: [o], outputs: [p]})";
  for (const bool keep_going : {false, true}) {
    OneRun setup(text);
    setup.options.retries = 0;
    setup.options.keep_going = keep_going;
    EXPECT_FALSE(setup.Run().ok());
    EXPECT_EQ(setup.Saved()["tasks"][1]["state"], "done");
    EXPECT_EQ(setup.Saved()["tasks"][2]["state"], keep_going ? "done" : "not run");
  }
}

TEST(Engine, AnOutputOfAnEarlierRunIsNoOutput) {
  OneRun setup("tasks:\n  - {id: a, command: 'true', outputs: [o]}\n");
  setup.directory.Write("o", "old");
  EXPECT_THAT(MessageOf(setup.Run()), HasSubstr("did not write 'o'"));
}

TEST(Engine, WritesAgainWhatIsLostInBetween) {
  OneRun setup(R"(tasks:
  - {id: a, command: "echo a >> log; echo a > x", outputs: [x]}
  - {id: b, command: "test -e once || { touch once; rm x; exit 1; }; cat x > y", inputs: [x],
     outputs: [y]})");
  setup.options.retries = 0;
  ASSERT_TRUE(setup.Run().ok());
  EXPECT_EQ(setup.directory.Read("y"), "a\n");
  EXPECT_EQ(setup.directory.Read("log"), "a\na\n");
}

TEST(Engine, FillsSlotsButNoMore) {
  std::string text = "tasks:\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format(
        "  - {{id: t{}, command: 'mkdir r{}; ls -d r* | wc -l >> counts; sleep 0.05; rmdir "
        "r{}'}}\n",
        i, i, i);
  OneRun setup(text, 2);
  ASSERT_TRUE(setup.Run().ok());
  std::istringstream counts(setup.directory.Read("counts"));
  int lines = 0, most = 0;
  for (int count = 0; counts >> count; ++lines) most = std::max(most, count);
  EXPECT_EQ(lines, 12);
  EXPECT_LE(most, 4);
  EXPECT_GE(most, 2);
}

TEST(RunRecord, IsReadBack) {
  OneRun setup(
      "tasks:\n  - {id: a, command: echo > o, outputs: [o]}\n  - {id: b, command: 'true'}\n");
  ASSERT_TRUE(setup.Run().ok());
  RunRecord again;
  again.tasks.resize(2);
  const auto earlier = ReadRecord(setup.options.record_path, setup.workflow, again);
  ASSERT_TRUE(earlier.ok());
  EXPECT_TRUE((*earlier)[0].done && (*earlier)[0].same);
  EXPECT_EQ(again.tasks[0].outputs.begin()->second.size_bytes, 1U);
  EXPECT_EQ(again.tasks[0].attempts.size(), 1U);
  OneRun changed("tasks:\n  - {id: a, command: date > o, outputs: [o]}\n");
  const auto other = ReadRecord(setup.options.record_path, changed.workflow, again);
  EXPECT_FALSE((*other)[0].same);
}

TEST(RunRecord, RefusesWhatIsNone) {
  const OneRun setup("tasks:\n  - {id: a, command: 'true'}\n");
  const struct {
    const char* text;
    const char* sentence;
  } rows[] = {{"", "is no record of a run"},
              {"{}", "is no record of a run"},
              {"[]", "is no record of a run"},
              {R"({"version": 7})", "is a record of version 7, only 1 is read"},
              {R"({"version": 1, "tasks": [{"id": 5}]})", "is no record of a run"},
              {R"({"version": 1, "tasks": 5})", "is no record of a run"}};
  for (const auto& row : rows) {
    setup.logs.Write("bad", row.text);
    RunRecord record;
    record.tasks.resize(1);
    EXPECT_THAT(MessageOf(ReadRecord(setup.logs.path + "/bad", setup.workflow, record).status()),
                HasSubstr(row.sentence))
        << row.text;
  }
}

}  // namespace
}  // namespace mosa::cli
