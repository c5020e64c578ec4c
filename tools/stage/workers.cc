#include "tools/stage/workers.h"

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
#include "tools/hosts/frame.h"
#include "tools/hosts/task_processes.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

// A file with which that many attempts were lost is not tried again.
constexpr size_t kLossesMax = 2;
constexpr int kTickMs = 200;
// What a worker says first. Before it there may be what a login shell has to say, up to a limit.
constexpr std::string_view kGreeting = "\nmosa stage worker 1\n";
constexpr size_t kNoiseBytesMax = 64 * 1024;
constexpr size_t kAnswerBytesMax = 64 * 1024;

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
  json answer = {{"code", 0},
                 {"bytes", result->size_bytes},
                 {"skipped", result->skipped},
                 {"inode", result->inode}};
  if (result->crc32c) answer["crc32c"] = *result->crc32c;
  return answer;
}

// Nothing if it is no answer of a worker.
std::optional<Result<CopyResult>> ResultFrom(const json& answer) {
  try {
    const auto code = static_cast<StatusCode>(answer.at("code").get<int>());
    if (code != StatusCode::kOk)
      return Result<CopyResult>(Status(code, answer.at("message").get<std::string>()));
    CopyResult result{.size_bytes = answer.at("bytes"),
                      .skipped = answer.at("skipped"),
                      .crc32c = {},
                      .inode = answer.at("inode")};
    if (answer.contains("crc32c")) result.crc32c = answer.at("crc32c").get<uint32_t>();
    return Result<CopyResult>(result);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::vector<std::string> WorkerCommand(const RunHost& host, const StageWorkers::Options& options) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> command = host.exec;
  if (command.empty()) {
    command = {self, "stage", "worker", "--parent", fmt::format("{}", getpid())};
    if (!options.probe.empty()) command.insert(command.end(), {"--probe", options.probe});
    return command;
  }
  const std::string probe =
      options.probe.empty() ? "" : fmt::format(" --probe {}", Quote(options.probe));
  command.push_back(
      fmt::format("MOSA_TASK={} exec {} stage worker{}", Quote(options.task), Quote(self), probe));
  return command;
}

}  // namespace

Status StageWorkers::Spawn(const RunHost& host, size_t index, const Options& options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return UnavailableError(fmt::format("cannot make a socket: {}", strerror(errno)));
  const UniqueFd theirs(ends[0]);
  Worker worker;
  worker.host = index;
  worker.channel = UniqueFd(ends[1]);
  const std::vector<std::string> command = WorkerCommand(host, options);
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
                                         const std::vector<size_t>& counts,
                                         const Options& options) {
  StageWorkers workers;
  workers.greeting_max_ = options.greeting_max;
  setenv("MOSA_TASK", options.task.c_str(), 1);
  for (size_t host = 0; host < hosts.size(); ++host) {
    workers.host_names_.push_back(hosts[host].name);
    for (size_t i = 0; i < counts[host]; ++i)
      MOSA_RETURN_IF_ERROR(workers.Spawn(hosts[host], host, options));
  }
  return workers;
}

StageWorkers::~StageWorkers() {
  for (const Worker& worker : workers_)
    if (worker.pid > 0) kill(worker.pid, SIGKILL);
  const Time until = SystemClock().Monotonic() + kEndMax;
  for (Worker& worker : workers_) End(worker, until);
}

// One that waits for a dead mount or backend cannot end before that answers: it is left to itself.
void StageWorkers::End(Worker& worker, Time until) {
  worker.channel.reset();
  if (worker.pid <= 0) return;
  kill(worker.pid, SIGKILL);
  const SystemClock clock;
  while (waitpid(worker.pid, nullptr, WNOHANG) == 0 && clock.Monotonic() < until)
    cluster::Pause(Milliseconds(1));
  worker.pid = -1;
}

bool StageWorkers::Feed(Worker& worker, const Prepare& prepare) {
  std::deque<size_t>& queue = queues_[worker.host];
  if (!worker.greeted || worker.job || queue.empty()) return true;
  worker.job = queue.front();
  queue.pop_front();
  return WriteAll(worker.channel.get(), PackFrame(cli::ToJson(prepare(*worker.job, worker.host))));
}

void StageWorkers::Receive(Worker& worker, const Done& done) {
  char buffer[65536];
  const ssize_t bytes = recv(worker.channel.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes <= 0) return Lose(worker, done);
  worker.received.append(buffer, static_cast<size_t>(bytes));
  if (!worker.greeted) {
    const size_t greeting = worker.received.find(kGreeting);
    if (greeting == std::string::npos) {
      if (worker.received.size() > kNoiseBytesMax) Lose(worker, done);
      return;
    }
    worker.received.erase(0, greeting + kGreeting.size());
    worker.greeted = true;
  }
  const auto answer = UnpackFrame(worker.received);
  if (!answer && worker.received.size() <= kAnswerBytesMax) return;
  const auto result = answer ? ResultFrom(*answer) : std::nullopt;
  if (!result || !worker.job) return Lose(worker, done);
  Finish(worker, *result, done);
}

