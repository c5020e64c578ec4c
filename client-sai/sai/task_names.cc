#include "client-sai/sai/task_names.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

namespace mosa::sai {
namespace {

constexpr int kAncestorsMax = 64;
constexpr std::string_view kVariable = "MOSA_TASK=";

struct ProcessStat {
  std::string command;
  uint32_t parent = 0;
  uint32_t session = 0;
  uint64_t start_ticks = 0;
};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// proc(5), /proc/PID/stat: "pid (comm) state ppid pgrp session ... starttime(22)"; comm may hold
// anything.
std::optional<ProcessStat> StatOf(uint32_t pid) {
  const std::string text = ReadAll(fmt::format("/proc/{}/stat", pid));
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.command = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string state;
  int64_t group = 0;
  rest >> state >> stat.parent >> group >> stat.session;
  std::string skipped;
  for (int field = 7; field <= 21; ++field) rest >> skipped;
  rest >> stat.start_ticks;
  if (!rest) return std::nullopt;
  return stat;
}

std::optional<std::string> VariableOf(uint32_t pid) {
  const std::string environment = ReadAll(fmt::format("/proc/{}/environ", pid));
  size_t begin = 0;
  while (begin < environment.size()) {
    const size_t end = std::min(environment.find('\0', begin), environment.size());
    const std::string_view entry(environment.data() + begin, end - begin);
    if (entry.starts_with(kVariable)) return std::string(entry.substr(kVariable.size()));
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::string TaskNames::Of(uint32_t pid) {
  const std::optional<ProcessStat> stat = StatOf(pid);
  if (!stat) return {};
  const std::pair key{pid, stat->start_ticks};
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = names_.find(key); it != names_.end()) return it->second;
  }
  std::string name = fmt::format("sid:{}:{}", stat->session, stat->command);
  uint32_t at = pid;
  for (int i = 0; i < kAncestorsMax && at > 1; ++i) {
    if (const auto task = VariableOf(at)) {
      name = *task;
      break;
    }
    const std::optional<ProcessStat> ancestor = StatOf(at);
    if (!ancestor) break;
    at = ancestor->parent;
  }
  const std::lock_guard lock(mutex_);
  if (names_.size() >= kNamesMax) names_.clear();
  names_[key] = name;
  return name;
}

}  // namespace mosa::sai
