#include "tools/hosts/identify_workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/cluster/process.h"
#include "tools/hosts/frame.h"
#include "tools/hosts/send_all.h"
#include "tools/hosts/task_processes.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr size_t kReceivedBytesMax = 1 << 20;
constexpr Duration kWorkersEndMax = Seconds(2);

std::vector<std::string> WorkerCommand(const RunHost& host) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> command = host.exec;
  if (command.empty()) return {self, "identify-worker", "--parent", fmt::format("{}", getpid())};
  command.push_back(fmt::format("exec {} identify-worker", Quote(self)));
  return command;
}

[[noreturn]] void RunWorker(const RunHost& host, std::vector<std::string>& command, int channel) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  setpgid(0, 0);  // What a terminal sends reaches the first process alone, which ends this one.
  dup2(channel, STDIN_FILENO);
  dup2(channel, STDOUT_FILENO);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  if (!host.net_namespace.empty() && !cluster::EnterNetNamespace(host.net_namespace).ok())
    _exit(126);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

Status IdentifyWorkers::Spawn(const RunHost& host) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return UnavailableError(fmt::format("cannot make a socket: {}", strerror(errno)));
  const UniqueFd theirs(ends[0]);
  Worker worker;
  worker.name = host.name;
  worker.channel = UniqueFd(ends[1]);
  std::vector<std::string> command = WorkerCommand(host);
  worker.pid = fork();
  if (worker.pid == 0) RunWorker(host, command, theirs.get());
  if (worker.pid < 0)
    return UnavailableError(
        fmt::format("cannot start a process for host {}: {}", host.name, strerror(errno)));
  workers_.push_back(std::move(worker));
  return OkStatus();
}

Result<IdentifyWorkers> IdentifyWorkers::Start(const std::vector<RunHost>& hosts,
                                               Duration at_most) {
  IdentifyWorkers workers;
  for (const RunHost& host : hosts) MOSA_RETURN_IF_ERROR(workers.Spawn(host));
  const Time until = workers.clock_.Monotonic() + at_most;
  for (Worker& worker : workers.workers_) MOSA_RETURN_IF_ERROR(workers.Greet(worker, until));
  return workers;
}

IdentifyWorkers::~IdentifyWorkers() {
  for (Worker& worker : workers_) worker.channel.reset();
  const Time until = clock_.Monotonic() + kWorkersEndMax;
  for (const Worker& worker : workers_) {
    if (worker.pid <= 0) continue;
    // Its channel is closed: it ends by itself, unless it waits for a mount.
    const Time patience = std::min(until, clock_.Monotonic() + Milliseconds(300));
    while (waitpid(worker.pid, nullptr, WNOHANG) == 0) {
      if (clock_.Monotonic() >= patience) kill(worker.pid, SIGKILL);
      if (clock_.Monotonic() >= until) break;
      cluster::Pause(Milliseconds(2));
    }
  }
}

// More bytes of the worker, or none yet. Unavailable: it is too late, or none will ever come.
Status IdentifyWorkers::Receive(Worker& worker, Time until) {
  const auto lose = [&worker](const std::string& why) {
    worker.lost = true;
    return UnavailableError(fmt::format("host {}: {}", worker.name, why));
  };
  if (worker.lost) return lose("its process is gone");
  const int64_t milliseconds = (until - clock_.Monotonic()).ns / 1'000'000;
  pollfd wait{worker.channel.get(), POLLIN, 0};
  if (milliseconds <= 0 ||
      poll(&wait, 1, static_cast<int>(std::min<int64_t>(milliseconds, 100))) == 0) {
    if (clock_.Monotonic() < until) return OkStatus();
    return UnavailableError(
        fmt::format("host {}: it does not answer in time: is its mount alive?", worker.name));
  }
  char buffer[65536];
  const ssize_t bytes = recv(worker.channel.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return OkStatus();
  if (bytes <= 0 && worker.greeted) return lose("its process has ended");
  if (bytes <= 0) return lose("its process has ended: is this program there under the same path?");
  worker.received.append(buffer, static_cast<size_t>(bytes));
  if (worker.received.size() > kReceivedBytesMax) return lose("it talks nonsense");
  return OkStatus();
}

Status IdentifyWorkers::Greet(Worker& worker, Time until) {
  for (;;) {
    const size_t greeting = worker.received.find(kIdentifyGreeting);
    if (greeting != std::string::npos) {
      worker.received.erase(0, greeting + kIdentifyGreeting.size());
      worker.greeted = true;
      return OkStatus();
    }
    MOSA_RETURN_IF_ERROR(Receive(worker, until));
    if (cluster::InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
  }
}

// What the worker says to the question of that number; late answers to others are skipped.
Result<json> IdentifyWorkers::AnswerOf(Worker& worker, uint64_t number, Time until,
                                       OnSignal on_signal) {
  for (;;) {
    while (std::optional<json> answer = UnpackFrame(worker.received)) {
      if (!answer->is_object() || answer->value("number", uint64_t{0}) != number) continue;
      const auto code = static_cast<StatusCode>(answer->value("code", 0));
      if (code == StatusCode::kOk) return *std::move(answer);
      return Status(code, fmt::format("host {}: {}", worker.name,
                                      answer->value("message", std::string("no reason"))));
    }
    if (on_signal == OnSignal::kEnd && cluster::InterruptGuard::Interrupted() != 0)
      return AbortedError("interrupted");
    MOSA_RETURN_IF_ERROR(Receive(worker, until));
  }
}

Result<std::vector<json>> IdentifyWorkers::Ask(const std::vector<Question>& questions,
                                               Duration at_most, OnSignal on_signal) {
  const Time until = clock_.Monotonic() + at_most;
  ++number_;
  for (const Question& question : questions) {
    Worker& worker = workers_[question.host];
    json words = question.words;
    words["number"] = number_;
    if (!worker.lost && !SendAll(worker.channel.get(), PackFrame(words))) worker.lost = true;
  }
  std::vector<json> answers;
  Status failed;
  for (const Question& question : questions) {
    Result<json> answer = AnswerOf(workers_[question.host], number_, until, on_signal);
    if (answer.ok())
      answers.push_back(*std::move(answer));
    else if (failed.ok())
      failed = answer.status();
  }
  if (!failed.ok()) return failed;
  return answers;
}

Result<json> IdentifyWorkers::Ask(size_t host, json words, Duration at_most, OnSignal on_signal) {
  MOSA_ASSIGN_OR_RETURN(std::vector<json> answers,
                        Ask({{host, std::move(words)}}, at_most, on_signal));
  return std::move(answers.front());
}

}  // namespace mosa::cli
