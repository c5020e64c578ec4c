#include "predictor/trace/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "predictor/workflow/operations.h"
#include "predictor/workflow/read.h"

namespace mosa::predict {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;
using Kind = WorkloadOperation::Kind;

constexpr uint8_t kReads = kTraceForReading;
constexpr uint8_t kWrites = kTraceForWriting;

// A trace as a mount writes it. Each call adds a record, one millisecond after the previous one.
class Script {
 public:
  explicit Script(std::string host, bool light = false) {
    file_.head = {std::move(host), "/mnt", light, {}};
    file_.foot = TraceFoot{.reason = "stopped"};
  }
  Script& At(int64_t ms) {
    now_ = {ms * 1'000'000};
    return *this;
  }
  Script& Name(uint64_t file, std::string name, uint64_t parent = 1) {
    TraceRecord& record = Add(TraceKind::kName, file);
    record.parent = FileId{parent};
    record.text = std::move(name);
    return *this;
  }
  // If `task` is a number, it is the pid of a process without MOSA_TASK.
  Script& Open(uint64_t handle, uint64_t file, const std::string& task, uint8_t flags,
               uint64_t size = 0, bool made = false) {
    TraceRecord& record = Add(made ? TraceKind::kCreate : TraceKind::kOpen, file);
    record.handle = handle;
    record.flags = flags;
    record.size_bytes = size;
    const bool process = task.find_first_not_of("0123456789") == std::string::npos;
    // Every task is one process.
    const auto number = static_cast<uint32_t>(1000 + pids_.size());
    record.pid = process ? static_cast<uint32_t>(std::stoul(task))
                         : pids_.try_emplace(task, number).first->second;
    openers_[handle] = record.pid;
    record.text = (process ? "sid:1:sh" : task) + '\0' + "sh";
    return *this;
  }
  Script& Make(uint64_t handle, uint64_t file, const std::string& task) {
    return Open(handle, file, task, kWrites, 0, true);
  }
  Script& Read(uint64_t handle, uint64_t file, uint64_t offset, uint64_t size) {
    return Move(TraceKind::kRead, handle, file, offset, size);
  }
  Script& Write(uint64_t handle, uint64_t file, uint64_t offset, uint64_t size) {
    return Move(TraceKind::kWrite, handle, file, offset, size);
  }
  Script& Close(uint64_t handle, uint64_t file, uint64_t size, uint32_t pid = 0,
                const std::string& command = "sh") {
    TraceRecord& flush = Add(TraceKind::kFlush, file);
    flush.handle = handle;
    flush.size_bytes = size;
    flush.pid = pid == 0 ? openers_[handle] : pid;
    flush.text = std::string("sid:1:x") + '\0' + command;
    TraceRecord& record = Add(TraceKind::kClose, file);
    record.handle = handle;
    record.size_bytes = size;
    return *this;
  }
  Script& Cut(uint64_t handle, uint64_t file, uint64_t size) {
    TraceRecord& record = Add(TraceKind::kTruncate, file);
    record.handle = handle;
    record.size_bytes = size;
    return *this;
  }
  Script& Rename(uint64_t parent, const std::string& from, uint64_t target, const std::string& to) {
    TraceRecord& record = Add(TraceKind::kRename, 0);
    record.parent = FileId{parent};
    record.target = FileId{target};
    record.text = from + '\0' + to;
    return *this;
  }
  // By a task that has opened something.
  Script& Unlink(const std::string& name, const std::string& task, uint64_t parent = 1) {
    TraceRecord& record = Add(TraceKind::kUnlink, 0);
    record.parent = FileId{parent};
    record.text = name;
    record.pid = pids_.at(task);
    return *this;
  }
  // By a process that opens nothing.
  Script& UnlinkBy(uint32_t pid, const std::string& name, const std::string& task) {
    TraceRecord& record = Add(TraceKind::kUnlink, 0);
    record.parent = FileId{1};
    record.text = name + '\0' + task + '\0' + "rm";
    record.pid = pid;
    return *this;
  }
  // Later reads and writes are by this process.
  Script& By(uint32_t pid) {
    pid_ = pid;
    return *this;
  }
  const TraceFile& file() const { return file_; }

