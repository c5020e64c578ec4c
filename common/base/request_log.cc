#include "common/base/request_log.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "common/base/clock.h"
#include "fmt/format.h"

namespace mosa {

namespace {

constexpr std::chrono::milliseconds kDrainEvery{50};
// Whoever switches it on waits no longer for its directory's disk.
constexpr std::chrono::milliseconds kOpenMax{500};

thread_local SpanContext current_span;

// Of a sequence whose start is random for each thread (Steele et al., "SplitMix", OOPSLA 2014).
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

uint64_t NextLogNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// From the monotonic clock to the time of day: of a few readings the one that took least.
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

// Records of one thread: that pushes, the writer pops.
struct RequestLog::Ring {
  static constexpr uint64_t kRecords = 8192;
  std::array<RequestRecord, kRecords> records;
  alignas(64) std::atomic<uint64_t> pushed = 0;
  std::atomic<bool> is_abandoned = false;
  alignas(64) std::atomic<uint64_t> popped = 0;
};

struct RequestLog::OwnRing {
  uint64_t of = 0;  // The log's number.
  std::shared_ptr<Ring> ring;
  ~OwnRing() {
    if (ring) ring->is_abandoned = true;
  }
};

RequestLog::RequestLog() : number_(NextLogNumber()) {}

RequestLog::~RequestLog() {
  Stop().IgnoreError();  // None may be written.
  if (writer_.joinable()) writer_.join();
}

uint32_t RequestLog::AddTable(const std::vector<std::string>& classes) {
  const std::lock_guard lock(mutex_);
  names_.push_back({.classes = classes, .peers = {}});
  return static_cast<uint32_t>(names_.size() - 1);
}

void RequestLog::AddPeer(uint32_t table, std::string_view name) {
  const std::lock_guard lock(mutex_);
  names_[table].peers.emplace_back(name);
}

RequestLog::Ring* RequestLog::RingOfThread() {
  thread_local OwnRing own;
  if (own.of == number_) return own.ring.get();
  if (own.ring) own.ring->is_abandoned = true;
  try {
    own.ring = std::make_shared<Ring>();
    const std::lock_guard lock(mutex_);
    rings_.push_back(own.ring);
  } catch (const std::bad_alloc&) {
    own.ring = nullptr;  // Its records are dropped.
  }
  own.of = number_;
  return own.ring.get();
}

void RequestLog::Add(const RequestRecord& record) {
  Ring* const ring = RingOfThread();
  if (ring != nullptr) {
    const uint64_t at = ring->pushed.load(std::memory_order_relaxed);
    if (at - ring->popped.load(std::memory_order_acquire) < Ring::kRecords) {
      ring->records[at % Ring::kRecords] = record;
      ring->pushed.store(at + 1, std::memory_order_release);
      return;
    }
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

Status RequestLog::Start(const Options& options) {
  const std::lock_guard control(control_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (on() || (writer_.joinable() && !opened_.has_value())) {
      return FailedPreconditionError(
          fmt::format("a log of requests is written already, to {}: 'mosa log off' ends it",
                      state_.path.empty() ? "a disk that does not answer" : state_.path));
    }
  }
  if (writer_.joinable()) writer_.join();
  {
    const std::lock_guard lock(mutex_);
    opened_.reset();
    ending_ = given_up_ = false;
  }
  try {
    writer_ = std::thread([this, options] {
      if (Open(options).ok()) Write();
    });
  } catch (const std::system_error& error) {
    return UnavailableError(fmt::format("no thread for a log of requests: {}", error.what()));
  }
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, kOpenMax, [this] { return opened_.has_value(); })) return *opened_;
  given_up_ = true;
  return FailedPreconditionError(
      fmt::format("{} has not answered within {} ms: choose a directory on a disk of this host",
                  options.directory, kOpenMax.count()));
}

Status RequestLog::Stop() {
  const std::lock_guard control(control_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!state_.is_on)
      return FailedPreconditionError("no log of requests is written: 'mosa log on' begins one");
    on_ = false;
    ending_ = true;
    changed_.notify_all();
  }
  writer_.join();
  writer_ = std::thread();
  return OkStatus();
}

RequestLog::State RequestLog::state() const {
  const std::lock_guard lock(mutex_);
  State state = state_;
  if (state.is_on) state.dropped = dropped_.load(std::memory_order_relaxed);
  return state;
}

// ---- the writer

Status RequestLog::Open(const Options& options) {
  const std::string who = options.host.empty()
                              ? options.component
                              : fmt::format("{}-{}", options.component, options.host);
  const std::string path = fmt::format("{}/{}-{}.requests", options.directory, who, getpid());
  file_ = UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  Status made = OkStatus();
  const std::string start =
      std::string(kRequestLogTitle) +
      EncodeBlock(RequestLogBlock::kWriter,
                  EncodeWriter(options.component, options.host, static_cast<uint32_t>(getpid())));
  if (!file_ || !WriteAll(file_.get(), start)) {
    made = FailedPreconditionError(fmt::format("cannot make {}: {}", path, strerror(errno)));
    if (errno == EEXIST)
      made = AlreadyExistsError(
          fmt::format("{} is there already: remove it, or choose another directory", path));
  }
  DropUnread();  // What came behind the end of the last one.
  peers_written_.clear();
  bytes_ = start.size();
  records_ = 0;
  dropped_ = 0;
  const std::lock_guard lock(mutex_);
  if (made.ok() && given_up_) {
    unlink(path.c_str());
    made = FailedPreconditionError("too late");
  }
  if (made.ok()) {
    state_ = {.is_on = true, .path = path, .fault = {}, .records = 0, .dropped = 0};
    on_ = true;
  } else {
    file_.reset();
  }
  opened_ = made;
  changed_.notify_all();
  return made;
}

void RequestLog::Write() {
  for (bool is_ending = false; !is_ending;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kDrainEvery, [this] { return ending_; });
      is_ending = ending_;
    }
    WriteRecords();
  }
  const uint64_t dropped = dropped_.load(std::memory_order_relaxed);
  WriteBlock(RequestLogBlock::kEnd, EncodeEnd(records_, dropped));
  file_.reset();
  const std::lock_guard lock(mutex_);
  state_.is_on = false;
  state_.dropped = dropped;
}

