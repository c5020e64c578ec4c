#include "tools/measure/bench_pinned.h"

#include <fmt/format.h>

#include <deque>
#include <fstream>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "predictor/workflow/execution.h"
#include "tools/cluster/process.h"
#include "tools/hosts/task_processes.h"

namespace mosa::cli {
namespace {

using predict::HostIndex;
using predict::TaskIndex;
using predict::Workflow;

constexpr Duration kWaitMax = Milliseconds(200);
constexpr Duration kGrace = Seconds(2);

std::string LastLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

class PinnedRun {
 public:
  PinnedRun(const Workflow& workflow, RunRecord& record, const PinnedOptions& options)
      : workflow_(workflow),
        record_(record),
        options_(options),
        execution_(workflow, {}),
        processes_(options.held),
        hosts_(record.hosts.size()) {}

  Status Run() {
    record_.start = clock_.Now();
    Status status;
    while (status.ok()) {
      status = Queue();
      if (status.ok()) status = StartAll();
      if (!status.ok() || running_.empty()) break;
      for (const auto& ended : processes_.Wait(kWaitMax)) {
        const Status one = Handle(ended);
        if (status.ok()) status = one;
      }
      if (cluster::InterruptGuard::Interrupted() != 0) status = AbortedError("interrupted");
    }
    processes_.EndAll(kGrace);
    record_.end = clock_.Now();
    return status;
  }

 private:
  struct Host {
    std::deque<TaskIndex> waiting;
    uint32_t running = 0;
  };
  struct Running {
    TaskIndex task;
    HostIndex host;
  };

  Status Queue() {
    for (const TaskIndex task : execution_.TakeReady()) {
      Attempt attempt;
      attempt.start = clock_.Now();
      MOSA_ASSIGN_OR_RETURN(const HostIndex host, options_.pin(task));
      attempt.host = record_.hosts[host.value].name;
      const std::string log = fmt::format("{}/{}", options_.logs, workflow_.at(task).id);
      attempt.output_path = log + ".out";
      attempt.error_path = log + ".err";
      record_.tasks[task.value].attempts = {attempt};
      hosts_[host.value].waiting.push_back(task);
    }
    return OkStatus();
  }

  Status StartAll() {
    for (uint32_t i = 0; i < hosts_.size(); ++i) {
      Host& host = hosts_[i];
      while (host.running < record_.hosts[i].slots && !host.waiting.empty()) {
        MOSA_RETURN_IF_ERROR(Start(host.waiting.front(), HostIndex{i}));
        host.waiting.pop_front();
        ++host.running;
      }
    }
    return OkStatus();
  }

  Status Start(TaskIndex task, HostIndex host) {
    const Attempt& attempt = record_.tasks[task.value].attempts.back();
    TaskCommand command;
    command.host = &record_.hosts[host.value];
    command.argv = workflow_.at(task).command;
    command.environment["MOSA_TASK"] = workflow_.at(task).id;
    command.output_path = attempt.output_path;
    command.error_path = attempt.error_path;
    execution_.Start(task);
    MOSA_ASSIGN_OR_RETURN(const pid_t pid, processes_.Start(command));
    running_.emplace(pid, Running{task, host});
    return OkStatus();
  }

  Status Handle(const TaskProcesses::Ended& ended) {
    const auto found = running_.find(ended.pid);
    if (found == running_.end()) return OkStatus();
    const auto [task, host] = found->second;
    running_.erase(found);
    --hosts_[host.value].running;
    TaskRecord& record = record_.tasks[task.value];
    Attempt& attempt = record.attempts.back();
    attempt.end = clock_.Now();
    attempt.exit_code = ended.exit_code;
    attempt.signal = ended.signal;
    if (ended.exit_code == 0) {
      execution_.Finish(task);
      record.state = predict::TaskState::kDone;
      return OkStatus();
    }
    record.state = predict::TaskState::kFailed;
    attempt.failure =
        fmt::format("exit code {}: {}", ended.exit_code, LastLineOf(attempt.error_path));
    return FailedPreconditionError(fmt::format(
        "{} on {}: {}", predict::Describe(workflow_.at(task)), attempt.host, attempt.failure));
  }

  const Workflow& workflow_;
  RunRecord& record_;
  const PinnedOptions& options_;
  const SystemClock clock_;
  predict::Execution execution_;
  TaskProcesses processes_;
  std::vector<Host> hosts_;
  std::map<pid_t, Running> running_;
};

}  // namespace

Status RunPinned(const Workflow& workflow, RunRecord& record, const PinnedOptions& options) {
  return PinnedRun(workflow, record, options).Run();
}

}  // namespace mosa::cli