 private:
  TraceRecord& Add(TraceKind kind, uint64_t file) {
    TraceRecord& record = file_.records.emplace_back();
    record.kind = kind;
    record.file = FileId{file};
    record.start = now_;
    record.end = now_ + Microseconds(100);
    now_ = now_ + Milliseconds(1);
    return record;
  }
  Script& Move(TraceKind kind, uint64_t handle, uint64_t file, uint64_t offset, uint64_t size) {
    TraceRecord& record = Add(kind, file);
    record.handle = handle;
    record.offset = offset;
    record.size_bytes = size;
    record.pid = pid_;
    return *this;
  }

  TraceFile file_;
  Time now_;
  uint32_t pid_ = 0;
  std::map<std::string, uint32_t> pids_;
  std::map<uint64_t, uint32_t> openers_;
};

std::vector<std::string> PathsOf(const Workload& workload, const std::vector<uint32_t>& files) {
  std::vector<std::string> paths;
  for (const uint32_t file : files) paths.push_back(workload.files[file].path);
  return paths;
}

const WorkloadTask& TaskOf(const Workload& workload, const std::string& id) {
  for (const WorkloadTask& task : workload.tasks)
    if (task.id == id) return task;
  ADD_FAILURE() << "there is no task " << id;
  return workload.tasks.front();
}

uint64_t SizeOf(const Workload& workload, const std::string& path) {
  for (const WorkloadFile& file : workload.files)
    if (file.path == path) return file.size_bytes;
  ADD_FAILURE() << "there is no file " << path;
  return 0;
}

std::vector<std::string> IdsOf(const Workload& workload) {
  std::vector<std::string> ids;
  for (const WorkloadTask& task : workload.tasks) ids.push_back(task.id);
  return ids;
}

std::vector<std::string> PathsOf(const Workflow& workflow, const std::vector<PathIndex>& files) {
  std::vector<std::string> paths;
  for (const PathIndex file : files) paths.push_back(workflow.at(file).path);
  return paths;
}

void ExpectSame(const Workflow& read, const Workload& workload, size_t at) {
  const Task& task = read.tasks[at];
  const WorkloadTask& written = workload.tasks[at];
  EXPECT_EQ(task.id, written.id);
  EXPECT_EQ(task.stage, StageOf(written.stage));
  EXPECT_EQ(task.command, written.command);
  EXPECT_THAT(PathsOf(read, task.inputs),
              UnorderedElementsAreArray(PathsOf(workload, written.inputs)));
  EXPECT_THAT(PathsOf(read, task.outputs),
              UnorderedElementsAreArray(PathsOf(workload, written.outputs)));
  EXPECT_EQ(task.expected, written.runtime);
  for (const uint32_t before : written.after)
    EXPECT_THAT(task.predecessors, Contains(TaskIndex{before}));
  ASSERT_EQ(task.operations.size(), written.operations.size());
  for (size_t i = 0; i < task.operations.size(); ++i) {
    const TaskOperation& operation = task.operations[i];
    const WorkloadOperation& expected = written.operations[i];
    EXPECT_EQ(operation.before, expected.before);
    ASSERT_EQ(static_cast<int>(operation.kind), static_cast<int>(expected.kind));
    if (expected.kind == Kind::kCompute) continue;
    EXPECT_EQ(read.at(operation.file).path, workload.files[expected.file].path);
    EXPECT_EQ(operation.offset, expected.offset);
    EXPECT_EQ(operation.size_bytes, expected.size_bytes);
  }
}

// Mosa's readers must read back the same workload.
void ExpectReadAsWritten(const Workload& workload, WfFormat version) {
  BuildResult read = ReadWorkflow(ToWfFormat(workload, version), "test");
  ASSERT_THAT(read.faults, IsEmpty());
  ASSERT_EQ(read.workflow.tasks.size(), workload.tasks.size());
  EXPECT_EQ(read.workflow.name, workload.name);
  EXPECT_THAT(AddOperations(ToOperationsText(workload), read.workflow), IsEmpty());
  for (size_t i = 0; i < workload.tasks.size(); ++i) ExpectSame(read.workflow, workload, i);
  EXPECT_EQ(read.workflow.files.size(), workload.files.size());
  for (const WorkflowFile& file : read.workflow.files)
    EXPECT_EQ(file.size_bytes, SizeOf(workload, file.path)) << file.path;
}

Workload Export(const std::vector<TraceFile>& traces,
                const std::vector<RecordedTask>& recorded = {}) {
  Workload workload = WorkloadOf(MergeTraces(traces), "test", recorded);
  ExpectReadAsWritten(workload, WfFormat::k1_5);
  ExpectReadAsWritten(workload, WfFormat::k1_6);
  return workload;
}

TEST(Workload, CommandsThatWfFormatCannotHoldMeanTheSame) {
  Workload workload;
  workload.name = "test";
  workload.tasks.resize(3);
  workload.tasks[0].command = {"awk", "-f", "a b"};
  workload.tasks[1].command = {"awk", "-vx=a b", "it's"};
  workload.tasks[2].command = {"printf", ""};
  for (size_t i = 0; i < 3; ++i)
    workload.tasks[i].id = workload.tasks[i].stage = std::string(1, static_cast<char>('a' + i));
  const BuildResult read = ReadWorkflow(ToWfFormat(workload), "test");
  ASSERT_THAT(read.faults, IsEmpty());
  EXPECT_THAT(read.workflow.tasks[0].command, ElementsAre("awk", "-f", "a b"));
  EXPECT_THAT(read.workflow.tasks[1].command,
              ElementsAre("/bin/sh", "-c", R"('awk' '-vx=a b' 'it'\''s')"));
  EXPECT_THAT(read.workflow.tasks[2].command, ElementsAre("/bin/sh", "-c", "'printf' ''"));
}

TEST(Workload, NamesThatWfFormatDoesNotAllowAreTold) {
  Workload workload;
  workload.tasks.resize(1);
  workload.tasks[0].id = "run/sort#2";
  workload.files = {{"dir/part-1.a:b#2", 0}};
  EXPECT_EQ(WfFormatFault(workload, WfFormat::k1_6), "");
  EXPECT_EQ(WfFormatFault(workload, WfFormat::k1_5),
            "WfFormat 1.5 allows only letters, digits and -_.# in ids: task 'run/sort#2' has other "
            "characters");
  workload.files.push_back({"a b", 0});
  EXPECT_EQ(WfFormatFault(workload, WfFormat::k1_6),
            "WfFormat 1.6 allows only letters, digits and -_.#:/ in ids: file 'a b' has other "
            "characters");
}

TEST(Workload, WhoReadsWhatAnotherHostWroteComesAfterIt) {
  Script one("h1");
  Script two("h2");
  one.At(1000).Name(9, "in").Open(1, 9, "first", kReads, 5000).Read(1, 9, 0, 5000);
  one.Close(1, 9, 5000).Name(10, "dir").Name(11, "out", 10).Make(2, 11, "first");
  one.Write(2, 11, 0, 3000).Close(2, 11, 3000);
  // The name is known only from the other mount.
  two.At(2000).Open(1, 11, "second", kReads, 3000).Read(1, 11, 0, 3000).Close(1, 11, 3000);
  const Workload workload = Export({one.file(), two.file()});
  EXPECT_THAT(IdsOf(workload), ElementsAre("first", "second"));
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "first").inputs), ElementsAre("in"));
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "first").outputs), ElementsAre("dir/out"));
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "second").inputs), ElementsAre("dir/out"));
  EXPECT_EQ(SizeOf(workload, "in"), 5000U);
  EXPECT_EQ(SizeOf(workload, "dir/out"), 3000U);
  EXPECT_EQ(TaskOf(workload, "second").host, "h2");
}