void RequestLog::WriteNames() {
  std::string blocks;
  {
    const std::lock_guard lock(mutex_);
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
  if (file_ && !WriteAll(file_.get(), blocks)) file_.reset();
  bytes_ += blocks.size();
}

void RequestLog::WriteRecords() {
  std::vector<std::shared_ptr<Ring>> rings;
  {
    const std::lock_guard lock(mutex_);
    rings = rings_;
    // What it has is written now.
    std::erase_if(rings_, [](const auto& ring) { return ring->is_abandoned.load(); });
  }
  std::vector<RequestRecord> records;
  for (const auto& ring : rings) {
    const uint64_t end = ring->pushed.load(std::memory_order_acquire);
    uint64_t at = ring->popped.load(std::memory_order_relaxed);
    for (; at < end; ++at) records.push_back(ring->records[at % Ring::kRecords]);
    ring->popped.store(at, std::memory_order_release);
  }
  if (records.empty()) return;
  WriteNames();  // They were known before their records.
  const bool has_room = bytes_ + records.size() * sizeof(RequestRecord) <= kFileBytesMax;
  if (has_room) WriteBlock(RequestLogBlock::kRecords, EncodeRecords(ToWall(), records));
  const std::lock_guard lock(mutex_);
  if (file_ && has_room) {
    records_ += records.size();
    state_.records = records_;
    return;
  }
  dropped_.fetch_add(records.size(), std::memory_order_relaxed);
  if (state_.fault.empty())
    state_.fault = has_room ? fmt::format("{} cannot be written any more", state_.path)
                            : fmt::format("{} has reached its limit of {} MiB", state_.path,
                                          kFileBytesMax >> 20);
}

void RequestLog::WriteBlock(RequestLogBlock kind, std::string_view payload) {
  const std::string block = EncodeBlock(kind, payload);
  if (file_ && !WriteAll(file_.get(), block)) file_.reset();
  bytes_ += block.size();
}

void RequestLog::DropUnread() {
  const std::lock_guard lock(mutex_);
  for (const auto& ring : rings_)
    ring->popped.store(ring->pushed.load(std::memory_order_acquire), std::memory_order_release);
}

}  // namespace mosa
