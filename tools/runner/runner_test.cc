#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "predictor/workflow/read.h"
#include "tools/cluster/process.h"
#include "tools/hosts/files.h"
#include "tools/hosts/hand.h"
#include "tools/hosts/host_mount.h"
#include "tools/hosts/hosts.h"
#include "tools/hosts/task_processes.h"
#include "tools/runner/begin.h"
#include "tools/runner/engine.h"
#include "tools/runner/record.h"

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
  EXPECT_THAT(Held(R"({"chunk_size":100,
                       "segments":[{"begin":0,"width":2,"nodes":["a","b","b","b"]}]})",
                   250),
              ElementsAre(Pair("a", 150), Pair("b", 250)));
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
      {{.mount = "/no/such"}, "no host answers: check the mount /no/such of local"},
      {{.mount = "/tmp", .directory = "../x"}, "--workdir '../x' is outside the mount"},
      {{.mount = "/tmp", .link = "fast"}, "'fast' is not a rate: write it like 200mbit or 1gbit"},
  };
  for (const auto& row : rows)
    EXPECT_THAT(MessageOf(FindHosts(row.request).status()), HasSubstr(row.sentence));
}

TEST(FindHosts, LeavesOutWhatNoCommandReaches) {
  const Directory directory;
  directory.Write("reach", "test $1 = a || exit 255; shift; exec sh -c \"$1\"\n");
  const auto found = FindHosts({.mount = directory.path,
                                .names = {"a", "b"},
                                .exec = "sh " + directory.path + "/reach {host}"});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->hosts.size(), 1U);
  EXPECT_EQ(found->hosts[0].name, "a");
  EXPECT_THAT(found->silent, ElementsAre("b"));
}

// ---- what may never return

TEST(Hand, IsLeftWhenItDoesNotAnswer) {
  Hand hand([](const nlohmann::json& question) {
    if (question == "hang") pause();
    return question;
  });
  const nlohmann::json bytes = "\xff\x01 no text";
  ASSERT_TRUE(hand.Post(bytes).ok());
  EXPECT_EQ(**hand.Take(Seconds(20)), bytes);
  ASSERT_TRUE(hand.Post("hang").ok());
  EXPECT_FALSE(hand.Take(Milliseconds(50))->has_value());
  EXPECT_TRUE(hand.has_question());
  hand.GiveUp();
  ASSERT_TRUE(hand.Post(std::string(1'000'000, 'x')).ok());
  EXPECT_EQ(**hand.Take(Seconds(20)), std::string(1'000'000, 'x'));
}

TEST(Hand, SaysThatItsProcessHasEnded) {
  Hand hand([](const nlohmann::json&) -> nlohmann::json { _exit(1); });
  ASSERT_TRUE(hand.Post("x").ok());
  EXPECT_EQ(hand.Take(Seconds(20)).status().code(), StatusCode::kUnavailable);
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
  return !pid_text.empty() && cluster::StartTicks(std::stoi(pid_text)) != 0;
}