TEST(Workload, GapsAreWhatNoOperationCovers) {
  Script trace("h1");
  trace.At(0).Name(9, "in").At(10).Open(1, 9, "t", kReads, 3000).At(20).Read(1, 9, 0, 1000);
  trace.At(30).Read(1, 9, 2000, 1000).At(40).Close(1, 9, 3000);
  const Workload workload = Export({trace.file()});
  const WorkloadTask& task = TaskOf(workload, "t");
  ASSERT_EQ(task.operations.size(), 3U);
  // From the end of the previous one, which took 0.1 ms.
  EXPECT_EQ(task.operations[0].before, Microseconds(9900));
  EXPECT_EQ(task.operations[1].before, Microseconds(9900));
  EXPECT_EQ(task.operations[1].offset, 2000U);
  EXPECT_EQ(task.operations[2].kind, Kind::kCompute);
  EXPECT_EQ(task.operations[2].before, Microseconds(9900));
  EXPECT_EQ(task.runtime, Microseconds(30100));
}

TEST(Workload, NeighbouringReadsAreOneUnlessTheTaskComputes) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Open(1, 9, "t", kReads, 9000);
  trace.Read(1, 9, 0, 1000).Read(1, 9, 1000, 1000).Read(1, 9, 2000, 1000);
  trace.At(100).Read(1, 9, 3000, 1000);
  const WorkloadTask task = TaskOf(Export({trace.file()}), "t");
  ASSERT_EQ(task.operations.size(), 2U);
  EXPECT_EQ(task.operations[0].size_bytes, 3000U);
  // Computing between merged operations is kept.
  EXPECT_EQ(task.operations[0].before + task.operations[1].before + Microseconds(400),
            Milliseconds(100) - Milliseconds(1));
}

