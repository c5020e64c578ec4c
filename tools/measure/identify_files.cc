#include "tools/measure/identify_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "common/base/clock.h"

namespace mosa::cli {
namespace {

using predict::Probe;
using predict::ProbeKind;
using predict::Where;

constexpr size_t kBlockBytes = 1 << 20;  // As programs read and write.

Status Refused(const char* what, const std::string& path) {
  const int error = errno;
  const std::string text = fmt::format("cannot {} {}: {}", what, path, strerror(error));
  if (error == ENOSPC) return ResourceExhaustedError(text);
  if (error == ENOENT) return NotFoundError(text);
  return FailedPreconditionError(text);
}

Status ReadAll(const std::string& path, char* block) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Refused("open", path);
  for (;;) {
    const ssize_t bytes = read(file.get(), block, kBlockBytes);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Refused("read", path);
    if (bytes == 0) return OkStatus();
  }
}

Status Stat(const std::string& path) {
  struct stat seen {};
  return stat(path.c_str(), &seen) == 0 ? OkStatus() : Refused("look at", path);
}

}  // namespace

// What is written past the page cache goes through the mount, wherever the file lies, as it does
// when room is too short for the kernel to write directly. (Appends go through it too, but each
// asks the manager for the file's end.) Nor does the kernel read directly while a program has the
// file open for reading and writing, and opened it before it had a place.
int WriteModeOf(const Probe& probe, bool keep_open) {
  if (probe.where != Where::kOwnThroughMount) return O_WRONLY;
  return keep_open ? O_RDWR : O_WRONLY | O_DIRECT;
}

std::string SampleFiles::path(uint32_t index) const {
  return fmt::format("{}/{}-{}", directory, tag, index);
}

IdentifyFiles::IdentifyFiles() : block_(std::make_unique<Block>()) {
  // No zeros, since some file systems do not store them.
  for (size_t i = 0; i < sizeof block_->bytes; ++i)
    block_->bytes[i] = static_cast<char>(i * 37 + 11);
}

Status IdentifyFiles::WriteOne(const SampleFiles& files, uint32_t index, bool keep_open) {
  const std::string path = files.path(index);
  const bool through_mount = files.probe.where == Where::kOwnThroughMount;
  const int mode = WriteModeOf(files.probe, keep_open);
  UniqueFd file(open(path.c_str(), mode | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return Refused("make", path);
  if (through_mount && keep_open &&
      fsetxattr(file.get(), "user.mosa.placement", "local", 5, 0) != 0)
    return Refused("hint", path);
  for (uint64_t done = 0; done < files.probe.bytes;) {
    const ssize_t bytes = write(file.get(), block_->bytes,
                                std::min<uint64_t>(sizeof block_->bytes, files.probe.bytes - done));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return Refused("write", path);
    done += static_cast<uint64_t>(bytes);
  }
  if (keep_open) {
    kept_open_.push_back(std::move(file));
    return OkStatus();
  }
  return close(file.release()) == 0 ? OkStatus() : Refused("close", path);
}

Status IdentifyFiles::Write(const SampleFiles& files) {
  // A file that is open for writing through the mount is also read through it.
  const bool keep = files.probe.where == Where::kOwnThroughMount;
  for (uint32_t i = 0; i < files.count(); ++i) {
    MOSA_RETURN_IF_ERROR(WriteOne(files, i, keep));
    if (keep) {
      fsync(kept_open_.back().get());
      posix_fadvise(kept_open_.back().get(), 0, 0, POSIX_FADV_DONTNEED);
    }
  }
  return OkStatus();
}

Status IdentifyFiles::OperateOne(const SampleFiles& files, uint32_t index) const {
  const std::string path = files.path(index);
  switch (files.probe.kind) {
    case ProbeKind::kStat:
    case ProbeKind::kStatAgain:
      return Stat(path);
    case ProbeKind::kOpen: {
      const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      return file ? OkStatus() : Refused("open", path);
    }
    case ProbeKind::kMakeDirectory:
      return mkdir(path.c_str(), 0700) == 0 ? OkStatus() : Refused("make", path);
    case ProbeKind::kSetAttribute: {
      const char* value = index % 2 == 0 ? "1" : "2";
      const bool set =
          setxattr(files.directory.c_str(), "user.mosa.stripe_width", value, 1, 0) == 0;
      return set ? OkStatus() : Refused("hint", files.directory);
    }
    case ProbeKind::kGetAttribute: {
      char value[4096];
      const bool got = getxattr(path.c_str(), "user.mosa.layout", value, sizeof value) > 0;
      return got ? OkStatus() : Refused("ask for the layout of", path);
    }
    case ProbeKind::kRemove:
      return unlink(path.c_str()) == 0 ? OkStatus() : Refused("remove", path);
    default:
      break;
  }
  return OkStatus();
}

Result<double> IdentifyFiles::Operate(const SampleFiles& files) {
  const ProbeKind kind = files.probe.kind;
  const bool reads =
      kind == ProbeKind::kRead || kind == ProbeKind::kReadAgain || kind == ProbeKind::kOpenAgain;
  const uint32_t lanes = files.probe.at_once;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (uint32_t i = 0; i < lanes; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlockBytes));
    std::memset(blocks.back().get(), 1, kBlockBytes);
  }
  for (uint32_t i = 0; i < files.count(); ++i) {
    if (kind == ProbeKind::kReadAgain || kind == ProbeKind::kOpenAgain)
      MOSA_RETURN_IF_ERROR(ReadAll(files.path(i), blocks.front().get()));
    if (kind == ProbeKind::kOpen || kind == ProbeKind::kStatAgain)
      MOSA_RETURN_IF_ERROR(Stat(files.path(i)));
  }
  const SystemClock clock;
  std::vector<Status> failed(lanes);
  Time begin;
  std::barrier ready(lanes, [&]() noexcept { begin = clock.Monotonic(); });
  std::vector<Time> ends(lanes);
  const auto lane = [&](uint32_t own) {
    ready.arrive_and_wait();
    for (uint32_t round = 0; round < files.rounds && failed[own].ok(); ++round) {
      const uint32_t index = round * lanes + own;
      if (kind == ProbeKind::kWrite)
        failed[own] = WriteOne(files, index, false);
      else if (reads)
        failed[own] = ReadAll(files.path(index), blocks[own].get());
      else
        failed[own] = OperateOne(files, index);
    }
    ends[own] = clock.Monotonic();
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < lanes; ++i) threads.emplace_back(lane, i);
  lane(0);
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : failed) MOSA_RETURN_IF_ERROR(status);
  const Duration taken = *std::max_element(ends.begin(), ends.end()) - begin;
  return static_cast<double>(taken.ns) / 1e9 / files.rounds;
}

Status IdentifyFiles::Remove(const SampleFiles& files) {
  kept_open_.clear();
  for (uint32_t i = 0; i < files.count(); ++i) {
    const std::string path = files.path(i);
    const bool gone = files.probe.kind == ProbeKind::kMakeDirectory ? rmdir(path.c_str()) == 0
                                                                    : unlink(path.c_str()) == 0;
    if (!gone && errno != ENOENT) return Refused("remove", path);
  }
  return OkStatus();
}

}  // namespace mosa::cli
