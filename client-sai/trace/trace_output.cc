#include "client-sai/trace/trace_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/private_directory.h"

namespace mosa::sai {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 17;
static_assert(kBlockBytes < kTraceBlockBytesMax);
// At the limit all are forgotten, and written again when next seen.
constexpr size_t kNamesMax = 1'000'000;

std::string FileName(const TraceOptions& options) {
  return options.file.empty() ? options.host + ".trace" : options.file;
}

// Returns errno, or 0.
int WriteAt(int file, uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    offset += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

std::string TraceOptions::Path() const { return fmt::format("{}/{}", directory, FileName(*this)); }

Status TraceOutput::Create(const TraceOptions& options, Time now) {
  block_ = TraceBlock();
  names_.clear();
  const std::string path = options.Path();
  const auto opened = OpenWithoutLinks(options.directory);
  if (!opened.ok()) {
    return FailedPreconditionError(
        fmt::format("the mount's process cannot create {}: {}", path, MessageOf(opened.status())));
  }
  const UniqueFd& directory = *opened;
  struct stat there {};
  struct stat here {};
  if (fstat(directory.get(), &there) != 0)
    return FailedPreconditionError(
        fmt::format("the mount's process cannot create {}: {}", path, strerror(errno)));
  if (stat(options.mount_point.c_str(), &here) == 0 && there.st_dev == here.st_dev)
    return InvalidArgumentError(
        fmt::format("{} lies on {}, whose trace would trace itself: choose a directory elsewhere",
                    options.directory, options.mount_point));
  const std::string name = FileName(options);
  file_ = UniqueFd(openat(directory.get(), name.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_ && errno == EEXIST)
    return AlreadyExistsError(
        fmt::format("{} already exists: remove it or trace to another directory", path));
  if (!file_)
    return FailedPreconditionError(
        fmt::format("the mount's process cannot create {}: {}", path, strerror(errno)));
  const std::string pages =
      EncodeTraceHead({options.host, options.mount_point, options.light, now}) +
      std::string(kTraceFootBytes, '\n');
  if (const int error = WriteAt(file_.get(), 0, pages); error != 0) {
    file_ = UniqueFd();
    unlinkat(directory.get(), name.c_str(), 0);
    return FailedPreconditionError(
        fmt::format("the mount's process cannot write {}: {}", path, strerror(error)));
  }
  return OkStatus();
}

void TraceOutput::Begin(const TraceOptions& options) {
  stats_ = lookups_ = dropped_ = 0;
  const SystemMutexLock lock(mutex_);
  written_ = {options.Path(), options.light, {}};
  written_.foot.bytes = kTraceHeadBytes + kTraceFootBytes;
}

void TraceOutput::Add(const TraceRecord& record) {
  if (!file_ || (record.kind == TraceKind::kName && !IsNewName(record))) return;
  block_.Add(record);
  if (block_.bytes() >= kBlockBytes) Flush();
}

bool TraceOutput::IsNewName(const TraceRecord& record) {
  if (names_.size() >= kNamesMax) names_.clear();
  const uint64_t hash = Hash64(record.text) ^ record.parent.value * 0x9e3779b97f4a7c15U;
  const auto [known, fresh] = names_.try_emplace(record.file.value, hash);
  return fresh || std::exchange(known->second, hash) != hash;
}

void TraceOutput::Flush() {
  const uint32_t records = block_.records();
  if (records == 0 || !file_) return;
  const std::string block = block_.Take();
  if (const int error = WriteAt(file_.get(), written().foot.bytes, block); error != 0) {
    Fail(error);
    return;
  }
  const SystemMutexLock lock(mutex_);
  written_.foot.bytes += block.size();
  written_.foot.records += records;
}

void TraceOutput::Fail(int error) {
  failing_();
  const auto [path, light, foot] = written();
  const std::string reason =
      fmt::format("its file could no longer be written: {}", strerror(error));
  LogWarning("ending the trace {}: {}", path, reason);
  // Drops a block that was only partly written.
  if (ftruncate(file_.get(), static_cast<off_t>(foot.bytes)) != 0)
    LogWarning("cannot truncate {}: {}", path, strerror(errno));
  WriteFoot(reason);
  Close();
}

void TraceOutput::End(std::string_view reason) {
  Flush();
  if (file_) WriteFoot(reason);
}

void TraceOutput::WriteFoot(std::string_view reason) {
  NoteReason(reason);
  const std::string foot = EncodeTraceFoot(written().foot);
  if (const int error = WriteAt(file_.get(), kTraceHeadBytes, foot); error != 0)
    LogWarning("cannot write the end of the trace: {}", strerror(error));
}

void TraceOutput::NoteReason(std::string_view reason) {
  const SystemMutexLock lock(mutex_);
  written_.foot.reason = reason;
}

TraceOutput::Written TraceOutput::written() const {
  const SystemMutexLock lock(mutex_);
  Written written = written_;
  written.foot.stats = stats_;
  written.foot.lookups = lookups_;
  written.foot.dropped = dropped_;
  return written;
}

}  // namespace mosa::sai
