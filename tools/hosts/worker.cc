#include "tools/hosts/worker.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/clock.h"
#include "tools/cluster/process.h"
#include "tools/hosts/task_processes.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

std::string Pack(const json& value) {
  std::string text;
  json::to_msgpack(value, text);
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

// Takes the first message off, if it is whole.
std::optional<json> Unpack(std::string& received) {
  uint64_t size = 0;
  if (received.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, received.data(), sizeof size);
  if (received.size() - sizeof size < size) return std::nullopt;
  std::optional<json> value;
  value.emplace(json::from_msgpack(received.substr(sizeof size, size), true, false));
  received.erase(0, sizeof size + size);
  return value;
}

// False if the other side of the socket or pipe is gone.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t bytes = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (bytes < 0 && errno == ENOTSOCK) bytes = write(fd, text.data(), text.size());
    if (bytes < 0 && errno != EINTR) return false;
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(0, bytes)));
  }
  return true;
}

bool IsPlain(const std::string& word) {
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

std::vector<std::string> CommandOf(const RunHost& host, const std::vector<std::string>& words,
                                   const std::string& variables) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> command = host.exec;
  if (command.empty()) {
    command = {self};
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--parent", fmt::format("{}", getpid())});
    return command;
  }
  std::string script = fmt::format("{}exec {}", variables, Quote(self));
  for (const std::string& word : words) script += " " + (IsPlain(word) ? word : Quote(word));
  command.push_back(script);
  return command;
}

}  // namespace

json StatusJson(const Status& status) {
  return {{"code", static_cast<int>(status.code())}, {"message", MessageOf(status)}};
}

Status StatusIn(const json& answer) {
  const auto code = static_cast<StatusCode>(answer.value("code", 0));
  return code == StatusCode::kOk ? OkStatus() : Status(code, answer.value("message", ""));
}

Result<UniqueFd> MessageSocket::Connect(std::string_view greeting) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return UnavailableError(fmt::format("cannot create a socket: {}", strerror(errno)));
  socket_ = UniqueFd(ends[1]);
  greeting_ = greeting;
  received_.clear();
  return UniqueFd(ends[0]);
}

bool MessageSocket::Send(const json& message) const { return WriteAll(fd(), Pack(message)); }

bool MessageSocket::Receive() {
  char buffer[65536];
  const ssize_t bytes = recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (bytes <= 0) return bytes < 0 && (errno == EAGAIN || errno == EINTR);
  received_.append(buffer, static_cast<size_t>(bytes));
  if (const size_t at = received_.find(greeting_); !greeted() && at != std::string::npos) {
    received_.erase(0, at + greeting_.size());
    greeting_ = {};
  }
  return true;
}

std::optional<json> MessageSocket::Next() { return greeted() ? Unpack(received_) : std::nullopt; }

Result<Worker> StartWorker(const RunHost& host, const std::vector<std::string>& words,
                           std::string_view greeting, const std::string& variables) {
  Worker worker;
  MOSA_ASSIGN_OR_RETURN(const UniqueFd theirs, worker.socket.Connect(greeting));
  std::vector<std::string> command = CommandOf(host, words, variables);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // What a terminal sends reaches this process alone, which ends the others.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int failed =
      posix_spawnp(&worker.pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return worker;
  return UnavailableError(
      fmt::format("cannot run '{}' for host {}: {}", command[0], host.name, strerror(failed)));
}

void EndWorker(Worker& worker, Duration patience, Time until) {
  worker.socket.Close();
  if (worker.pid <= 0) return;
  const SystemClock clock;
  const Time patient = std::min(until, clock.Monotonic() + patience);
  while (waitpid(worker.pid, nullptr, WNOHANG) == 0) {
    if (clock.Monotonic() >= patient) kill(worker.pid, SIGKILL);
    if (clock.Monotonic() >= until) break;
    cluster::Pause(Milliseconds(2));
  }
  worker.pid = -1;
}

void AnswerAll(int input, int output, const AnswerFunction& answer) {
  std::string received;
  char buffer[65536];
  for (;;) {
    const ssize_t bytes = read(input, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return;
    received.append(buffer, static_cast<size_t>(bytes));
    while (const auto question = Unpack(received))
      if (!WriteAll(output, Pack(answer(*question)))) return;
  }
}

void ServeAsWorker(pid_t parent, std::string_view greeting, const AnswerFunction& answer) {
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  if (parent != 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return;
  }
  if (WriteAll(STDOUT_FILENO, greeting)) AnswerAll(STDIN_FILENO, STDOUT_FILENO, answer);
}

}  // namespace mosa::cli
