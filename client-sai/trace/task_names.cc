#include "client-sai/trace/task_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "common/base/mutex.h"
#include "common/base/unique_fd.h"
#include "common/model/task.h"

namespace mosa::sai {

struct ProcessStat {
  std::string command;
  uint32_t parent = 0;
  uint32_t session = 0;
  uint64_t start_ticks = 0;
};

namespace {

constexpr int kAncestorsMax = 64;
constexpr std::string_view kVariable = "MOSA_TASK=";
// Less than a process takes from its start through exec to its first open, but many opens of a busy
// one.
constexpr std::chrono::milliseconds kBelieved{2};

std::string ReadAll(const std::string& path) {
  std::string text;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> part;
  while (file) {
    const ssize_t bytes = read(file.get(), part.data(), part.size());
    if (bytes <= 0) break;
    text.append(part.data(), static_cast<size_t>(bytes));
  }
  return text;
}

// Parses the number at the beginning of `text`, and removes it and the space after it.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(std::min<size_t>(text.size(), static_cast<size_t>(end - text.data()) + 1));
  return true;
}

// Parses proc(5) /proc/PID/stat: "pid (comm) state ppid pgrp session ... starttime(22)"; comm may
// contain any characters.
std::optional<ProcessStat> StatOf(uint32_t pid) {
  const std::string text = ReadAll(fmt::format("/proc/{}/stat", pid));
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.command = text.substr(open + 1, close - open - 1);
  std::string_view rest(text);
  rest.remove_prefix(std::min(text.size(), close + 4));  // ") S ".
  int64_t skipped = 0;
  bool ok =
      TakeNumber(rest, stat.parent) && TakeNumber(rest, skipped) && TakeNumber(rest, stat.session);
  for (int field = 7; field <= 21; ++field) ok = ok && TakeNumber(rest, skipped);
  if (!ok || !TakeNumber(rest, stat.start_ticks)) return std::nullopt;
  return stat;
}

std::optional<std::string> VariableOf(uint32_t pid) {
  const std::string environment = ReadAll(fmt::format("/proc/{}/environ", pid));
  size_t begin = 0;
  while (begin < environment.size()) {
    const size_t end = std::min(environment.find('\0', begin), environment.size());
    const std::string_view entry(environment.data() + begin, end - begin);
    if (entry.starts_with(kVariable))
      return std::string(entry.substr(kVariable.size(), kTaskBytesMax));
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

// Nearest ancestor first. What is cached for an ancestor is not searched again.
std::optional<std::string> TaskNames::FindVariable(uint32_t pid, const ProcessStat& stat,
                                                   int ancestors_left) {
  if (std::optional<std::string> task = VariableOf(pid)) return task;
  if (ancestors_left == 0 || stat.parent <= 1) return std::nullopt;
  std::optional<ProcessStat> parent = StatOf(stat.parent);
  if (!parent) return std::nullopt;
  Known known = KnownOf(stat.parent);
  if (known.start_ticks != parent->start_ticks || known.command != parent->command)
    known = Remember(stat.parent, *parent, ancestors_left - 1);
  return known.variable;
}

TaskNames::Known TaskNames::KnownOf(uint32_t pid) {
  const SystemMutexLock lock(mutex_);
  const auto found = names_.find(pid);
  return found == names_.end() ? Known{} : found->second;
}

TaskNames::Known TaskNames::Remember(uint32_t pid, const ProcessStat& stat, int ancestors_left) {
  Known known;
  known.start_ticks = stat.start_ticks;
  known.command = stat.command;
  known.session = stat.session;
  known.variable = FindVariable(pid, stat, ancestors_left);
  const SystemMutexLock lock(mutex_);
  if (names_.size() >= kNamesMax) names_.clear();
  return names_[pid] = known;
}

TaskNames::Process TaskNames::ProcessOf(uint32_t pid) {
  const auto now = std::chrono::steady_clock::now();
  Known known = KnownOf(pid);
  if (now - known.checked < kBelieved) return known.AsProcess();
  // Unlocked: reading an environment waits for its process' memory lock.
  std::optional<ProcessStat> stat = StatOf(pid);
  if (!stat) return {};
  // Another start time is another process; another command has been through exec.
  if (known.start_ticks != stat->start_ticks || known.command != stat->command)
    known = Remember(pid, *stat, kAncestorsMax);
  known.checked = now;
  const SystemMutexLock lock(mutex_);
  names_[pid] = known;
  return known.AsProcess();
}

uint32_t TaskNames::ProcessOfThread(uint32_t thread) {
  constexpr std::string_view kProcess = "\nTgid:\t";
  const std::string status = ReadAll(fmt::format("/proc/{}/status", thread));
  const size_t at = status.find(kProcess);
  if (at == std::string::npos) return thread;
  std::string_view rest = std::string_view(status).substr(at + kProcess.size());
  uint32_t process = 0;
  return TakeNumber(rest, process) ? process : thread;
}

TaskNames::Process TaskNames::Known::AsProcess() const {
  return {variable ? *variable : fmt::format("{}{}:{}", kMadeUp, session, command), command,
          start_ticks};
}

}  // namespace mosa::sai
