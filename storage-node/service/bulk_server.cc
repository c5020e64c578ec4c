#include "storage-node/service/bulk_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/log.h"
#include "common/base/socket_address.h"
#include "common/base/tcp_options.h"

namespace mosa::node {
namespace {

constexpr int kBacklog = 128;

Result<UniqueFd> ListenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return InvalidArgumentError(
        fmt::format("the socket path {} has {} bytes, at most {} can be "
                    "used",
                    path, path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  // What a killed node has left. Nothing else is removed.
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The mode is set before the name exists, so that nobody can connect in between.
  if (!fd || ::fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot listen on the socket {}", path));
  }
  return fd;
}

// A client whose machine is gone says nothing: its connection ends within half a minute, be it idle
// or in the middle of an answer.
void TuneTcp(int socket) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 25'000);
}

// Answers the one connection too many, without a thread.
void TurnAway(UniqueFd socket, size_t connections_max) {
  v1::BulkReply reply;
  reply.set_code(static_cast<int>(StatusCode::kUnavailable));
  reply.set_message(
      fmt::format("the node serves {} connections already, its limit; close idle "
                  "ones and try again",
                  connections_max));
  const std::string frame = EncodeFrameStart(reply, 0);
  // A new connection's buffer has room for this; if not, closing says it too.
  [[maybe_unused]] const ssize_t sent =
      ::send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<std::unique_ptr<BulkServer>> BulkServer::Start(const BulkServerOptions& options,
                                                      ObjectEngine& engine, const AccessGate& gate,
                                                      const Copier& copier) {
  std::unique_ptr<BulkServer> server(new BulkServer(options, engine, gate, copier));
  MOSA_RETURN_IF_ERROR(server->Listen());
  server->acceptor_ = std::thread([raw = server.get()] { raw->AcceptLoop(); });
  return server;
}

Status BulkServer::Listen() {
  MOSA_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(options_.listen));
  tcp_ = UniqueFd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  TuneBulkTcp(tcp_.get());
  const int on = 1;
  if (!tcp_ || ::setsockopt(tcp_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(tcp_.get(), address.get(), address.size()) != 0 ||
      ::listen(tcp_.get(), kBacklog) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot listen on {}", options_.listen));
  }
  MOSA_ASSIGN_OR_RETURN(address_, LocalAddress(tcp_.get()));
  MOSA_ASSIGN_OR_RETURN(unix_, ListenUnix(options_.socket_path));
  stop_event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!stop_event_) return ErrnoStatus(errno, "cannot make an event descriptor");
  return OkStatus();
}

void BulkServer::AcceptLoop() {
  pollfd events[3] = {{.fd = tcp_.get(), .events = POLLIN, .revents = 0},
                      {.fd = unix_.get(), .events = POLLIN, .revents = 0},
                      {.fd = stop_event_.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (::poll(events, 3, -1) < 0) continue;  // EINTR.
    if (events[2].revents != 0) return;
    if (events[0].revents != 0) Accept(tcp_.get(), /*is_unix=*/false);
    if (events[1].revents != 0) Accept(unix_.get(), /*is_unix=*/true);
  }
}

void BulkServer::Accept(int listener, bool is_unix) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      LogError("{}", MessageOf(ErrnoStatus(errno, "cannot accept a connection")));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return;
  }
  Reap();
  if (served_.size() >= options_.connections_max) {
    LogWarning("a connection was turned away: the limit is {}", options_.connections_max);
    TurnAway(std::move(socket), options_.connections_max);
    return;
  }
  BulkConnectionOptions connection{
      .passes_descriptors = is_unix, .peer = "the Unix socket", .peer_host = "this host"};
  if (!is_unix) {
    TuneTcp(socket.get());
    connection.peer = PeerAddress(socket.get()).value_or("a peer that has gone");
    connection.peer_host = connection.peer.substr(0, connection.peer.rfind(':'));
  }
  Served& served = served_.emplace_back(std::make_unique<BulkConnection>(
      std::move(socket), std::move(connection), engine_, gate_, copier_));
  try {
    served.thread = std::thread([&served] {
      served.connection->Serve();
      served.connection->Shutdown();
      served.done = true;
    });
  } catch (const std::system_error& error) {
    LogError("a connection was closed, since no thread can be made to serve it: {}", error.what());
    served_.pop_back();
  }
}

// Joins the threads whose connections have ended; their sockets close here at the latest.
void BulkServer::Reap() {
  for (auto it = served_.begin(); it != served_.end();) {
    if (it->done) {
      it->thread.join();
      it = served_.erase(it);
    } else {
      ++it;
    }
  }
}

BulkServer::~BulkServer() {
  if (acceptor_.joinable()) {
    const uint64_t one = 1;
    MOSA_CHECK(::write(stop_event_.get(), &one, sizeof one) == sizeof one);
    acceptor_.join();
  }
  for (Served& served : served_) served.connection->Shutdown();
  for (Served& served : served_) served.thread.join();
  if (unix_) ::unlink(options_.socket_path.c_str());
}

}  // namespace mosa::node
