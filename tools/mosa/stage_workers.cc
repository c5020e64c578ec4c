#include "tools/mosa/stage_workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/cluster/process.h"
#include "tools/mosa/frame.h"
#include "tools/mosa/run_process.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

// A file with which that many workers were lost is not tried again.
constexpr size_t kLossesMax = 2;
constexpr int kTickMs = 200;

// Whether the other side is still there.
bool WriteAll(int fd, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t bytes = write(fd, text.data() + sent, text.size() - sent);
    if (bytes < 0 && errno != EINTR) return false;
    sent += static_cast<size_t>(std::max<ssize_t>(0, bytes));
  }
  return true;
}

json ToJson(const Result<CopyResult>& result) {
  if (!result.ok())
    return {{"code", static_cast<int>(result.status().code())},
            {"message", MessageOf(result.status())}};
  json answer = {{"code", 0}, {"bytes", result->size_bytes}, {"skipped", result->skipped}};
  if (result->crc32c) answer["crc32c"] = *result->crc32c;
  return answer;
}

Result<CopyResult> ResultFrom(const json& answer) {
  const auto code = static_cast<StatusCode>(answer.at("code").get<int>());
  if (code != StatusCode::kOk) return Status(code, answer.at("message").get<std::string>());
  CopyResult result{answer.at("bytes"), answer.at("skipped"), {}};
  if (answer.contains("crc32c")) result.crc32c = answer.at("crc32c").get<uint32_t>();
  return result;
}

// Who writes a file under a name of a task is no reader of it when it reads it back.
std::string TaskName() {
  const char* const task = getenv("MOSA_TASK");
  return task != nullptr && *task != '\0' ? task : fmt::format("mosa-stage-{}", getpid());
}

std::vector<std::string> WorkerCommand(const RunHost& host) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (host.exec.empty()) return {self, "stage", "worker", "--parent", fmt::format("{}", getpid())};
  std::vector<std::string> command = host.exec;
  command.push_back(
      fmt::format("MOSA_TASK={} exec {} stage worker", Quote(TaskName()), Quote(self)));
  return command;
}

}  // namespace

Status StageWorkers::Spawn(const RunHost& host, size_t index) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return UnavailableError(fmt::format("cannot make a socket: {}", strerror(errno)));
  const UniqueFd theirs(ends[0]);
  Worker worker;
  worker.host = index;
  worker.channel = UniqueFd(ends[1]);
  const std::vector<std::string> command = WorkerCommand(host);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  const int failed =
      posix_spawnp(&worker.pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return UnavailableError(
        fmt::format("cannot run '{}' for host {}: {}", command[0], host.name, strerror(failed)));
  workers_.push_back(std::move(worker));
  return OkStatus();
}

Result<StageWorkers> StageWorkers::Start(const std::vector<RunHost>& hosts,
                                         const std::vector<size_t>& counts) {
  StageWorkers workers;
  setenv("MOSA_TASK", TaskName().c_str(), 1);
  for (size_t host = 0; host < hosts.size(); ++host) {
    workers.host_names_.push_back(hosts[host].name);
    for (size_t i = 0; i < counts[host]; ++i)
      MOSA_RETURN_IF_ERROR(workers.Spawn(hosts[host], host));
  }
  return workers;
}

StageWorkers::~StageWorkers() {
  for (Worker& worker : workers_) End(worker);
}

void StageWorkers::End(Worker& worker) {
  worker.channel.reset();
  if (worker.pid <= 0) return;
  kill(worker.pid, SIGKILL);
  waitpid(worker.pid, nullptr, 0);
  worker.pid = -1;
}

bool StageWorkers::Feed(Worker& worker, std::deque<size_t>& queue, const Prepare& prepare) {
  if (worker.job || queue.empty()) return true;
  worker.job = queue.front();
  queue.pop_front();
  return WriteAll(worker.channel.get(), PackFrame(cli::ToJson(prepare(*worker.job, worker.host))));
}