TEST(Workload, ARuntimeThatIsRecordedIsTheTasks) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Open(1, 9, "t", kReads, 10).Read(1, 9, 0, 10).Close(1, 9, 10);
  const Duration alone = TaskOf(Export({trace.file()}), "t").runtime;
  const WorkloadTask task = TaskOf(Export({trace.file()}, {{"t", Seconds(2)}}), "t");
  EXPECT_EQ(task.runtime, Seconds(2));
  EXPECT_GE(task.operations.front().before, Seconds(2) - alone);
}

TEST(Workload, AStageThatIsRecordedIsTheTasks) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Open(1, 9, "view-small", kReads, 10).Read(1, 9, 0, 10).Close(1, 9, 10);
  EXPECT_EQ(TaskOf(Export({trace.file()}), "view-small").stage, StageOf("view-small"));
  const Workload workload = Export({trace.file()}, {{"view-small", Seconds(1), "mJPEG"}});
  EXPECT_EQ(TaskOf(workload, "view-small").stage, "mJPEG");
}

// A trace has only the program's name; the recorded command identifies the run as one of the
// workload.
TEST(Workload, ACommandThatIsRecordedIsTheTasks) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Open(1, 9, "t", kReads, 10).Read(1, 9, 0, 10).Close(1, 9, 10);
  const std::vector<std::string> words{"bash", "-c", "cat in | sort"};
  const Workload workload = Export({trace.file()}, {{"t", Seconds(1), "", words}});
  EXPECT_EQ(TaskOf(workload, "t").command, words);
}

TEST(Workload, ARunnersOwnNamesAreNoPartOfIt) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Name(10, "out");
  trace.Open(1, 9, "mosa-read-ahead", kReads, 10).Read(1, 9, 0, 10).Close(1, 9, 10);
  trace.Open(2, 9, "mosa-run-0123456789abcdef/a/b", kReads, 10).Read(2, 9, 0, 10).Close(2, 9, 10);
  trace.Make(3, 10, "mosa-run-0123/a/b").Write(3, 10, 0, 10).Close(3, 10, 10);
  EXPECT_THAT(IdsOf(Export({trace.file()})), UnorderedElementsAre("a/b", "mosa-run-0123/a/b"));
}

TEST(Workload, ProcessesWithoutATaskAreTasksNamedAfterTheirCommand) {
  Script trace("h1");
  trace.At(0).Name(9, "a").Name(10, "b");
  trace.Open(1, 9, "41", kReads, 10).Read(1, 9, 0, 10).Make(2, 10, "41").Write(2, 10, 0, 10);
  trace.Close(1, 9, 10, 41, "sort").Close(2, 10, 10, 41, "sort");
  trace.Open(3, 10, "42", kReads, 10).Read(3, 10, 0, 10).Close(3, 10, 10, 42, "wc");
  const Workload workload = Export({trace.file()});
  EXPECT_THAT(IdsOf(workload), ElementsAre("sort.41", "wc.42"));
  EXPECT_EQ(workload.tasks[0].stage, "sort");
}

// "wc < a > b": the shell opens both files and passes them to its child.
TEST(Workload, WhatAShellOpensForAProgramIsTheProgramsOwn) {
  Script trace("h1");
  trace.At(0).Name(9, "a").Name(10, "b").Name(11, "empty");
  trace.Open(1, 9, "40", kReads, 10).Open(2, 10, "40", kWrites, 0, true).By(41);
  trace.Read(1, 9, 0, 10).Write(2, 10, 0, 5).Close(1, 9, 10, 41, "wc").Close(2, 10, 5, 41, "wc");
  trace.By(0).Open(3, 11, "40", kReads, 0).Close(3, 11, 0, 42, "cat");
  EXPECT_EQ(Summarize(MergeTraces({trace.file()})).size(), 3U);
  const Workload workload = Export({trace.file()});
  EXPECT_THAT(IdsOf(workload), UnorderedElementsAre("wc.41", "cat.42"));
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "wc.41").outputs), ElementsAre("b"));
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "cat.42").inputs), ElementsAre("empty"));
}

