#include "client-sai/trace/tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/private_directory.h"

namespace mosa::sai {
namespace {

constexpr std::chrono::milliseconds kDrainEvery{20};
// The process that starts a trace holds the lock of the mount's root.
constexpr std::chrono::seconds kOpenMax{2};
constexpr Duration kBlockEvery = Milliseconds(500);
// A request that is still being served this long after a trace ends is not in it.
constexpr Duration kUsesEndMax = Seconds(1);
constexpr size_t kBlockBytes = size_t{1} << 17;
static_assert(kBlockBytes < kTraceBlockBytesMax);
// At the limit all are forgotten, and written again when next seen.
constexpr size_t kNamesMax = 1'000'000;

std::string FileName(const Tracer::Options& options) {
  return options.file.empty() ? options.host + ".trace" : options.file;
}

std::string PathOf(const Tracer::Options& options) {
  return fmt::format("{}/{}", options.directory, FileName(options));
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

Tracer::Tracer(TracedMount& mount, const Clock& clock) : mount_(mount), clock_(clock) {}

Tracer::~Tracer() {
  EndWithin(Duration());
  const SystemMutexLock control(control_mutex_);
  if (writer_.joinable()) writer_.join();
}

void Tracer::Note(TraceEvent event, std::string_view text) {
  if (event.end == Time{}) event.end = clock_.Monotonic();
  if (event.start == Time{}) event.start = event.end;
  if (rings_.Push(event, text) == Pushed::kDropped)
    dropped_.fetch_add(1, std::memory_order_relaxed);
}

Tracer::Process Tracer::ProcessOf(uint32_t pid) {
  try {
    const uint32_t of_all = TaskNames::ProcessOfThread(pid);
    TaskNames::Process process = tasks_.ProcessOf(of_all);
    return {of_all, process.start_ticks, std::move(process.task) + '\0' + process.command};
  } catch (const std::bad_alloc&) {
    return {pid, 0, {}};
  }
}

Tracer::OpenRecord Tracer::RecordOfOpen(TraceKind kind, uint32_t pid, int flags) {
  OpenRecord record;
  TraceEvent& event = record.event;
  event.kind = kind;
  event.start = Now();
  const int access = flags & O_ACCMODE;
  if (access != O_WRONLY) event.flags |= kTraceForReading;
  if (access != O_RDONLY) event.flags |= kTraceForWriting;
  if ((flags & O_TRUNC) != 0) event.flags |= kTraceCut;
  Process process = ProcessOf(pid);
  event.pid = process.pid;
  event.process_start = process.start;
  record.text = std::move(process.text);
  return record;
}

Status Tracer::Start(const Options& options) {
  const SystemMutexLock control(control_mutex_);
  {
    const SystemMutexLock lock(mutex_);
    if (on())
      return FailedPreconditionError(
          fmt::format("{} is already being traced to {}: end that trace with 'mosa trace stop {}'",
                      options.mount_point, path_, options.mount_point));
    if (running_)
      return FailedPreconditionError(
          fmt::format("the previous trace of {} is still being written to a slow disk: try again "
                      "when it is complete",
                      options.mount_point));
    ending_ = given_up_ = false;
    opened_.reset();
    running_ = true;
  }
  if (writer_.joinable()) writer_.join();  // It has ended.
  try {
    writer_ = std::thread([this, options] { Run(options); });
  } catch (const std::system_error& error) {
    const SystemMutexLock lock(mutex_);
    running_ = false;
    return UnavailableError(fmt::format("{} cannot start a thread for its trace: {}",
                                        options.mount_point, error.what()));
  }
  SystemMutexLock lock(mutex_);
  if (changed_.wait_for(lock, kOpenMax, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return opened_.has_value();
      })) {
    const Status opened = *opened_;
    lock.unlock();
    if (!opened.ok()) writer_.join();  // It ends now, so the caller may try again at once.
    return opened;
  }
  given_up_ = true;
  return FailedPreconditionError(
      fmt::format("{} did not respond to the mount's process within {} s: choose a directory on a "
                  "disk of this host, not on the mount",
                  options.directory, kOpenMax.count()));
}

Status Tracer::Stop() {
  const SystemMutexLock control(control_mutex_);
  const SystemMutexLock lock(mutex_);
  if (!unstopped_)
    return FailedPreconditionError(
        "this mount is not being traced: start a trace with 'mosa trace start'");
  level_ = TraceLevel::kOff;
  mount_.SetPassthrough(true);
  unstopped_ = false;
  ending_ = true;
  wake_.notify_all();
  return OkStatus();
}

bool Tracer::EndWithin(Duration wait_max) {
  if (on() && !Stop().ok()) LogWarning("cannot end the trace");
  const SystemMutexLock control(control_mutex_);
  SystemMutexLock lock(mutex_);
  return changed_.wait_for(lock, wait_max,
                           [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !running_; });
}

void Tracer::NoteRefusal(const Status& refusal) {
  const SystemMutexLock lock(mutex_);
  refused_ = MessageOf(refusal);
}

std::string Tracer::StatusJson() const {
  const SystemMutexLock lock(mutex_);
  nlohmann::ordered_json json = {
      {"tracing", on()},      {"ending", running_ && !on()}, {"file", path_},
      {"light", light_},      {"records", foot_.records},    {"dropped", foot_.dropped},
      {"bytes", foot_.bytes}, {"end", foot_.reason},         {"refused", refused_}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// ---- the writer thread

void Tracer::Run(const Options& options) {
  try {
    if (Open(options)) WriteUntilEnd();
  } catch (const std::bad_alloc&) {
    level_ = TraceLevel::kOff;
    mount_.SetPassthrough(true);
    LogWarning("ending the trace to {}: out of memory", options.directory);
    const SystemMutexLock lock(mutex_);
    if (!opened_) opened_ = UnavailableError("there is not enough memory for a trace");
    foot_.reason = "the mount was out of memory";
  }
  file_ = UniqueFd();
  const SystemMutexLock lock(mutex_);
  running_ = false;
  changed_.notify_all();
}

bool Tracer::Open(const Options& options) {
  Drain();  // Events after the end of the last trace, while there is no file to write them to.
  const TraceHead head{options.host, options.mount_point, options.light, mount_.TraceTime()};
  const std::string pages = EncodeTraceHead(head) + std::string(kTraceFootBytes, '\n');
  const Status made = MakeFile(options, pages);
  block_ = TraceBlock();
  names_.clear();
  stats_ = lookups_ = 0;
  begun_ = clock_.Monotonic();
  const std::string path = PathOf(options);
  SystemMutexLock lock(mutex_);
  if (made.ok() && given_up_) {
    lock.unlock();
    unlink(path.c_str());
    return false;
  }
  if (made.ok()) {
    path_ = path;
    light_ = options.light;
    foot_ = {};
    foot_.bytes = pages.size();
    unstopped_ = true;
    mount_.SetPassthrough(options.light);
    cold_ = options.cold;
    level_ = options.light ? TraceLevel::kLight : TraceLevel::kFull;
    LogInfo("tracing to {}{}", path,
            options.light  ? " (light)"
            : options.cold ? ", passthrough off, no pages kept"
                           : ", passthrough off");
  }
  opened_ = made;
  changed_.notify_all();
  return made.ok();
}

Status Tracer::MakeFile(const Options& options, std::string_view pages) {
  const std::string path = PathOf(options);
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
  if (const int error = WriteAt(file_.get(), 0, pages); error != 0) {
    file_ = UniqueFd();
    unlinkat(directory.get(), name.c_str(), 0);
    return FailedPreconditionError(
        fmt::format("the mount's process cannot write {}: {}", path, strerror(error)));
  }
  return OkStatus();
}

void Tracer::WriteUntilEnd() {
  AddKnownNames();
  mount_.RecallNames();
  Time written = clock_.Monotonic();
  for (bool ending = false; !ending;) {
    {
      SystemMutexLock lock(mutex_);
      wake_.wait_for(lock, kDrainEvery,
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_; });
      ending = ending_;
    }
    if (ending) AwaitUses();
    Drain();
    const Time now = clock_.Monotonic();
    if (block_.bytes() >= kBlockBytes || ending || now - written > kBlockEvery) {
      WriteBlock();
      written = now;
    }
    if (!file_) return;
  }
  WriteFoot(kTraceStopped);
}

// Waits for the uses in progress; later ones are not counted.
void Tracer::AwaitUses() {
  const Time begin = clock_.Monotonic();
  while (uses_ > 0 && clock_.Monotonic() - begin < kUsesEndMax)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const SystemMutexLock lock(mutex_);
  foot_.dropped += uses_;
}

void Tracer::AddKnownNames() {
  const Time now = mount_.TraceTime();
  for (TracedMount::NamedFile& known : mount_.KnownNames()) {
    if (!IsNewName(known.file, known.parent, known.name)) continue;
    TraceRecord record;
    record.kind = TraceKind::kName;
    record.file = known.file;
    record.parent = known.parent;
    record.start = record.end = now;
    record.text = std::move(known.name);
    block_.Add(record);
    if (block_.bytes() >= kBlockBytes) WriteBlock();
  }
}

bool Tracer::IsNewName(FileId file, FileId parent, std::string_view name) {
  if (names_.size() >= kNamesMax) names_.clear();
  const uint64_t hash = Hash64(name) ^ parent.value * 0x9e3779b97f4a7c15U;
  const auto [known, fresh] = names_.try_emplace(file.value, hash);
  return fresh || std::exchange(known->second, hash) != hash;
}

void Tracer::Drain() {
  const Duration to_manager_time = mount_.TraceTime() - clock_.Monotonic();
  rings_.Drain([&](const TraceEvent& event, std::string text) {
    if (event.end >= begun_) AddRecord(event, std::move(text), to_manager_time);
    return true;
  });
  const SystemMutexLock lock(mutex_);
  foot_.dropped += dropped_.exchange(0, std::memory_order_relaxed);
}

void Tracer::AddRecord(const TraceEvent& event, std::string text, Duration to_manager_time) {
  if (event.kind == TraceKind::kName && !IsNewName(event.file, event.parent, text)) return;
  TraceRecord record;
  record.kind = event.kind;
  record.flags = event.flags;
  record.file = event.file;
  record.handle = event.handle;
  record.offset = event.offset;
  record.size_bytes = event.size_bytes;
  record.start = event.start + to_manager_time;
  record.end = event.end + to_manager_time;
  record.parent = event.parent;
  record.target = event.target;
  record.pid = event.pid;
  record.process_start = event.process_start;
  record.text = std::move(text);
  block_.Add(record);
  if (block_.bytes() >= kBlockBytes) WriteBlock();
}

void Tracer::WriteBlock() {
  const uint32_t records = block_.records();
  if (records == 0 || !file_) return;
  const std::string block = block_.Take();
  uint64_t offset = 0;
  {
    const SystemMutexLock lock(mutex_);
    offset = foot_.bytes;
  }
  if (const int error = WriteAt(file_.get(), offset, block); error != 0) {
    Fail(strerror(error));
    return;
  }
  const SystemMutexLock lock(mutex_);
  foot_.bytes += block.size();
  foot_.records += records;
}

// Ends tracing; the file says where it ends.
void Tracer::Fail(const std::string& why) {
  level_ = TraceLevel::kOff;
  mount_.SetPassthrough(true);
  uint64_t bytes = 0;
  std::string path;
  {
    const SystemMutexLock lock(mutex_);
    bytes = foot_.bytes;
    path = path_;
  }
  const std::string reason = fmt::format("its file could no longer be written: {}", why);
  LogWarning("ending the trace {}: {}", path, reason);
  // Drops a block that was only partly written.
  if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
    LogWarning("cannot truncate {}: {}", path, strerror(errno));
  WriteFoot(reason);
  file_ = UniqueFd();
}

void Tracer::WriteFoot(std::string_view reason) {
  TraceFoot foot;
  {
    const SystemMutexLock lock(mutex_);
    foot_.reason = reason;
    foot_.stats = stats_;
    foot_.lookups = lookups_;
    foot = foot_;
  }
  if (const int error = WriteAt(file_.get(), kTraceHeadBytes, EncodeTraceFoot(foot)); error != 0)
    LogWarning("cannot write the end of the trace: {}", strerror(error));
}

}  // namespace mosa::sai
