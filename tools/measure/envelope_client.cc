#include "tools/measure/envelope_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "tools/cluster/process.h"
#include "tools/measure/bench_work.h"
#include "tools/measure/link_counters.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::EnvelopeOperation;

constexpr size_t kBlockBytes = 1 << 20;  // As programs read and write.
// All clients are told a time in the near future; one further away comes from a wrong clock.
constexpr Duration kWaitMax = Seconds(20);
// A process that has a file open, or has looked at it, may see others' writes this late: longer
// than stores cache attributes by default.
constexpr Duration kSeenLateMax = Seconds(5);
constexpr Duration kLookAgain = Milliseconds(50);

Status Refused(const char* what, const std::string& path) {
  const int error = errno;
  const std::string text = fmt::format("cannot {} {}: {}", what, path, strerror(error));
  if (error == ENOSPC) return ResourceExhaustedError(text);
  if (error == ENOENT) return NotFoundError(text);
  return FailedPreconditionError(text);
}

std::string PathOf(const ClientSample& sample, uint64_t index) {
  return sample.directory + "/" + sample.name(index);
}

bool IsRead(EnvelopeOperation operation) {
  return operation == EnvelopeOperation::kRead || operation == EnvelopeOperation::kSharedRead;
}

uint64_t FilesOf(const ClientSample& sample) {
  return sample.operation == EnvelopeOperation::kSharedRead ? 1 : sample.operations;
}

uint64_t KeyOf(const ClientSample& sample, uint64_t index) {
  return ContentKey(sample.name(index), sample.seed);
}

Status WriteBytes(int file, std::span<const std::byte> bytes, const std::string& path) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t taken =
        write(file, bytes.data() + done, std::min(kBlockBytes, bytes.size() - done));
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) return Refused("write", path);
    done += static_cast<size_t>(taken);
  }
  return OkStatus();
}