TEST(Workload, WhatSeveralWroteOfAFileAreFilesOfTheirOwn) {
  Script trace("h1");
  trace.At(0).Name(9, "all").Make(1, 9, "make").Close(1, 9, 0);
  for (uint64_t i = 0; i < 3; ++i) {
    trace.Open(2 + i, 9, "part-" + std::to_string(i), kWrites);
    trace.Write(2 + i, 9, i * 1000, 1000).Close(2 + i, 9, 3000);
  }
  trace.Open(9, 9, "sum", kReads, 3000).Read(9, 9, 500, 2500).Close(9, 9, 3000);
  const Workload workload = Export({trace.file()});
  // The empty file that was made beforehand belongs to its first writer.
  EXPECT_THAT(IdsOf(workload), ElementsAre("part-0", "part-1", "part-2", "sum"));
  const WorkloadTask& sum = TaskOf(workload, "sum");
  EXPECT_THAT(PathsOf(workload, sum.inputs), ElementsAre("all", "all#2", "all#3"));
  ASSERT_EQ(sum.operations.size(), 4U);
  EXPECT_EQ(sum.operations[3].kind, Kind::kCompute);
  EXPECT_EQ(sum.operations[0].offset, 500U);
  EXPECT_EQ(sum.operations[0].size_bytes, 500U);
  EXPECT_EQ(sum.operations[1].offset, 0U);
  EXPECT_EQ(sum.operations[1].size_bytes, 1000U);
  EXPECT_EQ(SizeOf(workload, "all#3"), 1000U);
}

TEST(Workload, WhoWritesInTurnsHasTheBytesThatItWrote) {
  Script trace("h1");
  trace.At(0).Name(9, "all").Open(1, 9, "even", kWrites, 0, true).Open(2, 9, "odd", kWrites);
  for (uint64_t i = 0; i < 8; ++i)
    trace.Write(1, 9, 2 * i * 1000, 1000).Write(2, 9, (2 * i + 1) * 1000, 1000);
  trace.Close(1, 9, 16000).Close(2, 9, 16000);
  trace.Open(3, 9, "sum", kReads, 16000).Read(3, 9, 2500, 2000).Close(3, 9, 16000);
  const Workload workload = Export({trace.file()});
  EXPECT_EQ(SizeOf(workload, "all"), 8000U);
  EXPECT_EQ(SizeOf(workload, "all#2"), 8000U);
  uint64_t written = 0;
  for (const WorkloadOperation& operation : TaskOf(workload, "odd").operations)
    if (operation.kind == Kind::kWrite) {
      EXPECT_EQ(operation.offset, written);
      written += operation.size_bytes;
    }
  EXPECT_EQ(written, 8000U);
  const WorkloadTask& sum = TaskOf(workload, "sum");
  ASSERT_GE(sum.operations.size(), 3U);
  EXPECT_EQ(sum.operations[0].offset, 1500U);  // Written by "even",
  EXPECT_EQ(sum.operations[0].size_bytes, 500U);
  EXPECT_EQ(sum.operations[1].offset, 1000U);  // and by "odd".
  EXPECT_EQ(sum.operations[1].size_bytes, 1000U);
  EXPECT_EQ(sum.operations[2].offset, 2000U);
}

TEST(Workload, AFileThatIsCutBeginsAnew) {
  Script trace("h1");
  trace.At(0).Name(9, "log").Make(1, 9, "a").Write(1, 9, 0, 100).Close(1, 9, 100);
  trace.Open(2, 9, "b", kReads, 100).Read(2, 9, 0, 100).Close(2, 9, 100);
  trace.Open(3, 9, "c", kWrites | kTraceCut).Write(3, 9, 0, 70).Close(3, 9, 70);
  trace.Open(4, 9, "d", kReads, 70).Read(4, 9, 0, 70).Close(4, 9, 70);
  const Workload workload = Export({trace.file()});
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "b").inputs), ElementsAre("log"));
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "d").inputs), ElementsAre("log#2"));
  EXPECT_EQ(SizeOf(workload, "log#2"), 70U);
}

