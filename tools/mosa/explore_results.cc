#include "tools/mosa/explore_results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/base/hash.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr const char* kHeaderName = "mosa_exploration";

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

json ToJson(uint64_t key, const std::string& configuration, const predict::Outcome& outcome) {
  json line = {{"key", fmt::format("{:016x}", key)},
               {"configuration", configuration},
               {"turnaround_ns", outcome.time.ns},
               {"application_core_s", outcome.use.application_core_s},
               {"store_core_s", outcome.use.store_core_s},
               {"sending_s", outcome.use.sending_s},
               {"receiving_s", outcome.use.receiving_s}};
  if (!outcome.failure.empty()) line["failure"] = outcome.failure;
  return line;
}

// Nothing if the line is none of ours.
std::optional<std::pair<uint64_t, predict::Outcome>> FromJson(const json& line) {
  try {
    const std::string key = line.at("key").get<std::string>();
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number, 16);
    if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
    predict::Outcome outcome;
    outcome.time.ns = line.at("turnaround_ns").get<int64_t>();
    outcome.use = {line.at("application_core_s").get<double>(),
                   line.at("store_core_s").get<double>(), line.at("sending_s").get<double>(),
                   line.at("receiving_s").get<double>()};
    outcome.failure = line.value("failure", "");
    return std::pair(number, outcome);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

Result<uint64_t> DigestOfThisProgram() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (!file || bytes.empty())
    return FailedPreconditionError("cannot read this program's own file, /proc/self/exe");
  return Hash64(bytes);
}

void Mix(uint64_t& digest, std::string_view text) { digest = HashCombine(digest, Hash64(text)); }
void Mix(uint64_t& digest, uint64_t number) { digest = HashCombine(digest, number); }

}  // namespace

uint64_t DigestOf(const predict::Workflow& workflow) {
  uint64_t digest = Hash64("workflow");
  for (const predict::WorkflowFile& file : workflow.files) {
    Mix(digest, file.path);
    Mix(digest, file.size_bytes.value_or(0));
    Mix(digest, file.hints.size());
    for (const auto& [name, value] : file.hints) {
      Mix(digest, name);
      Mix(digest, value);
    }
  }
  for (const predict::Task& task : workflow.tasks) {
    Mix(digest, task.id);
    Mix(digest, task.stage);
    Mix(digest, static_cast<uint64_t>(task.expected.value_or(Duration()).ns));
    Mix(digest, task.inputs.size());
    for (const predict::PathIndex file : task.inputs) Mix(digest, file.value);
    Mix(digest, task.outputs.size());
    for (const predict::PathIndex file : task.outputs) Mix(digest, file.value);
    Mix(digest, task.predecessors.size());
    for (const predict::TaskIndex before : task.predecessors) Mix(digest, before.value);
  }
  return digest;
}

Result<ExploreResults> ExploreResults::Open(const std::string& path) {
  ExploreResults results;
  results.path_ = path;
  MOSA_ASSIGN_OR_RETURN(results.program_, DigestOfThisProgram());
  results.file_ = UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0644));
  if (!results.file_)
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(errno)));
  if (flock(results.file_.get(), LOCK_EX | LOCK_NB) != 0)
    return FailedPreconditionError(
        fmt::format("another exploration writes {}: wait for it, or name another file", path));
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  MOSA_RETURN_IF_ERROR(results.Read(text));
  return results;
}

Status ExploreResults::Read(const std::string& text) {
  if (text.empty()) return Append(Dump({{kHeaderName, kVersion}}));
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  size_t number = 0;
  for (size_t begin = 0; begin < whole; ++number) {
    const size_t end = text.find('\n', begin);
    const json line = json::parse(text.begin() + static_cast<int64_t>(begin),
                                  text.begin() + static_cast<int64_t>(end), nullptr, false);
    begin = end + 1;
    if (number == 0) {
      if (line.is_object() && line.value(kHeaderName, json()) == kVersion) continue;
      break;
    }
    const auto read = FromJson(line);
    if (!read)
      return FailedPreconditionError(
          fmt::format("line {} of {} is no result of an exploration: name another file, or remove "
                      "that line",
                      number + 1, path_));
    outcomes_[read->first] = read->second;
  }
  if (number == 0)
    return FailedPreconditionError(
        fmt::format("{} is something else than results of explorations: name another file", path_));
  size_bytes_ = whole;
  if (whole < text.size() && ftruncate(file_.get(), static_cast<off_t>(whole)) != 0)
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path_, strerror(errno)));
  return OkStatus();
}

std::optional<predict::Outcome> ExploreResults::Find(uint64_t key) const {
  const auto found = outcomes_.find(key);
  if (found == outcomes_.end()) return std::nullopt;
  return found->second;
}

Status ExploreResults::Add(uint64_t key, const std::string& configuration,
                           const predict::Outcome& outcome) {
  outcomes_[key] = outcome;
  if (!file_) return OkStatus();
  return Append(Dump(ToJson(key, configuration, outcome)));
}

Status ExploreResults::Append(const std::string& line) {
  const ssize_t written = write(file_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) {
    size_bytes_ += line.size();
    return OkStatus();
  }
  const std::string why = written < 0 ? strerror(errno) : "no room";
  const bool cut = ftruncate(file_.get(), static_cast<off_t>(size_bytes_)) == 0;
  return ResourceExhaustedError(
      fmt::format("cannot write {}: {}{}", path_, why, cut ? "" : ", and its end is not whole"));
}

}  // namespace mosa::cli
