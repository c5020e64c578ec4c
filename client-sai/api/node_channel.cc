#include "client-sai/api/node_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "client-sai/api/local_trust.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/socket_address.h"
#include "common/base/tcp_options.h"
#include "proto/convert/bulk_hello.h"
#include "proto/convert/status.h"

namespace mosa::sai {
namespace {

constexpr Duration kSocketRetryAfter = Seconds(1);
constexpr Duration kDistrustedFor = Seconds(60);  // Also limits how often refusals are logged.

Time Now() { return SystemClock().Monotonic(); }

Status FinishConnect(int socket, Duration wait) {
  pollfd event{.fd = socket, .events = POLLOUT, .revents = 0};
  const int ready = ::poll(&event, 1, static_cast<int>(wait.ns / 1'000'000));
  if (ready == 0) {
    return UnavailableError(fmt::format("connecting timed out after {} ms", wait.ns / 1'000'000));
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (ready < 0 || ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? OkStatus() : ErrnoStatus(error, "cannot connect");
}

// Connects within `wait`; the socket is blocking afterwards.
Result<UniqueFd> Connect(const sockaddr* address, socklen_t size, Duration wait) {
  UniqueFd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return ErrnoStatus(errno, "cannot create a socket");
  if (address->sa_family != AF_UNIX) {
    TuneBulkTcp(socket.get());
    AbortOnClose(socket.get());
  }
  if (::connect(socket.get(), address, size) != 0) {
    if (errno != EINPROGRESS) return ErrnoStatus(errno, "cannot connect");
    MOSA_RETURN_IF_ERROR(FinishConnect(socket.get(), wait));
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    return ErrnoStatus(errno, "cannot make the socket blocking");
  return socket;
}

Result<UniqueFd> ConnectTcp(const std::string& text, Duration wait) {
  MOSA_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(text));
  return Connect(address.get(), address.size(), wait);
}

Result<UniqueFd> ConnectToFile(int socket_file, Duration wait) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("/proc/self/fd/{}", socket_file);
  std::memcpy(address.sun_path, name.data(), name.size());
  MOSA_ASSIGN_OR_RETURN(UniqueFd socket,
                        Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address, wait));
  MOSA_RETURN_IF_ERROR(TrustedPeer(socket.get()).status());
  return socket;
}

// Unauthenticated if the socket file or its listener is not trusted.
Result<UniqueFd> ConnectUnix(const std::string& path, Duration wait) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return InvalidArgumentError(
        fmt::format("its socket '{}': the path is empty or too long", path));
  }
  const auto file = OpenSocketFile(path);
  auto connected = file.ok() ? ConnectToFile(file->get(), wait) : Result<UniqueFd>(file.status());
  if (connected.ok()) return connected;
  return Status(connected.status().code(),
                fmt::format("its socket {}: {}", path, MessageOf(connected.status())));
}

}  // namespace

std::string NodeChannel::Name() const {
  return fmt::format("node {} ({})", address_.name, address_.address);
}

bool NodeChannel::SameEndpoint(const NodeAddress& other) const {
  return address_.address == other.address && address_.socket_path == other.socket_path &&
         address_.host_identity == other.host_identity &&
         address_.incarnation == other.incarnation && address_.name == other.name;
}

void NodeChannel::SetIdentity(const BulkIdentity& identity) {
  const SystemMutexLock lock(mutex_);
  if (identity_ == identity) return;
  identity_ = identity;
  for (Pool* pool : {&tcp_, &unix_}) {
    pool->idle.clear();
    pool->outdated = pool->busy;
  }
}

void NodeChannel::SetState(NodeState state) {
  const SystemMutexLock lock(mutex_);
  state_ = state;
  if (CheckState().ok()) return;
  for (Pool* pool : {&tcp_, &unix_}) {
    pool->idle.clear();
    for (FrameSocket* socket : pool->busy) socket->Shutdown();
    pool->released.notify_all();
  }
}

Status NodeChannel::CheckState() const {
  if (state_ == NodeState::kLive || state_ == NodeState::kDraining) return OkStatus();
  return UnavailableError(
      fmt::format("{} is {}", Name(), state_ == NodeState::kSilent ? "silent" : "lost"));
}

bool NodeChannel::HasIdle(Pool& pool) {
  while (!pool.idle.empty() && pool.idle.back()->IsStale()) pool.idle.pop_back();
  return !pool.idle.empty();
}

