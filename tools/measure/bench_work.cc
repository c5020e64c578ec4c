#include "tools/measure/bench_work.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/unique_fd.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 1 << 20;
constexpr size_t kWord = sizeof(uint64_t);
constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;

constexpr struct {
  std::string_view name;
  Operation operation;
  bool to_end;
} kOperations[] = {{"read", Operation::kRead, true},   {"part", Operation::kRead, false},
                   {"write", Operation::kWrite, true}, {"update", Operation::kUpdate, true},
                   {"make", Operation::kMake, true},   {"remove", Operation::kRemove, true}};

bool IsTransfer(Operation operation) {
  return operation != Operation::kMake && operation != Operation::kRemove;
}

Status Failed(const char* what, const WorkStep& step) {
  const int error = errno;
  const std::string text = fmt::format("cannot {} {}: {}", what, step.path, strerror(error));
  if (error == ENOENT) return NotFoundError(text);
  if (error == EIO) return DataLossError(text);
  if (error == ENOSPC) return ResourceExhaustedError(text);
  return FailedPreconditionError(text);
}

double InSeconds(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

Status OpenFile(const WorkStep& step, UniqueFd& file) {
  const int flags = step.operation == Operation::kRead     ? O_RDONLY
                    : step.operation == Operation::kUpdate ? O_WRONLY
                                                           : O_WRONLY | O_CREAT | O_TRUNC;
  file = UniqueFd(open(step.path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file && errno == ENOENT && step.operation == Operation::kWrite) {
    std::error_code error;
    fs::create_directories(fs::path(step.path).parent_path(), error);
    file = UniqueFd(open(step.path.c_str(), flags | O_CLOEXEC, 0666));
  }
  return file ? OkStatus() : Failed("open", step);
}

// Reads until `bytes` is full or the file ends. Returns the number of bytes.
Result<size_t> ReadAll(int file, const WorkStep& step, uint64_t offset,
                       std::span<std::byte> bytes) {
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        pread(file, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", step);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

Status ReadAndCompare(const WorkStep& step, uint64_t key, std::span<std::byte> block) {
  UniqueFd file;
  MOSA_RETURN_IF_ERROR(OpenFile(step, file));
  for (uint64_t done = 0; done < step.bytes;) {
    const uint64_t offset = step.begin + done;
    const auto bytes = block.first(std::min<uint64_t>(block.size(), step.bytes - done));
    MOSA_ASSIGN_OR_RETURN(const size_t have, ReadAll(file.get(), step, offset, bytes));
    if (const auto wrong = FindMismatch(key, offset, bytes.first(have)))
      return DataLossError(
          fmt::format("{} has wrong bytes at offset {}: expected {:#018x}, found {:#018x}",
                      step.path, wrong->offset, wrong->expected, wrong->found));
    if (have < bytes.size())
      return DataLossError(fmt::format("{} ends at offset {}, but {} bytes were written", step.path,
                                       offset + have, step.begin + step.bytes));
    done += have;
  }
  std::byte more{};
  if (!step.to_end) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(const size_t have,
                        ReadAll(file.get(), step, step.begin + step.bytes, {&more, 1}));
  if (have == 0) return OkStatus();
  return DataLossError(
      fmt::format("{} continues beyond offset {}, but only that many bytes were written", step.path,
                  step.begin + step.bytes));
}

Status Write(const WorkStep& step, uint64_t key, std::span<std::byte> block) {
  UniqueFd file;
  MOSA_RETURN_IF_ERROR(OpenFile(step, file));
  for (uint64_t done = 0; done < step.bytes;) {
    const uint64_t offset = step.begin + done;
    const auto bytes = block.first(std::min<uint64_t>(block.size(), step.bytes - done));
    FillContent(key, offset, bytes);
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t taken = pwrite(file.get(), bytes.data() + sent, bytes.size() - sent,
                                   static_cast<off_t>(offset + sent));
      if (taken < 0 && errno == EINTR) continue;
      if (taken <= 0) return Failed("write", step);
      sent += static_cast<size_t>(taken);
    }
    done += bytes.size();
  }
  return close(file.release()) == 0 ? OkStatus() : Failed("close", step);
}

Status MakeOrRemove(const WorkStep& step) {
  std::error_code error;
  if (step.operation == Operation::kMake) {
    fs::create_directories(step.path, error);
  } else {
    fs::remove_all(step.path, error);
  }
  if (!error) return OkStatus();
  errno = error.value();
  return Failed(step.operation == Operation::kMake ? "make" : "remove", step);
}

bool TakeNumber(std::string_view& rest, uint64_t& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const auto used = static_cast<size_t>(end - rest.data());
  if (error != std::errc() || used >= rest.size() || rest[used] != ':') return false;
  rest.remove_prefix(used + 1);
  return true;
}

}  // namespace

uint64_t ContentKey(std::string_view content, uint64_t seed) { return Hash64(content, seed); }

void FillContent(uint64_t key, uint64_t begin, std::span<std::byte> bytes) {
  MOSA_CHECK(begin % kWord == 0);
  uint64_t word = key + begin / kWord * kStep;
  std::byte* at = bytes.data();
  for (size_t left = bytes.size(); left > 0; word += kStep) {
    const size_t length = std::min(left, kWord);
    std::memcpy(at, &word, length);
    at += length;
    left -= length;
  }
}

std::optional<Mismatch> FindMismatch(uint64_t key, uint64_t begin,
                                     std::span<const std::byte> bytes) {
  MOSA_CHECK(begin % kWord == 0);
  const size_t words = bytes.size() / kWord;
  uint64_t expected = key + begin / kWord * kStep;
  // Compares all words first, without a branch for each.
  uint64_t difference = 0;
  for (size_t i = 0; i < words; ++i) {
    uint64_t found = 0;
    std::memcpy(&found, bytes.data() + i * kWord, kWord);
    difference |= found ^ (expected + i * kStep);
  }
  if (difference == 0 && bytes.size() % kWord == 0) return std::nullopt;
  for (size_t i = 0; i * kWord < bytes.size(); ++i, expected += kStep) {
    const size_t length = std::min(kWord, bytes.size() - i * kWord);
    uint64_t found = 0, wanted = 0;
    std::memcpy(&found, bytes.data() + i * kWord, length);
    std::memcpy(&wanted, &expected, length);
    if (found != wanted) return Mismatch{begin + i * kWord, wanted, found};
  }
  return std::nullopt;
}

std::string ToWord(const WorkStep& step) {
  for (const auto& known : kOperations) {
    if (known.operation != step.operation || known.to_end != step.to_end) continue;
    if (!IsTransfer(step.operation)) return fmt::format("{}:{}", known.name, step.path);
    return fmt::format("{}:{}:{}:{}:{}", known.name, step.content, step.begin, step.bytes,
                       step.path);
  }
  MOSA_CHECK(false);
  return "";
}

Result<WorkStep> ParseWorkStep(const std::string& word) {
  const auto refused = [&](const char* why) {
    return InvalidArgumentError(fmt::format(
        "'{}' {}: write OPERATION:CONTENT:BEGIN:BYTES:PATH or make:PATH, remove:PATH", word, why));
  };
  std::string_view rest = word;
  const std::string_view name = rest.substr(0, rest.find(':'));
  const auto known = std::find_if(std::begin(kOperations), std::end(kOperations),
                                  [&](const auto& row) { return row.name == name; });
  if (known == std::end(kOperations) || name.size() == rest.size())
    return refused("is not a step of work");
  rest.remove_prefix(name.size() + 1);
  WorkStep step;
  step.operation = known->operation;
  step.to_end = known->to_end;
  if (IsTransfer(step.operation)) {
    const size_t colon = rest.find(':');
    if (colon == rest.npos) return refused("has no content");
    step.content = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
    if (!TakeNumber(rest, step.begin) || !TakeNumber(rest, step.bytes))
      return refused("has no numbers");
    if (step.begin % kWord != 0) return refused("does not begin at a multiple of 8");
  }
  if (rest.empty()) return refused("has no path");
  step.path = rest;
  return step;
}

Result<nlohmann::json> DoWork(const std::vector<WorkStep>& steps, uint64_t seed) {
  const SystemClock clock;
  const auto block = std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
  uint64_t read = 0, written = 0;
  Duration reading, writing;
  for (const WorkStep& step : steps) {
    const Time begin = clock.Monotonic();
    const std::span<std::byte> bytes(block.get(), kBlockBytes);
    const uint64_t key = ContentKey(step.content, seed);
    if (!IsTransfer(step.operation)) {
      MOSA_RETURN_IF_ERROR(MakeOrRemove(step));
    } else if (step.operation == Operation::kRead) {
      MOSA_RETURN_IF_ERROR(ReadAndCompare(step, key, bytes));
      read += step.bytes;
      reading = reading + (clock.Monotonic() - begin);
    } else {
      MOSA_RETURN_IF_ERROR(Write(step, key, bytes));
      written += step.bytes;
      writing = writing + (clock.Monotonic() - begin);
    }
  }
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return nlohmann::json{{"read_bytes", read},
                        {"read_seconds", InSeconds(reading)},
                        {"written_bytes", written},
                        {"write_seconds", InSeconds(writing)},
                        {"cpu_seconds", seconds(usage.ru_utime) + seconds(usage.ru_stime)}};
}

Status RunWork(const std::vector<std::string>& words, uint64_t seed) {
  const char* host = std::getenv("MOSA_HOST");
  std::vector<WorkStep> steps;
  for (const std::string& word : words) {
    MOSA_ASSIGN_OR_RETURN(WorkStep step, ParseWorkStep(word));
    if (host != nullptr) step.path = ForHost(step.path, host);
    steps.push_back(std::move(step));
  }
  MOSA_ASSIGN_OR_RETURN(const nlohmann::json did, DoWork(steps, seed));
  fmt::print("{}\n", did.dump());
  return OkStatus();
}

}  // namespace mosa::cli
