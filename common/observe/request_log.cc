#include "common/observe/request_log.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/private_directory.h"
#include "fmt/format.h"

namespace mosa {

namespace {

constexpr std::chrono::milliseconds kDrainEvery{50};
constexpr size_t kBlockRecords = 16 << 10;  // 1 MiB.

thread_local SpanContext current_span;

// Makes ids in a sequence with a random start per thread (Steele et al., "SplitMix", OOPSLA 2014).
uint64_t NewId() {
  thread_local uint64_t state = [] {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
      seed = static_cast<uint64_t>(SystemClock().Monotonic().ns) ^
             reinterpret_cast<uintptr_t>(&current_span);
    return seed;
  }();
  uint64_t z = state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return z == 0 ? 1 : z;
}

// Offset from the monotonic clock to wall time: the quickest of a few readings.
Duration ToWall() {
  const SystemClock clock;
  Duration to_wall, least{INT64_MAX};
  for (int i = 0; i < 5; ++i) {
    const Time before = clock.Monotonic();
    const Time wall = clock.Now();
    const Duration took = clock.Monotonic() - before;
    if (took >= least) continue;
    least = took;
    to_wall = wall - (before + took / 2);
  }
  return to_wall;
}

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

SpanContext CurrentSpan() { return current_span; }

ScopedSpan::ScopedSpan(SpanContext span) : before_(std::exchange(current_span, span)) {}
ScopedSpan::~ScopedSpan() { current_span = before_; }

std::function<void()> InThisSpan(std::function<void()> task) {
  const SpanContext span = current_span;
  if (span.trace == 0) return task;
  return [span, task = std::move(task)] {
    const ScopedSpan scope(span);
    task();
  };
}

Span BeginSpan(SpanContext asked) {
  const uint64_t id = NewId();
  return {.own = {.trace = asked.trace == 0 ? id : asked.trace, .span = id}, .parent = asked.span};
}

RequestLog::~RequestLog() {
  Stop();
  if (writer_.joinable()) writer_.join();
}

uint32_t RequestLog::AddTable(const std::vector<std::string>& classes) {
  const SystemMutexLock lock(mutex_);
  names_.push_back({.classes = classes, .peers = {}});
  return static_cast<uint32_t>(names_.size() - 1);
}

void RequestLog::AddPeer(uint32_t table, std::string_view name) {
  const SystemMutexLock lock(mutex_);
  names_[table].peers.emplace_back(name);
}

void RequestLog::Add(const RequestRecord& record) {
  const Pushed pushed = rings_.Push(record);
  if (pushed == Pushed::kDropped) dropped_.fetch_add(1, std::memory_order_relaxed);
  if (pushed == Pushed::kYesHalfRing && !is_ring_filling_.exchange(true)) changed_.notify_all();
}

Status RequestLog::CheckDirectory(std::string_view directory) {
  if (!directory.starts_with("/"))
    return InvalidArgumentError(fmt::format(
        "'{}' is not an absolute path: each daemon writes to that directory of its own host",
        directory.substr(0, PATH_MAX)));
  if (directory.size() >= PATH_MAX)
    return InvalidArgumentError(
        fmt::format("the directory's name may have at most {} bytes, but has {}", PATH_MAX - 1,
                    directory.size()));
  return OkStatus();
}

Status RequestLog::Start(const Options& options) {
  MOSA_RETURN_IF_ERROR(CheckDirectory(options.directory));
  const SystemMutexLock control(control_mutex_);
  {
    const SystemMutexLock lock(mutex_);
    if (state_.is_on || state_.is_busy) {
      return FailedPreconditionError(fmt::format(
          "a request log is already being written to {}: end it with 'mosa log off'", state_.path));
    }
    state_ = {.is_on = false, .is_busy = true, .path = options.directory, .fault = {}};
    ending_ = false;
  }
  if (writer_.joinable()) writer_.join();  // It has finished.
  try {
    writer_ = std::thread([this, options] { Run(options); });
  } catch (const std::system_error& error) {
    const SystemMutexLock lock(mutex_);
    state_ = {};
    return UnavailableError(
        fmt::format("cannot start a thread for the request log: {}", error.what()));
  }
  return OkStatus();
}

void RequestLog::Stop() {
  const SystemMutexLock lock(mutex_);
  if (!state_.is_on && !state_.is_busy) return;
  on_ = false;
  ending_ = true;
  state_.is_on = false;
  state_.is_busy = true;
  changed_.notify_all();
}

RequestLog::State RequestLog::state() const {
  const SystemMutexLock lock(mutex_);
  State state = state_;
  if (state.is_on || state.is_busy) state.dropped = dropped_.load(std::memory_order_relaxed);
  return state;
}

RequestLog::State RequestLog::Settled() const {
  SystemMutexLock lock(mutex_);
  while (state_.is_busy) changed_.wait(lock);
  lock.unlock();
  return state();
}

// ---- the writer thread

void RequestLog::Run(const Options& options) {
  Status done;
  try {
    done = Open(options);
    if (done.ok()) done = Write(options);
    DropUnread();
  } catch (const std::bad_alloc&) {
    done = ResourceExhaustedError(
        fmt::format("not enough memory to write the request log in {}", options.directory));
  }
  if (file_ && close(file_.release()) != 0 && done.ok())
    done = FailedPreconditionError(
        fmt::format("cannot close the request log in {}: {}", options.directory, strerror(errno)));
  drained_ = {};
  const SystemMutexLock lock(mutex_);
  on_ = false;
  state_.is_on = state_.is_busy = false;
  state_.dropped = dropped_.load(std::memory_order_relaxed);
  if (!done.ok()) state_.fault = MessageOf(done);
  changed_.notify_all();
}

Status RequestLog::Open(const Options& options) {
  bytes_ = records_ = 0;
  dropped_ = 0;
  const std::string who = options.host.empty()
                              ? options.component
                              : fmt::format("{}-{}", options.component, options.host);
  const std::string name = fmt::format("{}-{}.requests", who, getpid());
  const std::string path = fmt::format("{}/{}", options.directory, name);
  const auto directory = OpenPrivateDirectory(options.directory);
  if (!directory.ok()) {
    return Status(directory.status().code(),
                  fmt::format("cannot create {}: {}", path, MessageOf(directory.status())));
  }
  file_ = UniqueFd(openat(directory->get(), name.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_ && errno == EEXIST)
    return AlreadyExistsError(
        fmt::format("{} already exists: remove it or choose another directory", path));
  if (!file_)
    return FailedPreconditionError(fmt::format("cannot create {}: {}", path, strerror(errno)));
  const Status written = WriteBytes(
      std::string(kRequestLogTitle) +
      EncodeBlock(RequestLogBlock::kWriter,
                  EncodeWriter(options.component, options.host, static_cast<uint32_t>(getpid()))));
  if (!written.ok()) {
    unlinkat(directory->get(), name.c_str(), 0);
    return written;
  }
  DropUnread();  // Records after the end of the last log.
  peers_written_.clear();
  drained_.reserve(kBlockRecords);
  const SystemMutexLock lock(mutex_);
  state_.path = path;
  if (ending_) return OkStatus();
  state_.is_on = true;
  state_.is_busy = false;
  on_ = true;
  changed_.notify_all();
  return OkStatus();
}

Status RequestLog::Write(const Options& options) {
  Status written;
  for (bool is_ending = false; !is_ending && written.ok();) {
    {
      SystemMutexLock lock(mutex_);
      changed_.wait_for(lock, kDrainEvery, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ending_ || is_ring_filling_.load();
      });
      is_ending = ending_;
    }
    is_ring_filling_ = false;
    written = WriteRings(options);
  }
  on_ = false;
  const uint64_t dropped = dropped_.load(std::memory_order_relaxed);
  const Status ended = WriteBytes(EncodeBlock(RequestLogBlock::kEnd, EncodeEnd(records_, dropped)));
  return written.ok() ? ended : written;
}

Status RequestLog::WriteNames() {
  std::string blocks;
  {
    const SystemMutexLock lock(mutex_);
    for (uint32_t table = 0; table < names_.size(); ++table) {
      if (table == peers_written_.size()) {
        blocks += EncodeBlock(RequestLogBlock::kClasses, EncodeClasses(names_[table]));
        peers_written_.push_back(0);
      }
      const std::vector<std::string>& peers = names_[table].peers;
      for (size_t& written = peers_written_[table]; written < peers.size(); ++written)
        blocks += EncodeBlock(RequestLogBlock::kPeer, EncodePeer(table, peers[written]));
    }
  }
  return WriteBytes(blocks);
}

Status RequestLog::WriteRings(const Options& options) {
  Status written;
  rings_.Drain([&](const RequestRecord& record, const std::string&) {
    drained_.push_back(record);
    if (drained_.size() == kBlockRecords) written = WriteRecords(options);
    return written.ok();
  });
  return written.ok() ? WriteRecords(options) : written;
}

Status RequestLog::WriteRecords(const Options& options) {
  if (drained_.empty()) return OkStatus();
  const uint64_t count = drained_.size();
  Status written = OkStatus();
  struct statvfs disk = {};
  const bool is_known = fstatvfs(file_.get(), &disk) == 0 && disk.f_blocks > 0;
  const uint64_t reserve =
      std::min<uint64_t>(options.free_bytes_min, disk.f_blocks * disk.f_frsize / 20);
  if (bytes_ + count * sizeof(RequestRecord) > options.file_bytes_max) {
    written = ResourceExhaustedError(fmt::format("the log in {} has reached its limit of {} MiB",
                                                 options.directory, options.file_bytes_max >> 20));
  } else if (is_known && disk.f_bavail * disk.f_frsize < reserve) {
    written = ResourceExhaustedError(
        fmt::format("the disk of {} has less than {} MiB free: its request log has ended",
                    options.directory, reserve >> 20));
  } else {
    written = WriteNames();  // Names became known before the records that use them.
    if (written.ok())
      written =
          WriteBytes(EncodeBlock(RequestLogBlock::kRecords, EncodeRecords(ToWall(), drained_)));
  }
  drained_.clear();
  if (!written.ok()) {
    dropped_.fetch_add(count, std::memory_order_relaxed);
    return written;
  }
  records_ += count;
  const SystemMutexLock lock(mutex_);
  state_.records = records_;
  return OkStatus();
}

Status RequestLog::WriteBytes(std::string_view bytes) {
  if (!WriteAll(file_.get(), bytes))
    return FailedPreconditionError(
        fmt::format("cannot write the request log: {}", strerror(errno)));
  bytes_ += bytes.size();
  return OkStatus();
}

void RequestLog::DropUnread() {
  rings_.Drain([](const RequestRecord&, const std::string&) { return true; });
}

}  // namespace mosa