Result<std::unique_ptr<FrameSocket>> NodeChannel::Acquire(Kind kind, bool fresh, Time deadline) {
  SystemMutexLock lock(mutex_);
  Pool& pool = PoolOf(kind);
  while (true) {
    MOSA_RETURN_IF_ERROR(CheckState());
    if (fresh) pool.idle.clear();  // If one is broken, the others probably are too.
    if (HasIdle(pool)) {
      std::unique_ptr<FrameSocket> socket = std::move(pool.idle.back());
      pool.idle.pop_back();
      pool.busy.insert(socket.get());
      return socket;
    }
    if (pool.busy.size() + pool.connecting < options_.connections_max) break;
    const Duration left = deadline - Now();
    if (left.ns > 0) {
      pool.released.wait_for(lock, left);
    } else {
      pool.released.notify_one();  // The notification may have been for this thread.
      return DeadlineExceededError(
          fmt::format("{}: all {} connections were in use until the "
                      "deadline",
                      Name(), options_.connections_max));
    }
  }
  if (pool.retry_at && Now() < *pool.retry_at) {
    return UnavailableError(fmt::format("{}: its socket {} is unreachable or not trusted", Name(),
                                        address_.socket_path));
  }
  ++pool.connecting;
  lock.unlock();
  auto opened = Open(kind, deadline);
  lock.lock();
  if (opened.ok()) return opened;
  --pool.connecting;
  const bool untrusted = opened.status().code() == StatusCode::kUnauthenticated;
  if (kind == Kind::kUnix) {
    if (untrusted) Distrust(opened.status());
    AvoidSocketFor(kSocketRetryAfter);
  }
  pool.released.notify_all();
  return Status(untrusted ? StatusCode::kUnavailable : opened.status().code(),
                fmt::format("{}: {}", Name(), MessageOf(opened.status())));
}

Result<std::unique_ptr<FrameSocket>> NodeChannel::Open(Kind kind, Time deadline) {
  auto opened = OpenOnce(kind, deadline);
  // A node under a flood of connections may have closed this one silently, to make room.
  if (opened.status().code() == StatusCode::kUnavailable) opened = OpenOnce(kind, deadline);
  const StatusCode code = opened.status().code();
  if (opened.ok() || code == StatusCode::kFailedPrecondition ||
      code == StatusCode::kDeadlineExceeded || code == StatusCode::kUnauthenticated)
    return opened;
  return UnavailableError(MessageOf(opened.status()));
}

Result<std::unique_ptr<FrameSocket>> NodeChannel::OpenOnce(Kind kind, Time deadline) {
  MOSA_ASSIGN_OR_RETURN(UniqueFd fd, ConnectTo(kind, std::clamp(deadline - Now(), Duration{},
                                                                options_.connect_wait)));
  auto socket = std::make_unique<FrameSocket>(std::move(fd));
  BulkIdentity identity;
  {
    const SystemMutexLock lock(mutex_);
    MOSA_RETURN_IF_ERROR(CheckState());  // The node may have been found silent meanwhile.
    if (identity_.key.empty()) {
      return UnavailableError(
          "no session with the manager has been opened yet, so there is no key for storage nodes");
    }
    identity = identity_;
    PoolOf(kind).busy.insert(socket.get());  // So that SetState ends it with the others.
    --PoolOf(kind).connecting;
  }
  const Time hello_end = std::min(deadline, Now() + options_.hello_wait);
  Status status;
  if (identity.tls && kind == Kind::kTcp) {
    socket->UseTls(TlsStream::Client(socket->fd(), identity));
    status = socket->Handshake(hello_end);
  }
  if (status.ok()) status = Introduce(*socket, identity, address_.name, hello_end);
  if (status.ok()) return socket;
  const SystemMutexLock lock(mutex_);
  PoolOf(kind).busy.erase(socket.get());
  PoolOf(kind).outdated.erase(socket.get());
  ++PoolOf(kind).connecting;
  return status;
}

void NodeChannel::Release(Kind kind, std::unique_ptr<FrameSocket> socket, bool usable) {
  const SystemMutexLock lock(mutex_);
  Pool& pool = PoolOf(kind);
  pool.busy.erase(socket.get());
  const bool is_outdated = pool.outdated.erase(socket.get()) > 0;
  if (usable && !is_outdated && CheckState().ok()) pool.idle.push_back(std::move(socket));
  pool.released.notify_one();
}

