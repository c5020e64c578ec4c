#include "tools/hosts/identify_workers.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>

#include "tools/cluster/process.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr size_t kReceivedBytesMax = 1 << 20;

}  // namespace

Result<IdentifyWorkers> IdentifyWorkers::Start(const std::vector<RunHost>& hosts,
                                               Duration at_most) {
  IdentifyWorkers workers;
  for (const RunHost& host : hosts) {
    std::vector<std::string> words = {"identify-worker"};
    if (!host.net_namespace.empty())
      words.insert(words.end(), {"--net-namespace", host.net_namespace});
    MOSA_ASSIGN_OR_RETURN(Worker started, StartWorker(host, words, kIdentifyGreeting));
    workers.workers_.push_back({std::move(started), host.name});
  }
  const Time until = workers.clock_.Monotonic() + at_most;
  for (HostWorker& worker : workers.workers_) MOSA_RETURN_IF_ERROR(workers.Greet(worker, until));
  return workers;
}

IdentifyWorkers::~IdentifyWorkers() {
  for (HostWorker& worker : workers_) worker.socket.Close();
  const Time until = clock_.Monotonic() + kWorkerEndMax;
  // A worker ends by itself, unless it waits for a mount.
  for (HostWorker& worker : workers_) EndWorker(worker, Milliseconds(300), until);
}

// Receives bytes of the worker, if there are any. Unavailable: it is too late, or none will come.
Status IdentifyWorkers::Receive(HostWorker& worker, Time until) {
  const auto lose = [&worker](const std::string& why) {
    worker.lost = true;
    return UnavailableError(fmt::format("host {}: {}", worker.name, why));
  };
  if (worker.lost) return lose("its worker has ended");
  const int64_t milliseconds = (until - clock_.Monotonic()).ns / 1'000'000;
  pollfd wait{worker.socket.fd(), POLLIN, 0};
  if (milliseconds <= 0 ||
      poll(&wait, 1, static_cast<int>(std::min<int64_t>(milliseconds, 100))) == 0) {
    if (clock_.Monotonic() < until) return OkStatus();
    return UnavailableError(
        fmt::format("host {} does not answer in time: check its mount", worker.name));
  }
  if (!worker.socket.Receive()) {
    return lose(worker.socket.greeted()
                    ? "its worker has ended"
                    : "its worker did not start: install this program there under the same path");
  }
  if (worker.socket.waiting_bytes() > kReceivedBytesMax)
    return lose("its worker sends bytes that are not a message");
  return OkStatus();
}

Status IdentifyWorkers::Greet(HostWorker& worker, Time until) {
  while (!worker.socket.greeted()) {
    MOSA_RETURN_IF_ERROR(Receive(worker, until));
    if (cluster::InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
  }
  return OkStatus();
}

// The worker's answer to the question of that number; skips late answers to others.
Result<json> IdentifyWorkers::AnswerOf(HostWorker& worker, uint64_t number, Time until,
                                       OnSignal on_signal) {
  for (;;) {
    while (std::optional<json> answer = worker.socket.Next()) {
      if (!answer->is_object() || answer->value("number", uint64_t{0}) != number) continue;
      const Status status = StatusIn(*answer);
      if (status.ok()) return *std::move(answer);
      return Status(status.code(), fmt::format("host {}: {}", worker.name, MessageOf(status)));
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
    HostWorker& worker = workers_[question.host];
    json words = question.words;
    words["number"] = number_;
    if (!worker.lost && !worker.socket.Send(words)) worker.lost = true;
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