// What cannot be had on one host may be on another.
void StageWorkers::Finish(Worker& worker, const Result<CopyResult>& result, const Done& done) {
  const size_t job = *std::exchange(worker.job, std::nullopt);
  if (result.status().code() == StatusCode::kUnavailable && ++losses_[job] < kLossesMax) {
    if (const auto other = OtherHost(worker.host)) return queues_[*other].push_back(job);
  }
  done(job, worker.host, result);
}

void StageWorkers::Lose(Worker& worker, const Done& done) {
  if (!worker.greeted)
    fmt::print(stderr, "mosa stage: a process for host {} has not begun to work, and is left out\n",
               host_names_[worker.host]);
  End(worker, SystemClock().Monotonic() + kEndMax);
  const auto job = std::exchange(worker.job, std::nullopt);
  if (!job) return;
  if (++losses_[*job] < kLossesMax) return queues_[worker.host].push_front(*job);
  done(*job, worker.host,
       UnavailableError(
           fmt::format("a process that copies for host {} has ended", host_names_[worker.host])));
}

// Another host that has processes: all of them in turn.
std::optional<size_t> StageWorkers::OtherHost(size_t host) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    next_host_ = (next_host_ + 1) % queues_.size();
    const bool alive = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
      return worker.host == next_host_ && worker.pid > 0;
    });
    if (alive && next_host_ != host) return next_host_;
  }
  return std::nullopt;
}

// What waits for a host without workers goes to one that has some.
void StageWorkers::Rehome() {
  std::vector<bool> alive(queues_.size(), false);
  for (const Worker& worker : workers_)
    if (worker.pid > 0) alive[worker.host] = true;
  for (size_t host = 0; host < queues_.size(); ++host) {
    if (alive[host] || !OtherHost(host)) continue;
    for (const size_t job : std::exchange(queues_[host], {}))
      queues_[*OtherHost(host)].push_back(job);
  }
}

Status StageWorkers::Run(const std::vector<size_t>& host_of_job, const Prepare& prepare,
                         const Done& done, const std::function<void()>& tick) {
  queues_.assign(host_names_.size(), {});
  for (size_t job = 0; job < host_of_job.size(); ++job) queues_[host_of_job[job]].push_back(job);
  losses_.assign(host_of_job.size(), 0);
  signal(SIGPIPE, SIG_IGN);  // A worker that is gone is found out by its channel.
  const SystemClock clock;
  const Time greeted_by = clock.Monotonic() + greeting_max_;
  for (;;) {
    if (cluster::InterruptGuard::Interrupted() != 0)
      return AbortedError("interrupted: the same command goes on where it was");
    const bool late = clock.Monotonic() >= greeted_by;
    std::vector<pollfd> waits;
    std::vector<Worker*> waited;
    bool busy = false;
    for (Worker& worker : workers_) {
      if (worker.pid <= 0) continue;
      if ((late && !worker.greeted) || !Feed(worker, prepare)) {
        Lose(worker, done);
        continue;
      }
      busy = busy || worker.job;
      waits.push_back({worker.channel.get(), POLLIN, 0});
      waited.push_back(&worker);
    }
    Rehome();
    const bool waiting = std::any_of(queues_.begin(), queues_.end(),
                                     [](const auto& queue) { return !queue.empty(); });
    if (!busy && !waiting) return OkStatus();
    if (waits.empty()) {
      for (auto& queue : queues_)
        for (const size_t job : std::exchange(queue, {}))
          done(job, host_of_job[job],
               UnavailableError("no host has a process left that copies: see what it said above"));
      return OkStatus();
    }
    poll(waits.data(), waits.size(), kTickMs);
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i].revents != 0) Receive(*waited[i], done);
    tick();
  }
}

Status ServeAsStageWorker(pid_t parent, const std::string& probe) {
  signal(SIGINT, SIG_IGN);  // A terminal sends it to all; the first process ends the others.
  signal(SIGPIPE, SIG_IGN);
  if (parent != 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return OkStatus();
  }
  struct stat seen {};
  if (!probe.empty() && lstat(probe.c_str(), &seen) != 0)
    return FailedPreconditionError(
        fmt::format("{} is another directory here than where mosa stage runs: name one that all "
                    "hosts share",
                    std::filesystem::path(probe).parent_path().string()));
  umask(0);
  if (!WriteAll(STDOUT_FILENO, std::string(kGreeting))) return OkStatus();
  std::string received;
  char buffer[65536];
  for (;;) {
    const ssize_t bytes = read(STDIN_FILENO, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return OkStatus();
    received.append(buffer, static_cast<size_t>(bytes));
    while (const auto question = UnpackFrame(received))
      if (!WriteAll(STDOUT_FILENO, PackFrame(ToJson(CopyFile(CopyJobFrom(*question))))))
        return OkStatus();
  }
}

}  // namespace mosa::cli