// A shell writes a file, lets a program work on it, and reads the program's answer.
TEST(Workload, HolesOfAFileThatWasSeenToBeMadeWereNeverThere) {
  Script trace("h1");
  trace.At(0).Name(9, "sparse").Make(1, 9, "a").Write(1, 9, 9000, 1000).Close(1, 9, 10000);
  trace.Open(2, 9, "b", kReads, 10000).Read(2, 9, 0, 10000).Close(2, 9, 10000);
  const Workload workload = Export({trace.file()});
  EXPECT_EQ(workload.files.size(), 1U);
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "b").inputs), ElementsAre("sparse"));
  EXPECT_EQ(SizeOf(workload, "sparse"), 1000U);
}

TEST(Workload, WhatIsCutOffIsNoPartOfTheFile) {
  Script trace("h1");
  trace.At(0).Name(9, "log").Make(1, 9, "a").Write(1, 9, 0, 5000).Write(1, 9, 7000, 1000);
  trace.Cut(1, 9, 3000).Close(1, 9, 3000);
  trace.Open(2, 9, "b", kReads, 3000).Read(2, 9, 0, 3000).Close(2, 9, 3000);
  const Workload workload = Export({trace.file()});
  EXPECT_EQ(SizeOf(workload, "log"), 3000U);
  ASSERT_FALSE(TaskOf(workload, "a").operations.empty());
  EXPECT_EQ(TaskOf(workload, "a").operations[0].size_bytes, 3000U);
}

TEST(Workload, ATaskThatWaitsForItsReaderIsTakenApart) {
  Script trace("h1");
  trace.At(0).Name(9, "question").Name(10, "answer").Name(11, "end");
  trace.Make(1, 9, "shell").Write(1, 9, 0, 10).Close(1, 9, 10);
  trace.Open(2, 9, "tool", kReads, 10).Read(2, 9, 0, 10).Make(3, 10, "tool").Write(3, 10, 0, 20);
  trace.Open(4, 10, "shell", kReads, 20).Read(4, 10, 0, 20);
  trace.Make(5, 11, "shell").Write(5, 11, 0, 5);
  const Workload workload = Export({trace.file()});
  EXPECT_THAT(IdsOf(workload), ElementsAre("shell", "tool", "shell#2"));
  const WorkloadTask& last = TaskOf(workload, "shell#2");
  EXPECT_THAT(PathsOf(workload, last.inputs), ElementsAre("answer"));
  EXPECT_THAT(PathsOf(workload, last.outputs), ElementsAre("end"));
  EXPECT_THAT(last.after, ElementsAre(0U));
}

// The runner makes the output beforehand, to hint it.
TEST(Workload, ATaskThatMakesItsOutputAnewRemovesItFirst) {
  Script trace("h1");
  trace.At(0).Name(8, "tiles").Name(9, "mosaic").Name(10, "list");
  trace.Make(1, 9, "100").Close(1, 9, 0).Make(2, 10, "100").Close(2, 10, 0);
  trace.Open(3, 8, "add", kReads, 10).Read(3, 8, 0, 10).Unlink("mosaic", "add");
  trace.Name(11, "mosaic").Make(4, 11, "add").Write(4, 11, 0, 30).Write(4, 11, 40, 20);
  trace.Open(5, 10, "add", kWrites, 0).Write(5, 10, 0, 7);
  const Workload workload = Export({trace.file()});
  EXPECT_THAT(IdsOf(workload), ElementsAre("add"));
  const WorkloadTask& add = TaskOf(workload, "add");
  EXPECT_THAT(PathsOf(workload, add.outputs), UnorderedElementsAre("mosaic", "list"));
  std::vector<Kind> kinds;
  for (const WorkloadOperation& operation : add.operations) kinds.push_back(operation.kind);
  using enum WorkloadOperation::Kind;
  EXPECT_THAT(kinds, ElementsAre(kRead, kRemove, kWrite, kWrite));
  EXPECT_EQ(workload.files[add.operations[1].file].path, "mosaic");
}

// `rm -f out && make > out`: the process that removes opens nothing.
TEST(Workload, WhatAnotherProcessOfTheTaskRemovesIsRemovedByTheTask) {
  Script trace("h1");
  trace.At(0).Name(9, "out").Make(1, 9, "100").Close(1, 9, 0).UnlinkBy(77, "out", "make");
  trace.Name(11, "out").Make(2, 11, "make").Write(2, 11, 0, 30);
  const Workload workload = Export({trace.file()});
  EXPECT_THAT(IdsOf(workload), ElementsAre("make"));
  const WorkloadTask& make = TaskOf(workload, "make");
  EXPECT_NE(make.command.front(), "rm");
  ASSERT_EQ(make.operations.size(), 2U);
  EXPECT_EQ(make.operations[0].kind, Kind::kRemove);
  EXPECT_EQ(make.operations[1].kind, Kind::kWrite);
}