bool EndsSoon(const std::string& pid_text) {
  for (int i = 0; i < 2000 && Lives(pid_text); ++i) usleep(10'000);
  return !Lives(pid_text);
}

TaskCommand CommandIn(const Directory& directory, const RunHost& host, const std::string& script) {
  TaskCommand command;
  command.host = &host;
  command.output_path = directory.path + "/out";
  command.error_path = directory.path + "/err";
  command.argv = {"sh", "-c", script};
  return command;
}

void WaitForFile(TaskProcesses& processes, const Directory& directory, const std::string& name) {
  for (int i = 0; i < 2000 && directory.Read(name).empty(); ++i) processes.Wait(Milliseconds(10));
  ASSERT_FALSE(directory.Read(name).empty());
}

constexpr const char* kLeavesTwo =
    "sleep 100 & echo $! > child; setsid sleep 100 & echo $! > other; ";

// What a task started ends with it, in whatever session it is.
TEST(TaskProcesses, EndsAll) {
  const Directory directory;
  const RunHost host = HostAt(directory.path);
  TaskProcesses processes;
  ASSERT_TRUE(processes.Start(CommandIn(directory, host, std::string(kLeavesTwo) + "wait")).ok());
  WaitForFile(processes, directory, "other");
  EXPECT_TRUE(Lives(directory.Read("child")));
  EXPECT_THAT(processes.EndAll(Seconds(2)), testing::SizeIs(1));
  EXPECT_EQ(processes.running(), 0U);
  EXPECT_FALSE(Lives(directory.Read("child")));
  EXPECT_FALSE(Lives(directory.Read("other")));
}

TEST(TaskProcesses, EndsWhatATaskLeavesBehind) {
  const Directory directory;
  const RunHost host = HostAt(directory.path);
  TaskProcesses processes;
  EXPECT_EQ(RunOne(processes, CommandIn(directory, host, kLeavesTwo)).exit_code, 0);
  EXPECT_FALSE(Lives(directory.Read("child")));
  EXPECT_FALSE(Lives(directory.Read("other")));
}

TEST(TaskProcesses, SaysWhichSignalEndedATask) {
  const Directory directory;
  const RunHost host = HostAt(directory.path);
  TaskProcesses processes;
  const auto ended = RunOne(processes, CommandIn(directory, host, "kill -SEGV $$"));
  EXPECT_EQ(ended.signal, SIGSEGV);
  EXPECT_EQ(ended.exit_code, 128 + SIGSEGV);
}

// kill -9 leaves nothing behind, and the record's lock is free only then.
TEST(TaskProcesses, EndWithTheirRunner) {
  const Directory directory;
  const RunHost host = HostAt(directory.path);
  const std::string record = directory.path + "/record.json";
  const pid_t runner = fork();
  if (runner == 0) {
    const auto lock = LockRecord(record);
    TaskProcesses processes(lock.ok() ? lock->get() : -1);
    if (!processes.Start(CommandIn(directory, host, std::string(kLeavesTwo) + "wait")).ok())
      _exit(1);
    for (;;) processes.Wait(Seconds(1));
  }
  for (int i = 0; i < 2000 && directory.Read("other").empty(); ++i) usleep(10'000);
  EXPECT_THAT(MessageOf(LockRecord(record).status()),
              HasSubstr(fmt::format("'mosa run' process {} has the record", runner)));
  kill(runner, SIGKILL);
  waitpid(runner, nullptr, 0);
  EXPECT_TRUE(LockRecord(record).ok());
  EXPECT_TRUE(EndsSoon(directory.Read("child")));
  EXPECT_TRUE(EndsSoon(directory.Read("other")));
}

// A host whose processes descend from none of ours: a server that is handed scripts.
class Elsewhere {
 public:
  explicit Elsewhere(const Directory& directory) : host(HostAt(directory.path)) {
    directory.Write(
        "server",
        "exec 5<> requests; while read -r id <&5; do test $id = end && exit\n"
        "{ sh script.$id < in.$id > said.$id 2>&1; echo $? > code.$id; } 5<&- & done\n");
    directory.Write("client",
                    "cd \"$0\"; id=$$; printf %s \"$1\" > script.$id; mkfifo in.$id; exec 4<&0\n"
                    "cat <&4 > in.$id & feeder=$!; echo $id > requests\n"
                    "until test -s code.$id; do sleep 0.02; done\n"
                    "kill $feeder; exit $(cat code.$id)\n");
    requests_ = directory.path + "/requests";
    EXPECT_EQ(mkfifo(requests_.c_str(), 0600), 0);
    server_ = fork();
    if (server_ == 0) {
      if (chdir(directory.path.c_str()) == 0) execlp("sh", "sh", "server", nullptr);
      _exit(1);
    }
    host.exec = {"sh", "-c", ". \"$0/client\"", directory.path};
  }
  ~Elsewhere() {
    std::ofstream(requests_) << "end\n";
    waitpid(server_, nullptr, 0);
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  RunHost host;

 private:
  std::string requests_;
  pid_t server_ = 0;
};

// Also of a task that does not mind being asked, and not before it has ended.
TEST(TaskProcesses, AwaitsTheEndElsewhere) {
  const Directory directory;
  const Elsewhere elsewhere(directory);
  TaskProcesses processes;
  const auto command = CommandIn(directory, elsewhere.host,
                                 "trap '' TERM; sleep 100 & echo $! > child; wait; sleep 100");
  for (const bool all : {true, false}) {
    fs::remove(directory.path + "/child");
    const auto pid = processes.Start(command);
    ASSERT_TRUE(pid.ok());
    WaitForFile(processes, directory, "child");
    EXPECT_TRUE(Lives(directory.Read("child")));
    if (all) {
      EXPECT_THAT(processes.EndAll(Seconds(10)), testing::SizeIs(1));
    } else {
      processes.Kill(*pid);
      while (processes.running() > 0) processes.Wait(Seconds(1));
    }
    EXPECT_FALSE(Lives(directory.Read("child")));
  }
}

TEST(TaskProcesses, LeavesNothingElsewhere) {
  const Directory directory;
  const Elsewhere elsewhere(directory);
  TaskProcesses processes;
  const auto command = CommandIn(directory, elsewhere.host, "sleep 100 & echo $! > child; exit 3");
  EXPECT_EQ(RunOne(processes, command).exit_code, 3);
  EXPECT_TRUE(EndsSoon(directory.Read("child")));
}

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

// What tasks have started counts as theirs; for a command that reaches another host nothing is
// known.
TEST(Engine, SaysWhatTasksComputed) {
  const std::string computing = "(awk 'BEGIN{for(i=0;i<3000000;i++)x+=i}')";
  for (const bool is_here : {true, false}) {
    OneRun setup(fmt::format("tasks:\n  - {{id: a, command: \"{}\"}}\n", computing));
    if (!is_here)
      for (RunHost& host : setup.record.hosts) host.exec = {"sh", "-c"};
    ASSERT_TRUE(setup.Run().ok());
    const auto attempt = setup.Saved()["tasks"][0]["attempts"][0];
    EXPECT_EQ(attempt.contains("processor_s"), is_here);
    if (!is_here) continue;
    EXPECT_GT(attempt["processor_s"].get<double>(), 0.02);
    RunRecord again;
    again.tasks.resize(1);
    ASSERT_TRUE(ReadRecord(setup.options.record_path, setup.workflow, again).ok());
    EXPECT_NEAR(static_cast<double>(again.tasks[0].attempts[0].processor->ns),
                attempt["processor_s"].get<double>() * 1e9, 1);
  }
}

TEST(Engine, ATaskFailsIfAnyProgramOfAPipeFails) {
  OneRun setup("tasks:\n  - {id: a, command: no-such-program | sort > o, outputs: [o]}\n");
  setup.options.retries = 0;
  EXPECT_EQ(setup.Run().code(), StatusCode::kFailedPrecondition);
  const auto task = setup.Saved()["tasks"][0];
  EXPECT_EQ(task["state"], "failed");
  EXPECT_EQ(task["exit_code"], 127);
}

TEST(Engine, RetriesThenGivesUp) {
  OneRun setup(R"(tasks:
  - {id: a, command: "echo t >> tries; echo too bad >&2; test $(wc -l < tries) = 3", outputs: [o]}
  - {id: b, command: "cat o > p", inputs: [o], outputs: [p]})");
  const Status ended = setup.Run();
  EXPECT_EQ(ended.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(ended), HasSubstr("task 'a' (line 2) failed 3 times, most recently on "));
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

// Another reader, in the middle of it, would see what the writer has written so far.
TEST(Engine, EndsTheReadersOfWhatIsWrittenAgain) {
  OneRun setup(R"(tasks:
  - {id: a, command: "if test -e first; then : > x; touch again; sleep 0.5; fi; touch first;
     echo whole > x", outputs: [x]}
  - {id: slow, command: "touch begun; until test -e again; do sleep 0.02; done; cat x > y",
     inputs: [x], outputs: [y]}
  - {id: bad, command: "test -e again || { until test -e begun; do sleep 0.02; done; rm x; false; };
     cat x > z", inputs: [x], outputs: [z]})");
  setup.options.retries = 0;
  ASSERT_TRUE(setup.Run().ok());
  EXPECT_EQ(setup.directory.Read("y"), "whole\n");
  EXPECT_EQ(setup.directory.Read("z"), "whole\n");
  const auto tasks = setup.Saved()["tasks"];
  for (const auto& task : tasks) EXPECT_EQ(task["attempts"].size(), 2U) << task;
  EXPECT_THAT(tasks[1]["attempts"][0]["failure"],
              HasSubstr("one of its inputs is being written again"));
  EXPECT_GE(tasks[0]["attempts"][1]["start"].get<double>(),
            tasks[1]["attempts"][0]["end"].get<double>());
}

TEST(Engine, LosesHostsThatNoCommandReaches) {
  OneRun setup("tasks:\n  - {id: a, command: echo > o, outputs: [o]}\n");
  setup.record.hosts.push_back(setup.record.hosts[1]);
  setup.record.hosts[2].name = "c";
  setup.record.hosts[0].exec = setup.record.hosts[1].exec = {"sh", "-c", "exit 255"};
  setup.record.hosts[2].exec = {"sh", "-c"};
  setup.options.retries = 0;
  ASSERT_TRUE(setup.Run().ok());
  EXPECT_THAT(setup.record.hosts_lost, ElementsAre("a", "b"));
}

TEST(Engine, TriesEveryHost) {
  OneRun setup("tasks:\n  - {id: a, command: test $MOSA_HOST = c}\n");
  setup.record.hosts.push_back(setup.record.hosts[1]);
  setup.record.hosts[2].name = "c";
  for (RunHost& host : setup.record.hosts) host.environment["MOSA_HOST"] = host.name;
  ASSERT_TRUE(setup.Run().ok());
  EXPECT_EQ(setup.Saved()["tasks"][0]["attempts"].size(), 3U);
}

TEST(Engine, MakesDirectoriesThatTasksRemove) {
  OneRun setup(R"(tasks:
  - {id: a, command: "test -e once || { touch once; rm -r d; exit 1; }; echo > d/o",
     outputs: [d/o]})",
               1);
  setup.record.hosts.pop_back();
  EXPECT_TRUE(setup.Run().ok());
}

TEST(Engine, FillsSlotsButNoMore) {
  std::string text = "tasks:\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format(
        "  - {{id: t{}, command: 'mkdir r{}; echo r* | wc -w >> counts; sleep 0.05; rmdir "
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

// What tasks read from outside is looked at; logs of the earlier run stay.
TEST(ResumeRun, RunsAgainWhatReadsSomethingElse) {
  OneRun setup(R"(tasks:
  - {id: a, command: "cat in > x; echo a >&2", inputs: [in], outputs: [x]}
  - {id: b, command: cat x > y, inputs: [x], outputs: [y]}
  - {id: c, command: cat other > z, inputs: [other], outputs: [z]})");
  setup.directory.Write("in", "1");
  setup.directory.Write("other", "1");
  ASSERT_TRUE(setup.Run().ok());
  const auto resume = [&] {
    setup.record.outside.clear();
    setup.record.tasks.assign(3, {});
    HostMount mount(setup.record.hosts[0]);
    EXPECT_TRUE(BeginRun(setup.workflow, mount, setup.record).ok());
    EXPECT_TRUE(ResumeRun(setup.workflow, setup.options.record_path, mount, setup.record).ok());
    std::string kept;
    for (const TaskRecord& task : setup.record.tasks) kept += task.kept ? "k" : "-";
    return kept;
  };
  EXPECT_EQ(resume(), "kkk");
  setup.directory.Write("in", "22");
  EXPECT_EQ(resume(), "--k");
  setup.options.keep_logs = true;
  ASSERT_TRUE(setup.Run().ok());
  EXPECT_EQ(setup.directory.Read("y"), "22");
  EXPECT_EQ(setup.logs.Read("00000-a.1.err"), "a\n");
  EXPECT_EQ(setup.logs.Read("00000-a.2.err"), "a\n");
  fs::remove(setup.directory.path + "/y");
  EXPECT_EQ(resume(), "k-k");
}

// By time, as this file system has no checksums.
TEST(ReuseRun, KeepsWhatWouldReadTheSame) {
  OneRun setup(R"(tasks:
  - {id: a, command: "wc -c < in > x; touch -d @1 x", inputs: [in], outputs: [x]}
  - {id: b, command: "cat x > y", inputs: [x], outputs: [y]}
  - {id: c, command: "cat y > z", inputs: [y], outputs: [z]})");
  setup.record.reuses = true;
  setup.options.keep_logs = true;
  const auto reuse = [&] {
    setup.record.outside.clear();
    setup.record.tasks.assign(3, {});
    HostMount mount(setup.record.hosts[0], true);
    EXPECT_TRUE(BeginRun(setup.workflow, mount, setup.record).ok());
    EXPECT_TRUE(ResumeRun(setup.workflow, setup.options.record_path, mount, setup.record).ok());
    EXPECT_TRUE(setup.Run().ok());
    std::string kept;
    for (const TaskRecord& task : setup.record.tasks) kept += task.kept ? "k" : "-";
    return kept;
  };
  setup.directory.Write("in", "1");
  EXPECT_EQ(reuse(), "---");
  EXPECT_EQ(reuse(), "kkk");
  setup.directory.Write("in", "2");
  EXPECT_EQ(reuse(), "-kk");
  setup.directory.Write("in", "ten bytes!");
  EXPECT_EQ(reuse(), "---");
  EXPECT_EQ(setup.directory.Read("z"), "10\n");
  fs::remove(setup.directory.path + "/y");
  EXPECT_EQ(reuse(), "k-k");
  setenv("PYTHONPATH", "/elsewhere", 1);
  EXPECT_EQ(reuse(), "---");
  EXPECT_EQ(reuse(), "kkk");
  unsetenv("PYTHONPATH");
}

TEST(RunRecord, TakesFilesByTheirPaths) {
  OneRun setup("tasks:\n  - {id: a, command: echo > o; echo 22 > p, outputs: [o, p]}\n");
  ASSERT_TRUE(setup.Run().ok());
  OneRun other("tasks:\n  - {id: b, command: echo > o; echo 22 > p, outputs: [p, o]}\n");
  const auto earlier = ReadRecord(setup.options.record_path, other.workflow, other.record);
  ASSERT_TRUE(earlier.ok());
  EXPECT_TRUE((*earlier)[0].done && (*earlier)[0].same);
  for (const auto& [file, facts] : other.record.tasks[0].outputs)
    EXPECT_EQ(facts.size_bytes, other.workflow.at(file).path == "o" ? 1U : 3U);
}

TEST(RunRecord, SaysOnWhichHostsTasksRan) {
  RunRecord record;
  EXPECT_EQ(DescribePlaces(record), "");
  const auto add = [&record](const char* host) {
    record.tasks.emplace_back().attempts.emplace_back().host = host;
  };
  for (const char* host : {"h2", "h3", "h2", "h1"}) add(host);
  record.tasks[0].attempts.emplace_back().host = "h1";  // It was tried again there.
  record.tasks.emplace_back();                          // One that did not run.
  EXPECT_EQ(DescribePlaces(record), "h1 (2), h2 (1), h3 (1)");
  record.tasks[1].kept = true;
  EXPECT_EQ(DescribePlaces(record), "h1 (2), h2 (1)");
  for (const char* host : {"h4", "h5", "h6", "h7", "h8", "h9", "h90"}) add(host);
  EXPECT_EQ(DescribePlaces(record),
            "h1 (2), h2 (1), h4 (1), h5 (1), h6 (1), h7 (1), h8 (1), h9 (1) and 1 more");
}

}  // namespace
}  // namespace mosa::cli
