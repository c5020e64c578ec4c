#include "tools/stage/workers.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "common/base/clock.h"
#include "tools/cluster/process.h"
#include "tools/hosts/task_processes.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

// A file is not tried again after it has lost this many workers.
constexpr size_t kLossesMax = 2;
constexpr int kTickMs = 200;
// A worker says this first.
constexpr std::string_view kGreeting = "\nmosa stage worker 1\n";
constexpr size_t kWaitingBytesMax = 64 * 1024;  // Before the greeting, or of an answer.

json ToJson(const Result<CopyResult>& result) {
  if (!result.ok()) return StatusJson(result.status());
  json answer = {
      {"bytes", result->size_bytes}, {"skipped", result->skipped}, {"inode", result->inode}};
  if (result->crc32c) answer["crc32c"] = *result->crc32c;
  return answer;
}

// Nothing if it is not a worker's answer.
std::optional<Result<CopyResult>> ResultFrom(const json& answer) {
  try {
    if (Status status = StatusIn(answer); !status.ok()) return Result<CopyResult>(status);
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

}  // namespace

Result<StageWorkers> StageWorkers::Start(const std::vector<RunHost>& hosts,
                                         const std::vector<size_t>& counts,
                                         const Options& options) {
  StageWorkers workers;
  workers.greeting_max_ = options.greeting_max;
  setenv("MOSA_TASK", options.task.c_str(), 1);
  const std::string task = fmt::format("MOSA_TASK={} ", Quote(options.task));
  std::vector<std::string> words = {"stage", "worker"};
  if (!options.probe.empty()) words.insert(words.end(), {"--probe", options.probe});
  for (size_t host = 0; host < hosts.size(); ++host) {
    workers.host_names_.push_back(hosts[host].name);
    for (size_t i = 0; i < counts[host]; ++i) {
      MOSA_ASSIGN_OR_RETURN(Worker started, StartWorker(hosts[host], words, kGreeting, task));
      workers.workers_.push_back({std::move(started), host, std::nullopt});
    }
  }
  return workers;
}

StageWorkers::~StageWorkers() {
  for (const CopyWorker& worker : workers_)
    if (worker.pid > 0) kill(worker.pid, SIGKILL);
  const Time until = SystemClock().Monotonic() + kWorkerEndMax;
  for (CopyWorker& worker : workers_) EndWorker(worker, Duration(), until);
}

bool StageWorkers::Feed(CopyWorker& worker, const Prepare& prepare) {
  std::deque<size_t>& queue = queues_[worker.host];
  if (!worker.socket.greeted() || worker.job || queue.empty()) return true;
  worker.job = queue.front();
  queue.pop_front();
  return worker.socket.Send(cli::ToJson(prepare(*worker.job, worker.host)));
}

void StageWorkers::Receive(CopyWorker& worker, const Done& done) {
  if (!worker.socket.Receive()) return Lose(worker, done);
  const auto answer = worker.socket.Next();
  if (!answer && worker.socket.waiting_bytes() <= kWaitingBytesMax) return;
  const auto result = answer ? ResultFrom(*answer) : std::nullopt;
  if (!result || !worker.job) return Lose(worker, done);
  Finish(worker, *result, done);
}

// What cannot be had on one host may be on another.
void StageWorkers::Finish(CopyWorker& worker, const Result<CopyResult>& result, const Done& done) {
  const size_t job = *std::exchange(worker.job, std::nullopt);
  if (result.status().code() == StatusCode::kUnavailable && ++losses_[job] < kLossesMax) {
    if (const auto other = OtherHost(worker.host)) return queues_[*other].push_back(job);
  }
  done(job, worker.host, result);
}

void StageWorkers::Lose(CopyWorker& worker, const Done& done) {
  if (!worker.socket.greeted())
    fmt::print(stderr, "mosa stage: a worker on host {} did not start and is left out\n",
               host_names_[worker.host]);
  EndWorker(worker, Duration(), SystemClock().Monotonic() + kWorkerEndMax);
  const auto job = std::exchange(worker.job, std::nullopt);
  if (!job) return;
  if (++losses_[*job] < kLossesMax) return queues_[worker.host].push_front(*job);
  done(*job, worker.host,
       UnavailableError(fmt::format("a worker on host {} has ended", host_names_[worker.host])));
}

// Another host that has processes: all of them in turn.
std::optional<size_t> StageWorkers::OtherHost(size_t host) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    next_host_ = (next_host_ + 1) % queues_.size();
    const bool alive = std::any_of(workers_.begin(), workers_.end(), [&](const CopyWorker& worker) {
      return worker.host == next_host_ && worker.pid > 0;
    });
    if (alive && next_host_ != host) return next_host_;
  }
  return std::nullopt;
}

// What waits for a host without workers goes to one that has some.
void StageWorkers::Rehome() {
  std::vector<bool> alive(queues_.size(), false);
  for (const CopyWorker& worker : workers_)
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
  signal(SIGPIPE, SIG_IGN);  // Copying goes on if nobody reads what this prints.
  const SystemClock clock;
  const Time greeted_by = clock.Monotonic() + greeting_max_;
  for (;;) {
    if (cluster::InterruptGuard::Interrupted() != 0)
      return AbortedError("interrupted: run the same command again to continue");
    const bool late = clock.Monotonic() >= greeted_by;
    std::vector<pollfd> waits;
    std::vector<CopyWorker*> waited;
    bool busy = false;
    for (CopyWorker& worker : workers_) {
      if (worker.pid <= 0) continue;
      if ((late && !worker.socket.greeted()) || !Feed(worker, prepare)) {
        Lose(worker, done);
        continue;
      }
      busy = busy || worker.job;
      waits.push_back({worker.socket.fd(), POLLIN, 0});
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
               UnavailableError("no host has a worker left: see the messages above"));
      return OkStatus();
    }
    poll(waits.data(), waits.size(), kTickMs);
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i].revents != 0) Receive(*waited[i], done);
    tick();
  }
}

Status ServeAsStageWorker(pid_t parent, const std::string& probe) {
  struct stat seen {};
  if (!probe.empty() && lstat(probe.c_str(), &seen) != 0)
    return FailedPreconditionError(
        fmt::format("{} is another directory here than where mosa stage runs: name one that all "
                    "hosts share",
                    std::filesystem::path(probe).parent_path().string()));
  umask(0);
  ServeAsWorker(parent, kGreeting,
                [](const json& job) { return ToJson(CopyFile(CopyJobFrom(job))); });
  return OkStatus();
}

}  // namespace mosa::cli