Status NodeChannel::Run(const Exchange& exchange, const Terms& terms) {
  Status status;
  for (int attempt = 0; attempt < 2; ++attempt) {
    MOSA_ASSIGN_OR_RETURN(std::unique_ptr<FrameSocket> socket,
                          Acquire(terms.kind, /*fresh=*/attempt > 0, terms.deadline));
    status = RunOn(*socket, exchange, terms.kind);
    Release(terms.kind, std::move(socket), status.ok());
    const bool not_begun = status.code() == StatusCode::kAborted;
    if (!not_begun && !(terms.repeatable && status.code() == StatusCode::kUnavailable)) break;
  }
  if (status.ok()) return status;
  // Callers see this as a connection that could not be established.
  const bool not_begun = status.code() == StatusCode::kAborted;
  return Status(not_begun ? StatusCode::kUnavailable : status.code(),
                fmt::format("{}: {}", Name(), MessageOf(status)));
}

Status NodeChannel::RunOn(FrameSocket& socket, const Exchange& exchange, Kind kind) const {
  if (kind == Kind::kUnix || residence_ == nullptr) return exchange(socket);
  const Time begin = Now();
  const Status status = exchange(socket);
  if (socket.TakeLostSegments() > 0) Count(DurationTable::ClassId{kResent}, Now() - begin);
  return status;
}

void NodeChannel::Count(DurationTable::ClassId part, Duration duration) const {
  if (residence_ != nullptr) residence_->Add(part, residence_->PeerOf(address_.name), duration);
}

Result<UniqueFd> NodeChannel::ConnectTo(Kind kind, Duration wait) const {
  if (kind == Kind::kUnix) return ConnectUnix(address_.socket_path, wait);
  const Time begin = Now();
  auto connected = ConnectTcp(address_.address, wait);
  Count(DurationTable::ClassId{kConnect}, Now() - begin);
  return connected;
}

bool NodeChannel::CanReachSocket() {
  {
    const SystemMutexLock lock(mutex_);
    if (!CheckState().ok()) return false;
    if (HasIdle(unix_) || !unix_.busy.empty()) return true;
    if (unix_.retry_at && Now() < *unix_.retry_at) return false;
    if (unix_.reached_at && Now() - *unix_.reached_at < kSocketRetryAfter) return true;
  }
  // Only tests whether somebody listens: a hello would wait for a reply.
  const Status reached = ConnectUnix(address_.socket_path, options_.connect_wait).status();
  const SystemMutexLock lock(mutex_);
  if (reached.ok()) {
    unix_.reached_at = Now();
    return true;
  }
  if (reached.code() == StatusCode::kUnauthenticated) Distrust(reached);
  AvoidSocketFor(kSocketRetryAfter);
  return false;
}

void NodeChannel::AvoidSocketFor(Duration time) {
  unix_.retry_at = std::max(unix_.retry_at.value_or(Now()), Now() + time);
}

void NodeChannel::Distrust(const Status& why) {
  const bool told = unix_.retry_at && *unix_.retry_at - Now() > kSocketRetryAfter;
  AvoidSocketFor(kDistrustedFor);
  unix_.idle.clear();
  if (told) return;
  LogWarning("{}: {}; using TCP for its objects instead", Name(), MessageOf(why));
}

Status NodeChannel::CheckDescriptor(int descriptor, const FrameSocket& socket, bool write) {
  MOSA_ASSIGN_OR_RETURN(const uid_t owner, TrustedPeer(socket.fd()));
  const SystemMutexLock lock(mutex_);
  const auto device = CheckObjectDescriptor(
      descriptor, {.owner = owner, .write = write, .device = objects_device_});
  if (device.ok()) {
    objects_device_ = *device;
  } else {
    objects_device_.reset();  // The node may have restarted on another file system.
    Distrust(device.status());
  }
  return device.status();
}

Status StatusOf(const v1::BulkReply& reply, const std::string& node_name) {
  if (reply.code() == 0) return OkStatus();
  const bool known =
      reply.code() > 0 && reply.code() <= static_cast<int>(StatusCode::kUnauthenticated);
  const Status status(known ? static_cast<StatusCode>(reply.code()) : StatusCode::kInternal,
                      fmt::format("{}: {}", node_name, reply.message()));
  const bool meant = reply.reason() <= static_cast<uint32_t>(kErrorReasonLast);
  return WithReason(status, meant ? static_cast<ErrorReason>(reply.reason()) : ErrorReason::kNone);
}

}  // namespace mosa::sai
