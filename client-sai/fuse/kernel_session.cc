#include "client-sai/fuse/kernel_session.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include "client-sai/api/wait_budget.h"
#include "client-sai/fuse/kernel_protocol.h"
#include "client-sai/fuse/mount_point.h"
#include "client-sai/fuse/mount_residence.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "fmt/format.h"

namespace mosa::sai {

namespace {

// Each may wait for the manager, nodes or another mount's pages.
constexpr size_t kWorkersMax = 1024;
// Limit on workers that serve requests about bytes, which wait for nodes; the rest remains for
// names and attributes.
constexpr uint32_t kBytesWorkersMax = 768;
constexpr uint64_t kParkedBytesMax = uint64_t{256} << 20;
// A worker that waits with a request this small returns its memory for large ones.
constexpr size_t kSmallRequestBytes = 16 << 10;
// At the end, workers continue while a notice is in progress: the page for which it waits may be
// locked by a request that they have not served yet.
constexpr std::chrono::seconds kNoticesEndMax{20};  // Longer than a request waits.
constexpr int kInitWaitMs = 10'000;
constexpr uint32_t kRequestBytesMax = 1 << 20;
constexpr uint16_t kRequestPagesMax = kRequestBytesMax / 4096;
constexpr uint32_t kRequestHeaderBytesMax = 4096;  // As libfuse counts.
constexpr uint16_t kBackgroundMax = 64;
constexpr uint16_t kCongestionThreshold = 48;
constexpr int kWakeSignal = SIGUSR1;

static_assert(LargeBuffer::kBytes >= kRequestBytesMax + kRequestHeaderBytesMax);

thread_local bool request_kills_privileges = false;
// Where requests are received. The kernel sends none larger than agreed.
thread_local LargeBuffer request_memory;
// The request that this worker serves. `request_detached`: its callback answers it later.
thread_local uint64_t request_unique = 0;
thread_local bool request_detached = false;

template <typename T>
const T& BodyOf(const fuse_buf& request) {
  MOSA_CHECK(request.size >= sizeof(fuse_in_header) + sizeof(T));
  return *reinterpret_cast<const T*>(static_cast<const char*>(request.mem) +
                                     sizeof(fuse_in_header));
}

bool KillsPrivileges(const fuse_buf& request, uint32_t opcode) {
  switch (opcode) {
    case FUSE_WRITE:
      return (BodyOf<fuse_write_in>(request).write_flags & FUSE_WRITE_KILL_SUIDGID) != 0;
    case FUSE_SETATTR:
      return (BodyOf<fuse_setattr_in>(request).valid & FATTR_KILL_SUIDGID) != 0;
    case FUSE_OPEN:
      return (BodyOf<fuse_open_in>(request).open_flags & FUSE_OPEN_KILL_SUIDGID) != 0;
    default:
      return false;
  }
}

// True for requests that may wait for a node.
bool IsAboutBytes(uint32_t opcode) {
  switch (opcode) {
    case FUSE_READ:
    case FUSE_WRITE:
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_RELEASE:
    case FUSE_FALLOCATE:
    case FUSE_LSEEK:
      return true;
    default:
      return false;
  }
}

bool IsAnswered(uint32_t opcode) {
  return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

ssize_t WriteReply(int device, uint64_t unique, int error, const void* body, size_t body_bytes) {
  fuse_out_header header{};
  header.len = static_cast<uint32_t>(sizeof(header) + body_bytes);
  header.error = -error;
  header.unique = unique;
  const iovec parts[] = {{&header, sizeof(header)}, {const_cast<void*>(body), body_bytes}};
  return writev(device, parts, body_bytes == 0 ? 1 : 2);
}

void OnWakeSignal(int) {}

// libfuse's own choice of flags is never sent; it only matters for libfuse's own decisions.
void OnLibraryInit(void*, fuse_conn_info* connection) {
  connection->want &=
      ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

void OnLibraryLog(fuse_log_level level, const char* format, va_list arguments) {
  char text[512];
  vsnprintf(text, sizeof(text), format, arguments);
  std::string line(text);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  Log(level <= FUSE_LOG_WARNING ? LogLevel::kWarning : LogLevel::kInfo, "libfuse: {}", line);
}

std::string PassthroughReason(const Status& probe) {
  if (probe.code() == StatusCode::kPermissionDenied) {
    return "the mounting process lacks CAP_SYS_ADMIN";
  }
  return MessageOf(probe);
}

}  // namespace

bool RequestKillsPrivileges() { return request_kills_privileges; }

LargeBuffer TakeRequestMemory() { return std::move(request_memory); }

KernelSession::KernelSession(KernelSessionOptions options)
    : options_(std::move(options)),
      ended_(eventfd(0, EFD_CLOEXEC)),
      askers_([this](uint64_t request) { AnswerKilled(request); }),
      parked_(kBytesWorkersMax, kParkedBytesMax) {}

KernelSession::~KernelSession() {
  Stop();
  if (session_ != nullptr) {
    device_ = -1;
    fuse_session_destroy(session_);  // Closes the device.
  }
}

Status KernelSession::Mount(const fuse_lowlevel_ops& operations, void* userdata,
                            StatxFunction statx) {
  MOSA_CHECK(session_ == nullptr);
  statx_ = std::move(statx);
  struct sigaction action {};
  action.sa_handler = OnWakeSignal;  // Without SA_RESTART, so that a blocked read returns.
  sigaction(kWakeSignal, &action, nullptr);
  fuse_set_log_func(OnLibraryLog);

  fuse_lowlevel_ops table = operations;
  table.init = OnLibraryInit;
  std::string mount_options =
      fmt::format("fsname={0},subtype={0},default_permissions", options_.type);
  if (options_.allow_other) mount_options += ",allow_other";
  const char* arguments[] = {"mosa-mount", "-o", mount_options.c_str()};
  fuse_args args = FUSE_ARGS_INIT(3, const_cast<char**>(arguments));
  session_ = fuse_session_new(&args, &table, sizeof(table), userdata);
  fuse_opt_free_args(&args);
  if (session_ == nullptr) return InternalError("libfuse cannot create a session");
  if (fuse_session_mount(session_, options_.mount_point.c_str()) != 0) {
    return PermissionDeniedError(
        fmt::format("cannot mount on {}: see the previous line; /dev/fuse must exist and, without "
                    "root, fusermount3 must be installed set-user-ID",
                    options_.mount_point));
  }
  device_ = fuse_session_fd(session_);
  const Status negotiated = Negotiate();
  if (!negotiated.ok()) Stop();
  return negotiated;
}

Status KernelSession::Negotiate() {
  pollfd readable{device_, POLLIN, 0};
  const int ready = poll(&readable, 1, kInitWaitMs);
  if (ready <= 0) {
    return UnavailableError(
        fmt::format("the kernel sent no first message for {} within 10 s", options_.mount_point));
  }
  fuse_buf request{};
  const int bytes = fuse_session_receive_buf(session_, &request);
  const std::unique_ptr<void, decltype(&free)> memory(request.mem, &free);
  if (bytes < static_cast<int>(sizeof(fuse_in_header) + sizeof(fuse_init_in))) {
    return UnavailableError(fmt::format(
        "the kernel's first message for {} has only {} bytes: Linux 5.17 or newer is needed",
        options_.mount_point, bytes));
  }
  const auto& header = *static_cast<const fuse_in_header*>(request.mem);
  const auto& init = BodyOf<fuse_init_in>(request);
  MOSA_RETURN_IF_ERROR(AnswerInit(header, init));
  // libfuse learns the protocol from the same message. Its own reply comes too late, and the kernel
  // drops it.
  fuse_session_process_buf(session_, &request);

  if (agreement_.passthrough) {
    const Status probe = ProbePassthrough(device_);
    agreement_.passthrough = probe.ok();
    if (!probe.ok()) agreement_.passthrough_reason = PassthroughReason(probe);
  }
  backing_files_.emplace(device_);
  capabilities_ = {.passthrough = agreement_.passthrough,
                   .epoch = agreement_.epoch,
                   .drops_pages = agreement_.drops_pages,
                   .maps_direct = (agreement_.flags & kernel::kDirectIoAllowMmap) != 0};
  return OkStatus();
}

Status KernelSession::AnswerInit(const fuse_in_header& header, const fuse_init_in& init) {
  const uint64_t offered_by_kernel =
      init.flags |
      ((init.flags & FUSE_INIT_EXT) != 0 ? static_cast<uint64_t>(init.flags2) << 32 : 0);
  if (header.opcode != FUSE_INIT || init.major != FUSE_KERNEL_VERSION) {
    return UnavailableError(
        fmt::format("the kernel speaks FUSE {}.{}, not 7", init.major, init.minor));
  }
  if ((offered_by_kernel & FUSE_MAX_PAGES) == 0 ||
      (offered_by_kernel & FUSE_EXPLICIT_INVAL_DATA) == 0) {
    return UnavailableError(
        fmt::format("the kernel speaks FUSE 7.{}: Linux 5.17 or newer is needed", init.minor));
  }
  agreement_.protocol_minor = std::min({init.minor, kernel::kMinorNewest, options_.minor_max});
  const uint64_t offered = offered_by_kernel & kernel::FlagsOfMinor(agreement_.protocol_minor);
  uint64_t flags = offered & options_.flags;
  if (!options_.passthrough) {
    agreement_.passthrough_reason = "switched off by --no-passthrough";
  } else if ((offered & kernel::kPassthrough) == 0) {
    agreement_.passthrough_reason = fmt::format(
        "the kernel (FUSE 7.{}) does not support it: Linux 6.9 or newer with "
        "CONFIG_FUSE_PASSTHROUGH is needed",
        agreement_.protocol_minor);
  } else {
    flags |= kernel::kPassthrough;
    agreement_.passthrough = true;
  }
  agreement_.flags = flags;
  agreement_.epoch = agreement_.protocol_minor >= kernel::kMinorOfEpoch;
  agreement_.drops_pages = agreement_.protocol_minor >= kernel::kMinorOfDroppedPages;

  kernel::InitOut out{};
  out.major = FUSE_KERNEL_VERSION;
  out.minor = agreement_.protocol_minor;
  out.max_readahead = init.max_readahead;
  out.flags = static_cast<uint32_t>(flags);
  out.flags2 = static_cast<uint32_t>(flags >> 32);
  out.max_background = kBackgroundMax;
  out.congestion_threshold = kCongestionThreshold;
  out.max_write = kRequestBytesMax;
  out.max_pages = kRequestPagesMax;
  out.time_gran = 1;
  out.max_stack_depth = agreement_.passthrough ? 1 : 0;
  if (WriteReply(device_, header.unique, 0, &out, sizeof(out)) < 0) {
    return ErrnoStatus(errno, fmt::format("cannot complete the FUSE handshake for {} (FUSE 7.{})",
                                          options_.mount_point, init.minor));
  }
  return OkStatus();
}

void KernelSession::StartWorkers() {
  for (uint32_t i = 0; i < std::max(1U, options_.threads); ++i) StartWorker();
}

void KernelSession::StartWorker() {
  const SystemMutexLock lock(mutex_);
  if (stopping_ || workers_.size() >= kWorkersMax) return;
  idle_.fetch_add(1);
  try {
    std::thread worker([this] { Work(); });
    workers_.insert(worker.native_handle());
    worker.detach();  // Tracked in workers_.
  } catch (const std::system_error& error) {
    // The existing workers continue; one that finishes its request tries to start another.
    idle_.fetch_sub(1);
    failures_.Warning("cannot start more than {} worker threads: {}", workers_.size(),
                      error.what());
    MOSA_CHECK(!workers_.empty());
  }
}

// A worker that waits for the manager or a node must not block other requests, least of all those
// on which the wait depends: a page that a recall wants dropped may be locked by a read. So there
// is always one more worker than there are waits, up to the limit.
void KernelSession::Work() {
  while (!stopping_) {
    if (request_memory.data() == nullptr) request_memory = LargeBuffer::Take();
    fuse_buf request{};
    request.mem = request_memory.data();
    const int bytes = fuse_session_receive_buf(session_, &request);
    if (bytes == -EINTR || bytes == -EAGAIN) continue;
    if (bytes <= 0) break;
    if (idle_.fetch_sub(1) == 1) StartWorker();
    Serve(request);
    if (ShouldRetire()) break;
  }
  if (fuse_session_exited(session_) != 0) {
    const uint64_t one = 1;
    MOSA_CHECK(write(ended_.get(), &one, sizeof(one)) == sizeof(one));
  }
  const SystemMutexLock lock(mutex_);
  workers_.erase(pthread_self());
  worker_ended_.notify_all();
}

void KernelSession::Serve(const fuse_buf& request) {
  MOSA_CHECK(request.size >= sizeof(fuse_in_header));
  const auto& header = *static_cast<const fuse_in_header*>(request.mem);
  if (IsAnswered(header.opcode)) askers_.Begin(header.unique, header.pid);
  if (header.opcode == FUSE_INTERRUPT)
    askers_.Interrupted(BodyOf<fuse_interrupt_in>(request).unique);
  if (IsAboutBytes(header.opcode)) {
    ServeInTurn(request);
    return;
  }
  Dispatch(request, std::chrono::steady_clock::now());
}

void KernelSession::ServeInTurn(const fuse_buf& request) {
  const auto arrived = std::chrono::steady_clock::now();
  if (parked_.TakeTurn()) {
    Dispatch(request, arrived);
    parked_.EndTurn();
  } else {
    ParkedRequest parked;
    parked.size_bytes = request.size;
    parked.arrived = arrived;
    if (request.size <= kSmallRequestBytes) {
      const auto* const bytes = static_cast<const std::byte*>(request.mem);
      parked.small.assign(bytes, bytes + request.size);
    } else {
      parked.large = std::move(request_memory);
    }
    if (!parked_.Park(parked)) {
      if (parked.large.data() != nullptr) request_memory = std::move(parked.large);
      Dispatch(request, arrived);
    }
  }
  while (std::optional<ParkedRequest> next = parked_.NextWithTurn()) {
    fuse_buf again{};
    again.mem = next->data();
    again.size = next->size_bytes;
    request_memory = std::move(next->large);
    Dispatch(again, next->arrived);
    parked_.EndTurn();
  }
}

// True if enough others wait for requests; otherwise counts this worker among them.
bool KernelSession::ShouldRetire() {
  const uint32_t keep = std::max(1U, options_.threads);
  uint32_t idle = idle_.load();
  while (idle <= keep) {  // One to spare, so that threads do not come and go.
    if (idle_.compare_exchange_weak(idle, idle + 1)) return false;
  }
  return true;
}

void KernelSession::Dispatch(const fuse_buf& received,
                             std::chrono::steady_clock::time_point arrived) {
  requests_.fetch_add(1, std::memory_order_relaxed);
  fuse_buf request = received;
  std::array<std::byte, kSmallRequestBytes> small;
  if (request.size <= small.size()) {
    std::memcpy(small.data(), request.mem, request.size);
    request.mem = small.data();
    request_memory = LargeBuffer();
  }
  const fuse_in_header header = *static_cast<const fuse_in_header*>(request.mem);
  TimedRequest timed(options_.residence, KernelRequestKind(header.opcode));
  if (header.opcode == FUSE_READ) timed.set_bytes(BodyOf<fuse_read_in>(request).size);
  if (header.opcode == FUSE_WRITE) timed.set_bytes(BodyOf<fuse_write_in>(request).size);
  const WaitBudget budget(arrived);
  request_unique = header.unique;
  request_detached = false;
  if (header.opcode == kernel::kOpcodeStatx) {
    AnswerStatx(header);
  } else {
    request_kills_privileges = KillsPrivileges(request, header.opcode);
    fuse_session_process_buf(session_, &request);
  }
  if (IsAnswered(header.opcode) && !request_detached) askers_.End(header.unique);
}

KernelSession::Detached KernelSession::Detach() {
  request_detached = true;
  return {askers_, request_unique};
}

// The request's own reply is then refused, as if the program had been killed before it asked.
void KernelSession::AnswerKilled(uint64_t request) {
  if (WriteReply(device_, request, EINTR, nullptr, 0) < 0 && errno != ENOENT && errno != ENODEV)
    LogWarning("cannot answer request {} of a killed program: {}", request, strerror(errno));
}

void KernelSession::AnswerStatx(const fuse_in_header& header) {
  kernel::StatxOut out{};
  const int error = statx_(header.nodeid, out);
  const ssize_t written = error == 0 ? WriteReply(device_, header.unique, 0, &out, sizeof(out))
                                     : WriteReply(device_, header.unique, error, nullptr, 0);
  // ENOENT: the calling program was killed.
  if (written < 0 && errno != ENOENT && errno != ENODEV) {
    LogWarning("cannot answer statx of inode {}: {}", header.nodeid, strerror(errno));
  }
}

void KernelSession::Stop() {
  if (session_ == nullptr || device_ < 0 || stopping_) return;
  if (fuse_session_exited(session_) == 0) Unmount(options_.mount_point);
  EndNotices();
  EndWorkers();
  askers_.Stop();
}

void KernelSession::EndNotices() {
  SystemMutexLock lock(mutex_);
  notices_refused_ = true;
  notice_ended_.wait_for(lock, kNoticesEndMax,
                         [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return notices_ == 0; });
}

bool KernelSession::BeginNotice() {
  const SystemMutexLock lock(mutex_);
  if (device_ < 0 || notices_refused_) return false;
  ++notices_;
  return true;
}

void KernelSession::EndNotice() {
  const SystemMutexLock lock(mutex_);
  --notices_;
  notice_ended_.notify_all();
}

void KernelSession::EndWorkers() {
  stopping_ = true;
  SystemMutexLock lock(mutex_);
  // The signal may arrive just before a worker's read, so it is repeated.
  while (!workers_.empty()) {
    for (const pthread_t worker : workers_) pthread_kill(worker, kWakeSignal);
    worker_ended_.wait_for(lock, std::chrono::milliseconds(20));
  }
}

uint32_t KernelSession::workers() const {
  const SystemMutexLock lock(mutex_);
  return static_cast<uint32_t>(workers_.size());
}

KernelNotifier::Capabilities KernelSession::capabilities() const { return capabilities_; }

void KernelSession::InvalidateEntries() {
  if (!BeginNotice()) return;
  fuse_out_header notice{};
  notice.len = sizeof(notice);
  notice.error = kernel::kNotifyIncrementEpoch;
  if (write(device_, &notice, sizeof(notice)) < 0 && errno != ENODEV && errno != ENOTCONN) {
    LogError("cannot invalidate the names in the kernel's cache: {}", strerror(errno));
  }
  EndNotice();
}

bool KernelSession::InvalidateFile(FileId file) { return Invalidate(file, 0); }

void KernelSession::InvalidateAttributes(FileId file) { Invalidate(file, -1); }

bool KernelSession::Invalidate(FileId file, off_t begin) {
  if (!BeginNotice()) return true;
  const int error = fuse_lowlevel_notify_inval_inode(session_, file.value, begin, 0);
  if (error != 0 && error != -ENOENT && error != -ENODEV && error != -ENOTCONN) {
    LogError("cannot invalidate file {} in the kernel's cache: {}", file.value, strerror(-error));
  }
  EndNotice();
  return error != -ENOENT;
}

}  // namespace mosa::sai
