#include "client-sai/api/node_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/socket_address.h"
#include "proto/convert/status.h"

namespace mosa::sai {
namespace {

constexpr Duration kLocalRetryAfter = Seconds(1);

Time Now() { return SystemClock().Monotonic(); }

Status FinishConnect(int socket, Duration wait) {
  pollfd event{.fd = socket, .events = POLLOUT, .revents = 0};
  const int ready = ::poll(&event, 1, static_cast<int>(wait.ns / 1'000'000));
  if (ready == 0) {
    return UnavailableError(fmt::format("no connection within {} ms", wait.ns / 1'000'000));
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (ready < 0 || ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? OkStatus() : ErrnoStatus(error, "cannot connect");
}

// Connects without waiting longer than `wait`; the socket blocks afterwards.
Result<UniqueFd> Connect(const sockaddr* address, socklen_t size, Duration wait) {
  UniqueFd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return ErrnoStatus(errno, "cannot make a socket");
  if (::connect(socket.get(), address, size) != 0) {
    if (errno != EINPROGRESS) return ErrnoStatus(errno, "cannot connect");
    MOSA_RETURN_IF_ERROR(FinishConnect(socket.get(), wait));
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    return ErrnoStatus(errno, "cannot make a socket wait");
  return socket;
}

Result<UniqueFd> ConnectTcp(const std::string& text, Duration wait) {
  MOSA_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(text));
  MOSA_ASSIGN_OR_RETURN(UniqueFd socket, Connect(address.get(), address.size(), wait));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

Status Unreachable(const std::string& name, const Status& why) {
  return UnavailableError(fmt::format("{}: {}", name, MessageOf(why)));
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

void NodeChannel::SetState(NodeState state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  if (CheckState().ok()) return;
  idle_.clear();
  for (FrameSocket* socket : busy_) socket->Shutdown();
  released_.notify_all();
}

Status NodeChannel::CheckState() const {
  if (state_ == NodeState::kLive || state_ == NodeState::kDraining) return OkStatus();
  return UnavailableError(
      fmt::format("{} is {}", Name(), state_ == NodeState::kSilent ? "silent" : "lost"));
}

Result<std::unique_ptr<FrameSocket>> NodeChannel::Acquire(bool fresh, Time deadline) {
  std::unique_lock lock(mutex_);
  while (true) {
    MOSA_RETURN_IF_ERROR(CheckState());
    while (!fresh && !idle_.empty()) {
      std::unique_ptr<FrameSocket> socket = std::move(idle_.back());
      idle_.pop_back();
      if (socket->IsStale()) continue;
      busy_.insert(socket.get());
      return socket;
    }
    if (fresh) idle_.clear();  // If one has broken, so probably have the others.
    if (busy_.size() + connecting_ < options_.connections_max) break;
    const Duration left = deadline - Now();
    if (left.ns <= 0 ||
        released_.wait_for(lock, std::chrono::nanoseconds(left.ns)) == std::cv_status::timeout) {
      return DeadlineExceededError(
          fmt::format("{}: all {} connections were in use until the "
                      "deadline",
                      Name(), options_.connections_max));
    }
  }
  ++connecting_;
  lock.unlock();
  Result<UniqueFd> connected =
      ConnectTcp(address_.address, std::min(options_.connect_wait, deadline - Now()));
  lock.lock();
  --connecting_;
  if (!connected.ok()) {
    released_.notify_one();
    return Unreachable(Name(), connected.status());
  }
  auto socket = std::make_unique<FrameSocket>(*std::move(connected));
  busy_.insert(socket.get());
  return socket;
}

void NodeChannel::Release(std::unique_ptr<FrameSocket> socket, bool usable) {
  const std::lock_guard lock(mutex_);
  busy_.erase(socket.get());
  if (usable && CheckState().ok()) idle_.push_back(std::move(socket));
  released_.notify_one();
}

Status NodeChannel::Run(const Exchange& exchange, bool repeatable, Time deadline) {
  Status status;
  for (int attempt = 0; attempt < (repeatable ? 2 : 1); ++attempt) {
    MOSA_ASSIGN_OR_RETURN(std::unique_ptr<FrameSocket> socket,
                          Acquire(/*fresh=*/attempt > 0, deadline));
    status = exchange(*socket);
    Release(std::move(socket), status.ok());
    if (status.code() != StatusCode::kUnavailable) break;
  }
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("{}: {}", Name(), MessageOf(status)));
}

// ---- the Unix socket

Status NodeChannel::ConnectSocket() {
  if (local_ != nullptr && !local_->IsStale()) return OkStatus();
  local_ = nullptr;
  if (local_failed_at_ && Now() - *local_failed_at_ < kLocalRetryAfter) {
    return UnavailableError(
        fmt::format("{}: its socket {} could not be reached", Name(), address_.socket_path));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  Status why = InvalidArgumentError("the path is empty or too long");
  if (!address_.socket_path.empty() && address_.socket_path.size() < sizeof address.sun_path) {
    std::memcpy(address.sun_path, address_.socket_path.data(), address_.socket_path.size());
    Result<UniqueFd> connected =
        Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address, options_.connect_wait);
    if (connected.ok()) {
      local_ = std::make_unique<FrameSocket>(*std::move(connected));
      local_failed_at_.reset();
      return OkStatus();
    }
    why = connected.status();
  }
  local_failed_at_ = Now();
  return UnavailableError(
      fmt::format("{}: its socket {}: {}", Name(), address_.socket_path, MessageOf(why)));
}

bool NodeChannel::CanReachSocket() {
  {
    const std::lock_guard lock(mutex_);
    if (!CheckState().ok()) return false;
  }
  const std::lock_guard lock(local_mutex_);
  return ConnectSocket().ok();
}

Result<v1::BulkReply> NodeChannel::CallLocal(v1::BulkRequest request, UniqueFd* descriptor,
                                             Time deadline) {
  {
    const std::lock_guard lock(mutex_);
    MOSA_RETURN_IF_ERROR(CheckState());
  }
  const std::lock_guard lock(local_mutex_);
  MOSA_RETURN_IF_ERROR(ConnectSocket());
  request.set_id(++last_local_id_);
  v1::BulkReply reply;
  Status status = local_->SendFrame(request, {}, deadline);
  if (status.ok()) status = local_->ReceiveStart(reply, deadline, descriptor).status();
  // An answer to nothing is the node's way to turn a connection away.
  if (status.ok() && reply.id() != request.id()) status = StatusOf(reply, Name());
  if (status.ok() && reply.id() != request.id())
    status = InternalError("the node answered another request");
  if (!status.ok()) {
    local_ = nullptr;
    return Unreachable(Name(), status);
  }
  return reply;
}

Status StatusOf(const v1::BulkReply& reply, const std::string& node_name) {
  if (reply.code() == 0) return OkStatus();
  const bool known =
      reply.code() > 0 && reply.code() <= static_cast<int>(StatusCode::kUnauthenticated);
  const Status status(known ? static_cast<StatusCode>(reply.code()) : StatusCode::kInternal,
                      fmt::format("{}: {}", node_name, reply.message()));
  const bool meant = reply.reason() <= static_cast<uint32_t>(ErrorReason::kTimedOut);
  return WithReason(status, meant ? static_cast<ErrorReason>(reply.reason()) : ErrorReason::kNone);
}

}  // namespace mosa::sai