// Reads until the file ends, as programs do, but at most what fits. Returns the number of bytes.
Result<size_t> ReadBytes(int file, std::span<std::byte> bytes, const std::string& path) {
  std::byte more{};
  for (size_t have = 0;;) {
    const bool full = have == bytes.size();
    const ssize_t got =
        full ? read(file, &more, 1)
             : read(file, bytes.data() + have, std::min(kBlockBytes, bytes.size() - have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Refused("read", path);
    if (got == 0) return have;
    if (full)
      return DataLossError(
          fmt::format("{} is longer than the {} bytes that were written", path, bytes.size()));
    have += static_cast<size_t>(got);
  }
}

Status Compare(const ClientSample& sample, uint64_t index, std::span<const std::byte> bytes) {
  const auto wrong = FindMismatch(KeyOf(sample, index), 0, bytes);
  if (!wrong) return OkStatus();
  return DataLossError(
      fmt::format("{} has wrong bytes at offset {}: expected {:#018x}, found "
                  "{:#018x}",
                  PathOf(sample, index), wrong->offset, wrong->expected, wrong->found));
}

Status MakeOne(const ClientSample& sample, uint64_t index, std::span<std::byte> block) {
  const std::string path = PathOf(sample, index);
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return Refused("make", path);
  const uint64_t size = IsRead(sample.operation) ? sample.size_bytes : 0;
  for (uint64_t done = 0; done < size; done += block.size()) {
    const auto part = block.first(std::min<uint64_t>(block.size(), size - done));
    FillContent(KeyOf(sample, index), done, part);
    MOSA_RETURN_IF_ERROR(WriteBytes(file.get(), part, path));
  }
  if (size > 0) {
    if (fsync(file.get()) != 0) return Refused("sync", path);
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  return close(file.release()) == 0 ? OkStatus() : Refused("close", path);
}

// Sets `not_yet` if a name or bytes at the end are missing, which may come late, and everything
// that is there is right.
Status CheckOneStored(const ClientSample& sample, uint64_t index, std::byte* room, bool& not_yet) {
  const uint64_t size = MovesBytes(sample.operation) ? sample.size_bytes : 0;
  const std::string path = PathOf(sample, index);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  not_yet = !file && errno == ENOENT;
  if (!file) return Refused("open", path);
  MOSA_ASSIGN_OR_RETURN(const size_t have, ReadBytes(file.get(), {room, size}, path));
  MOSA_RETURN_IF_ERROR(Compare(sample, index, {room, have}));
  if (have == size) return OkStatus();
  not_yet = true;
  return DataLossError(
      fmt::format("{} ends at offset {}, but {} bytes were written", path, have, size));
}

}  // namespace

std::string ClientSample::name(uint64_t index) const {
  return operation == EnvelopeOperation::kSharedRead ? "shared"
                                                     : fmt::format("{}-{}", client, index);
}

json ToJson(const ClientSample& sample) {
  return {{"operation", predict::NameOf(sample.operation)},
          {"size_bytes", sample.size_bytes},
          {"operations", sample.operations},
          {"client", sample.client},
          {"directory", sample.directory},
          {"seed", sample.seed}};
}

ClientSample ClientSampleOf(const json& words) {
  ClientSample sample;
  sample.operation = predict::EnvelopeOperationOf(words.at("operation").get<std::string>()).value();
  sample.size_bytes = words.at("size_bytes");
  sample.operations = words.at("operations");
  sample.client = words.at("client");
  sample.directory = words.at("directory");
  sample.seed = words.at("seed");
  return sample;
}

Status EnvelopeClient::Prepare(const ClientSample& sample) {
  if (sample.operation == EnvelopeOperation::kCreate) return OkStatus();
  const auto block = std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
  for (uint64_t i = 0; i < FilesOf(sample); ++i)
    MOSA_RETURN_IF_ERROR(MakeOne(sample, i, {block.get(), kBlockBytes}));
  return OkStatus();
}

Status EnvelopeClient::Ready(const ClientSample& sample, bool warm) {
  const uint64_t bytes = sample.size_bytes * sample.operations;
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (!IsRead(sample.operation)) {
    for (uint64_t i = 0; i < sample.operations; ++i)
      FillContent(KeyOf(sample, i), 0, {Slot(sample, i), sample.size_bytes});
    return OkStatus();
  }
  for (uint64_t i = 0; warm && i < FilesOf(sample); ++i) MOSA_RETURN_IF_ERROR(Operate(sample, i));
  // Old content must not pass for read bytes, and no page may be new while time is taken.
  std::memset(bytes_.get(), 1, bytes);
  return OkStatus();
}

Status EnvelopeClient::Operate(const ClientSample& sample, uint64_t index) {
  const std::string path = PathOf(sample, index);
  const int flags = sample.operation == EnvelopeOperation::kCreate  ? O_WRONLY | O_CREAT | O_EXCL
                    : sample.operation == EnvelopeOperation::kWrite ? O_WRONLY
                                                                    : O_RDONLY;
  UniqueFd file(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) return Refused("open", path);
  const std::span<std::byte> bytes{Slot(sample, index), sample.size_bytes};
  if (IsRead(sample.operation)) {
    MOSA_ASSIGN_OR_RETURN(const size_t have, ReadBytes(file.get(), bytes, path));
    if (have < bytes.size())
      return DataLossError(
          fmt::format("{} ends at offset {}, but {} bytes were written", path, have, bytes.size()));
  }
  if (sample.operation == EnvelopeOperation::kWrite)
    MOSA_RETURN_IF_ERROR(WriteBytes(file.get(), bytes, path));
  return close(file.release()) == 0 ? OkStatus() : Refused("close", path);
}

Result<ClientSpan> EnvelopeClient::Go(const ClientSample& sample, Time begin) {
  const SystemClock clock;
  ClientSpan span;
  span.told = clock.Monotonic();
  if (begin - span.told > kWaitMax)
    return InvalidArgumentError("the time to begin is too far away: check the clocks");
  const timespec moment{begin.ns / 1'000'000'000, begin.ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr) == EINTR) {
  }
  const ProcessorTicks ticks_before = ReadProcessorTicks();
  const LinkCounters links_before = ReadLinkCounters();
  span.begin = clock.Monotonic();
  for (uint64_t i = 0; i < sample.operations; ++i) MOSA_RETURN_IF_ERROR(Operate(sample, i));
  span.end = clock.Monotonic();
  span.processors = ReadProcessorTicks() - ticks_before;
  if (!links_before.empty()) span.link_bytes = BusiestLinkBytes(ReadLinkCounters(), links_before);
  return span;
}

Status EnvelopeClient::CheckRead(const ClientSample& sample) {
  for (uint64_t i = 0; IsRead(sample.operation) && i < sample.operations; ++i)
    MOSA_RETURN_IF_ERROR(Compare(sample, i, {Slot(sample, i), sample.size_bytes}));
  bytes_.reset();
  return OkStatus();
}

Result<Duration> EnvelopeClient::CheckStored(const ClientSample& sample, Duration patience) {
  Duration latest;
  if (IsRead(sample.operation)) return latest;
  const SystemClock clock;
  const Time begin = clock.Monotonic();
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(sample.size_bytes);
  for (uint64_t i = 0; i < sample.operations; ++i) {
    for (bool again = false;; again = true) {
      bool not_yet = false;
      const Status found = CheckOneStored(sample, i, bytes.get(), not_yet);
      if (found.ok() && again) latest = clock.Monotonic() - begin;
      if (found.ok()) break;
      if (!not_yet || clock.Monotonic() - begin >= patience) return found;
      cluster::Pause(kLookAgain);
    }
  }
  return latest;
}

Result<json> DoClientStep(EnvelopeClient& client, const std::string& step, const json& words) {
  const ClientSample sample = ClientSampleOf(words);
  if (step == "go") {
    MOSA_ASSIGN_OR_RETURN(const ClientSpan span,
                          client.Go(sample, Time{words.at("begin_ns").get<int64_t>()}));
    return json{{"told_ns", span.told.ns},
                {"begin_ns", span.begin.ns},
                {"end_ns", span.end.ns},
                {"busy_ticks", span.processors.busy},
                {"all_ticks", span.processors.all},
                {"processors", sysconf(_SC_NPROCESSORS_ONLN)},
                {"link_bytes", span.link_bytes ? json(*span.link_bytes) : json()}};
  }
  if (step == "prepare") MOSA_RETURN_IF_ERROR(EnvelopeClient::Prepare(sample));
  if (step == "ready") MOSA_RETURN_IF_ERROR(client.Ready(sample, words.at("warm")));
  if (step == "check") MOSA_RETURN_IF_ERROR(client.CheckRead(sample));
  if (step == "check-stored") {
    const Duration patience = words.at("may_be_late").get<bool>() ? kSeenLateMax : Duration{};
    MOSA_ASSIGN_OR_RETURN(const Duration late, EnvelopeClient::CheckStored(sample, patience));
    return json{{"late_ns", late.ns}};
  }
  return json::object();
}

}  // namespace mosa::cli
