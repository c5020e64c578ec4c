#include "client-sai/trace/tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"

namespace mosa::sai {
namespace {

constexpr std::chrono::milliseconds kDrainEvery{20};
// The process that starts a trace holds the lock of the mount's root.
constexpr std::chrono::seconds kOpenMax{2};
constexpr Duration kBlockEvery = Milliseconds(500);
// A request that is still being served this long after a trace ends is not in it.
constexpr Duration kUsesEndMax = Seconds(1);

}  // namespace

Tracer::Tracer(TracedMount& mount, const Clock& clock)
    : mount_(mount), clock_(clock), output_([this] { TurnOff(); }) {}

Tracer::~Tracer() {
  EndWithin(Duration());
  const SystemMutexLock control(control_mutex_);
  if (writer_.joinable()) writer_.join();
}

void Tracer::Note(TraceEvent event, std::string_view text) {
  if (event.end == Time{}) event.end = clock_.Monotonic();
  if (event.start == Time{}) event.start = event.end;
  if (rings_.Push(event, text) == Pushed::kDropped) output_.CountDropped(1);
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
                      options.mount_point, output_.written().path, options.mount_point));
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
  TurnOff();
  unstopped_ = false;
  ending_ = true;
  wake_.notify_all();
  return OkStatus();
}

void Tracer::TurnOff() {
  level_ = TraceLevel::kOff;
  mount_.SetPassthrough(true);
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
  const auto [path, light, foot] = output_.written();
  nlohmann::ordered_json json = {
      {"tracing", on()},     {"ending", running_ && !on()}, {"file", path},
      {"light", light},      {"records", foot.records},     {"dropped", foot.dropped},
      {"bytes", foot.bytes}, {"end", foot.reason},          {"refused", refused_}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// ---- the writer thread

void Tracer::Run(const Options& options) {
  try {
    if (Open(options)) WriteUntilEnd();
  } catch (const std::bad_alloc&) {
    TurnOff();
    LogWarning("ending the trace to {}: out of memory", options.directory);
    const SystemMutexLock lock(mutex_);
    if (!opened_) opened_ = UnavailableError("there is not enough memory for a trace");
    output_.NoteReason("the mount was out of memory");
  }
  output_.Close();
  const SystemMutexLock lock(mutex_);
  running_ = false;
  changed_.notify_all();
}

bool Tracer::Open(const Options& options) {
  Drain();  // Events after the end of the last trace, while there is no file to write them to.
  const Status made = output_.Create(options, mount_.TraceTime());
  begun_ = clock_.Monotonic();
  SystemMutexLock lock(mutex_);
  if (made.ok() && given_up_) {
    lock.unlock();
    unlink(options.Path().c_str());
    return false;
  }
  if (made.ok()) {
    output_.Begin(options);
    unstopped_ = true;
    mount_.SetPassthrough(options.light);
    cold_ = options.cold;
    level_ = options.light ? TraceLevel::kLight : TraceLevel::kFull;
    LogInfo("tracing to {}{}", options.Path(),
            options.light  ? " (light)"
            : options.cold ? ", passthrough off, no pages kept"
                           : ", passthrough off");
  }
  opened_ = made;
  changed_.notify_all();
  return made.ok();
}

void Tracer::WriteUntilEnd() {
  AddKnownNames();
  mount_.RecallNames();
  Time written = clock_.Monotonic();
  for (bool ending = false; !ending && output_.is_open();) {
    {
      SystemMutexLock lock(mutex_);
      wake_.wait_for(lock, kDrainEvery,
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_; });
      ending = ending_;
    }
    if (ending) AwaitUses();
    Drain();
    const Time now = clock_.Monotonic();
    if (now - written > kBlockEvery) {
      output_.Flush();
      written = now;
    }
  }
  output_.End(kTraceStopped);
}

// Waits for the uses in progress; later ones are not counted.
void Tracer::AwaitUses() {
  const Time begin = clock_.Monotonic();
  while (uses_ > 0 && clock_.Monotonic() - begin < kUsesEndMax)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  output_.CountDropped(uses_);
}

void Tracer::AddKnownNames() {
  const Time now = mount_.TraceTime();
  for (TracedMount::NamedFile& known : mount_.KnownNames()) {
    TraceRecord record;
    record.kind = TraceKind::kName;
    record.file = known.file;
    record.parent = known.parent;
    record.start = record.end = now;
    record.text = std::move(known.name);
    output_.Add(record);
  }
}

void Tracer::Drain() {
  const Duration to_manager_time = mount_.TraceTime() - clock_.Monotonic();
  rings_.Drain([&](const TraceEvent& event, std::string text) {
    if (event.end >= begun_) AddRecord(event, std::move(text), to_manager_time);
    return true;
  });
}

void Tracer::AddRecord(const TraceEvent& event, std::string text, Duration to_manager_time) {
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
  output_.Add(record);
}

}  // namespace mosa::sai
