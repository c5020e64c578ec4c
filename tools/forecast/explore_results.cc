#include "tools/forecast/explore_results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/base/hash.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr int kVersion = 3;
constexpr const char* kHeaderName = "mosa_exploration";
constexpr const char* kSumName = "sum";
constexpr off_t kResultsBytesMax = off_t{1} << 30;

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// Checksum of the rest of the line. Numbers are printed so that they read back unchanged.
std::string SumOf(const json& line) { return fmt::format("{:016x}", Hash64(Dump(line))); }

json ToJson(uint64_t key, const std::string& configuration, const predict::Outcome& outcome) {
  json line = {{"key", fmt::format("{:016x}", key)},
               {"configuration", configuration},
               {"turnaround_ns", outcome.time.ns},
               {"computing_ns", outcome.computing.ns},
               {"application_core_s", outcome.use.application_core_s},
               {"store_core_s", outcome.use.store_core_s},
               {"sending_s", outcome.use.sending_s},
               {"receiving_s", outcome.use.receiving_s}};
  if (!outcome.failure.empty()) line["failure"] = outcome.failure;
  line[kSumName] = SumOf(line);
  return line;
}

// Nothing if the line was changed.
std::optional<std::pair<uint64_t, predict::Outcome>> FromJson(json line) {
  try {
    const std::string sum = line.at(kSumName).get<std::string>();
    line.erase(kSumName);
    if (sum != SumOf(line)) return std::nullopt;
    const std::string key = line.at("key").get<std::string>();
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number, 16);
    if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
    predict::Outcome outcome;
    outcome.time.ns = line.at("turnaround_ns").get<int64_t>();
    outcome.computing.ns = line.at("computing_ns").get<int64_t>();
    if (outcome.computing.ns < 0 || outcome.time < outcome.computing) return std::nullopt;
    predict::HostUse& use = outcome.use;
    for (const auto& [name, seconds] :
         {std::pair("application_core_s", &use.application_core_s),
          std::pair("store_core_s", &use.store_core_s), std::pair("sending_s", &use.sending_s),
          std::pair("receiving_s", &use.receiving_s)}) {
      *seconds = line.at(name).get<double>();
      if (!std::isfinite(*seconds) || *seconds < 0) return std::nullopt;
    }
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
  Mix(digest, workflow.hints_are_whole ? 1U : 0U);
  Mix(digest, workflow.reads_ahead ? 1U : 0U);
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
    Mix(digest, static_cast<uint64_t>(task.line));  // Appears in failure texts.
    Mix(digest, static_cast<uint64_t>(task.expected.value_or(Duration{-1}).ns));
    Mix(digest, task.needs.cores);
    Mix(digest, task.needs.memory_bytes);
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
  // O_NONBLOCK opens a pipe without waiting; ReadAll() then rejects it.
  results.file_ =
      UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | O_NONBLOCK, 0644));
  if (!results.file_)
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(errno)));
  MOSA_RETURN_IF_ERROR(results.ReadAll());
  return results;
}

Status ExploreResults::ReadAll() {
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0)
    return FailedPreconditionError(
        fmt::format("another exploration is writing {}: wait for it, or name another file", path_));
  struct stat file {};
  if (fstat(file_.get(), &file) != 0)
    return FailedPreconditionError(fmt::format("cannot read {}: {}", path_, strerror(errno)));
  if (!S_ISREG(file.st_mode))
    return FailedPreconditionError(
        fmt::format("{} is not a regular file: name another file for the results", path_));
  if (file.st_size > kResultsBytesMax)
    return FailedPreconditionError(
        fmt::format("{} has {} B, more than the limit of {} B: name another file", path_,
                    file.st_size, kResultsBytesMax));
  std::string text(static_cast<size_t>(file.st_size), '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t got =
        pread(file_.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return FailedPreconditionError(fmt::format(
          "cannot read {}: {}", path_, got < 0 ? strerror(errno) : "it was truncated meanwhile"));
    at += static_cast<size_t>(got);
  }
  return Read(text);
}

Status ExploreResults::Read(const std::string& text) {
  const std::string header = Dump({{kHeaderName, kVersion}});
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  // A truncated header means a file without results.
  const bool is_new = header.starts_with(text) && whole == 0;
  size_t number = 0;
  for (size_t begin = 0; begin < whole; ++number) {
    const size_t end = text.find('\n', begin);
    const json line = json::parse(text.begin() + static_cast<int64_t>(begin),
                                  text.begin() + static_cast<int64_t>(end), nullptr, false);
    begin = end + 1;
    if (number == 0) {
      const json version = line.is_object() ? line.value(kHeaderName, json()) : json();
      if (version == kVersion) continue;
      if (!version.is_number()) break;
      return FailedPreconditionError(fmt::format(
          "{} has results of version {}, but this program writes version {}: name another file",
          path_, version.dump(), kVersion));
    }
    auto read = FromJson(line);
    if (!read)
      return FailedPreconditionError(fmt::format(
          "line {} of {} was changed or is damaged: remove that line, or name another file",
          number + 1, path_));
    outcomes_[read->first] = std::move(read->second);
  }
  if (number == 0 && !is_new)
    return FailedPreconditionError(
        fmt::format("{} is not a results file of mosa explore: name another file", path_));
  size_bytes_ = whole;
  if (whole < text.size() && ftruncate(file_.get(), static_cast<off_t>(whole)) != 0)
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path_, strerror(errno)));
  return is_new ? Append(header) : OkStatus();
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
  return ResourceExhaustedError(fmt::format("cannot write {}: {}{}", path_, why,
                                            cut ? "" : "; its last line is now truncated"));
}

}  // namespace mosa::cli