void StageWorkers::Receive(Worker& worker, std::vector<std::deque<size_t>>& queues,
                           const Done& done) {
  char buffer[65536];
  const ssize_t bytes = recv(worker.channel.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes <= 0) return Lose(worker, queues, done);
  worker.received.append(buffer, static_cast<size_t>(bytes));
  const auto answer = UnpackFrame(worker.received);
  if (!answer) return;
  const size_t job = *std::exchange(worker.job, std::nullopt);
  done(job, worker.host, ResultFrom(*answer));
}

void StageWorkers::Lose(Worker& worker, std::vector<std::deque<size_t>>& queues, const Done& done) {
  End(worker);
  const auto job = std::exchange(worker.job, std::nullopt);
  if (!job) return;
  if (++losses_[*job] < kLossesMax) return queues[worker.host].push_front(*job);
  done(*job, worker.host,
       UnavailableError(
           fmt::format("a process that copies for host {} has ended", host_names_[worker.host])));
}

// What waits for a host without workers goes to one that has some.
void StageWorkers::Rehome(std::vector<std::deque<size_t>>& queues) {
  std::vector<bool> alive(queues.size(), false);
  for (const Worker& worker : workers_)
    if (worker.pid > 0) alive[worker.host] = true;
  size_t next = 0;
  for (size_t host = 0; host < queues.size(); ++host) {
    if (alive[host] || std::find(alive.begin(), alive.end(), true) == alive.end()) continue;
    for (const size_t job : std::exchange(queues[host], {})) {
      do {
        next = (next + 1) % queues.size();
      } while (!alive[next]);
      queues[next].push_back(job);
    }
  }
}

Status StageWorkers::Run(const std::vector<size_t>& host_of_job, const Prepare& prepare,
                         const Done& done, const std::function<void()>& tick) {
  std::vector<std::deque<size_t>> queues(host_names_.size());
  for (size_t job = 0; job < host_of_job.size(); ++job) queues[host_of_job[job]].push_back(job);
  losses_.assign(host_of_job.size(), 0);
  signal(SIGPIPE, SIG_IGN);  // A worker that is gone is found out by its channel.
  for (;;) {
    if (cluster::InterruptGuard::Interrupted() != 0) {
      for (Worker& worker : workers_) End(worker);
      return AbortedError("interrupted: the same command goes on where it was");
    }
    std::vector<pollfd> waits;
    std::vector<Worker*> waited;
    bool busy = false;
    for (Worker& worker : workers_) {
      if (worker.pid <= 0) continue;
      if (!Feed(worker, queues[worker.host], prepare)) {
        Lose(worker, queues, done);
        continue;
      }
      busy = busy || worker.job;
      waits.push_back({worker.channel.get(), POLLIN, 0});
      waited.push_back(&worker);
    }
    const bool waiting =
        std::any_of(queues.begin(), queues.end(), [](const auto& queue) { return !queue.empty(); });
    if (!busy && !waiting) return OkStatus();
    if (waits.empty()) {
      for (auto& queue : queues)
        for (const size_t job : std::exchange(queue, {}))
          done(job, host_of_job[job],
               UnavailableError("no host has a process left that copies: see what it said above"));
      return OkStatus();
    }
    poll(waits.data(), waits.size(), kTickMs);
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i].revents != 0) Receive(*waited[i], queues, done);
    Rehome(queues);
    tick();
  }
}

void ServeAsStageWorker(pid_t parent) {
  signal(SIGINT, SIG_IGN);  // A terminal sends it to all; the first process ends the others.
  signal(SIGPIPE, SIG_IGN);
  if (parent != 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return;
  }
  umask(0);
  std::string received;
  char buffer[65536];
  for (;;) {
    const ssize_t bytes = read(STDIN_FILENO, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return;
    received.append(buffer, static_cast<size_t>(bytes));
    while (const auto question = UnpackFrame(received))
      if (!WriteAll(STDOUT_FILENO, PackFrame(ToJson(CopyFile(CopyJobFrom(*question)))))) return;
  }
}

}  // namespace mosa::cli