TEST(Workload, AFileIsCalledAsItWasLastCalled) {
  Script trace("h1");
  trace.At(0).Name(20, "d").Name(9, "x.tmp", 20).Make(1, 9, "a").Write(1, 9, 0, 9);
  trace.Close(1, 9, 9).Rename(20, "x.tmp", 1, "x");
  trace.Open(2, 9, "b", kReads, 9).Read(2, 9, 0, 9);
  // The name of 77 is unknown, and JSON cannot hold this name.
  trace.Name(30, "\xff", 77).Open(3, 30, "b", kReads, 1).Read(3, 30, 0, 1);
  const Workload workload = Export({trace.file()});
  EXPECT_THAT(PathsOf(workload, TaskOf(workload, "b").inputs),
              UnorderedElementsAre("x", "#77/%FF"));
}

TEST(Workload, WhatTheKernelCarriedIsEstimated) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Name(10, "out").Name(11, "twice");
  trace.Open(1, 9, "t", kReads | kTracePassthrough, 5000).Close(1, 9, 5000);
  trace.Open(2, 10, "t", kWrites | kTracePassthrough, 0, true).Close(2, 10, 700);
  trace.Open(3, 11, "t", kReads | kTraceKeptPages, 100).Read(3, 11, 0, 40).Close(3, 11, 100);
  const TracedRun run = MergeTraces({trace.file()});
  const auto rows = Summarize(run);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].bytes_read, 5000U);
  EXPECT_TRUE(rows[0].estimated);
  EXPECT_EQ(rows[1].bytes_written, 700U);
  EXPECT_EQ(rows[2].bytes_read, 100U);
  Export({trace.file()});
}

TEST(Workload, ALightTraceEstimatesAll) {
  Script trace("h1", true);
  trace.At(0).Name(9, "in").Name(10, "out").Open(1, 9, "t", kReads, 5000).Close(1, 9, 5000);
  trace.Make(2, 10, "t").Close(2, 10, 300);
  const WorkloadTask task = TaskOf(Export({trace.file()}), "t");
  ASSERT_GE(task.operations.size(), 2U);
  EXPECT_EQ(task.operations[0].size_bytes, 5000U);
  EXPECT_EQ(task.operations[1].size_bytes, 300U);
}

TEST(Summary, TellsSequentialFromOther) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Open(1, 9, "a", kReads, 30).Read(1, 9, 0, 10).Read(1, 9, 10, 20);
  trace.Open(2, 9, "b", kReads, 30).Read(2, 9, 20, 10).Read(2, 9, 0, 10);
  const auto rows = Summarize(MergeTraces({trace.file()}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].sequential);
  EXPECT_EQ(rows[0].reads, 2U);
  EXPECT_EQ(rows[0].bytes_read, 30U);
  EXPECT_FALSE(rows[1].sequential);
}

// The kernel reads ahead with several concurrent requests.
TEST(Summary, ReadsThatOvertakeEachOtherAreSequentialIfNoneIsLeftOut) {
  Script trace("h1");
  trace.At(0).Name(9, "in").Open(1, 9, "a", kReads, 50).Read(1, 9, 10, 10).Read(1, 9, 20, 10);
  trace.Read(1, 9, 0, 10).Read(1, 9, 40, 10).Read(1, 9, 30, 10);
  trace.Open(2, 9, "b", kReads, 50).Read(2, 9, 10, 10).Read(2, 9, 0, 10).Read(2, 9, 30, 10);
  trace.Open(3, 9, "c", kReads, 50).Read(3, 9, 10, 10).Open(4, 9, "c", kReads, 50);
  const auto rows = Summarize(MergeTraces({trace.file()}));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(rows[0].sequential);
  EXPECT_FALSE(rows[1].sequential);
  EXPECT_FALSE(rows[2].sequential);
}

TEST(Workload, OfNothingIsNothing) {
  const Workload workload = WorkloadOf(MergeTraces({}), "none");
  EXPECT_THAT(workload.tasks, IsEmpty());
}

}  // namespace
}  // namespace mosa::predict
