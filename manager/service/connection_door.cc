#include "manager/service/connection_door.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/socket_address.h"

namespace mosa::manager {
namespace {

constexpr int kBacklog = 1024;
constexpr int kAcceptedAtOnce = 64;
constexpr std::chrono::milliseconds kSweepEvery{1000};
// Used when there is no room, since a place may have become free.
constexpr std::chrono::milliseconds kSweepInNeedEvery{100};
constexpr std::chrono::milliseconds kWithoutDescriptorRest{100};
// As gRPC sets with keep-alives: a peer that does not acknowledge data for this long is gone.
constexpr int kUserTimeoutMs = 30'000;

ino_t InodeOf(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

// Returns what counts as one peer: an IPv4 address, or the /64 network of an IPv6 address, in
// bytes.
std::string HostOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return {reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  const std::string address(reinterpret_cast<const char*>(&v6.sin6_addr), sizeof v6.sin6_addr);
  return IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? address.substr(12) : address.substr(0, 8);
}

// Translates errno.
Status CannotListen(const std::string& listen) {
  if (errno == EADDRINUSE)
    return UnavailableError(fmt::format("cannot listen on {}: the port is in use", listen));
  if (errno == EADDRNOTAVAIL)
    return UnavailableError(
        fmt::format("cannot listen on {}: the address is not this host's", listen));
  return ErrnoStatus(errno, fmt::format("cannot listen on {}", listen));
}

bool Set(int socket, int level, int option, int value) {
  return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

}  // namespace

// ---- the book

void DoorBook::Add(int descriptor, Socket socket) {
  const auto [entry, is_new] = sockets_.try_emplace(descriptor);
  if (!is_new) Forget(entry->second.host);  // Closed since the last sweep.
  ++hosts_[socket.host];
  entry->second = std::move(socket);
}

void DoorBook::Forget(const std::string& host) {
  const auto found = hosts_.find(host);
  MOSA_CHECK(found != hosts_.end());
  if (--found->second == 0) hosts_.erase(found);
}

void DoorBook::Sweep() {
  for (auto entry = sockets_.begin(); entry != sockets_.end();) {
    const auto& [descriptor, socket] = *entry;
    if (InodeOf(descriptor) == socket.inode) {
      ++entry;
      continue;
    }
    Forget(socket.host);
    entry = sockets_.erase(entry);
  }
}

size_t DoorBook::most_of_one_address() const {
  size_t most = 0;
  for (const auto& [host, count] : hosts_) most = std::max(most, count);
  return most;
}

// ---- the door

Result<std::unique_ptr<ConnectionDoor>> ConnectionDoor::Open(const std::string& listen,
                                                             const DoorLimits& limits) {
  MOSA_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(listen));
  UniqueFd listener(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Accepted sockets inherit these options.
  if (!listener || !Set(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1) ||
      !Set(listener.get(), IPPROTO_TCP, TCP_NODELAY, 1) ||
      !Set(listener.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs) ||
      ::bind(listener.get(), address.get(), address.size()) != 0 ||
      ::listen(listener.get(), kBacklog) != 0)
    return CannotListen(listen);
  MOSA_ASSIGN_OR_RETURN(const std::string bound, LocalAddress(listener.get()));
  std::string named = listen.substr(0, listen.rfind(':')) + bound.substr(bound.rfind(':'));
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) return ErrnoStatus(errno, "cannot create an event descriptor");
  return std::unique_ptr<ConnectionDoor>(
      new ConnectionDoor(limits, std::move(listener), std::move(stop), std::move(named)));
}

void ConnectionDoor::Serve(std::unique_ptr<Acceptor> acceptor) {
  acceptor_ = std::move(acceptor);
  thread_ = std::thread([this] { Loop(); });
}

void ConnectionDoor::Close() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    MOSA_CHECK(::write(stop_.get(), &one, sizeof one) == sizeof one);
    thread_.join();
  }
  listener_ = UniqueFd();
}

void ConnectionDoor::Loop() {
  std::array<pollfd, 2> waiting{{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
  while (true) {
    // Without a descriptor, a waiting caller would wake the poll again and again.
    const bool rests = std::exchange(lacks_descriptors_, false);
    const auto wait = rests ? kWithoutDescriptorRest : kSweepEvery;
    ::poll(waiting.data(), rests ? 1 : 2, static_cast<int>(wait.count()));
    if ((waiting[0].revents & POLLIN) != 0) return;
    for (int i = 0; i < kAcceptedAtOnce && AcceptOne(); ++i) continue;
    SweepIfDue(kSweepEvery);
  }
}

bool ConnectionDoor::AcceptOne() {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  UniqueFd socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    LetIn(std::move(socket), peer);
    return true;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  lacks_descriptors_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
  if (!lacks_descriptors_) return errno == EINTR || errno == ECONNABORTED;
  warnings_.Warning("{}; it waits until there is room",
                    MessageOf(ErrnoStatus(errno, "cannot accept a connection")));
  return false;
}

void ConnectionDoor::LetIn(UniqueFd socket, const sockaddr_storage& peer) {
  const std::string host = HostOf(peer);
  if (!book_.HasRoomFor(host)) SweepIfDue(kSweepInNeedEvery);
  if (!book_.HasRoomFor(host)) {
    ++turned_away_;
    warnings_.Warning(
        "a connection from {} was refused: {} of at most {} are open, and one address may have {}",
        PeerAddress(socket.get()).value_or("a peer that has gone"), book_.count(),
        limits_.connections_max, limits_.per_address_max);
    return;
  }
  book_.Add(socket.get(), {.inode = InodeOf(socket.get()), .host = host});
  connections_ = book_.count();
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = listener_.get();
  connection.fd = socket.release();
  acceptor_->HandleNewConnection(&connection);
}

void ConnectionDoor::SweepIfDue(std::chrono::milliseconds every) {
  const Clock::time_point now = Clock::now();
  if (now - swept_at_ < every) return;
  swept_at_ = now;
  book_.Sweep();
  connections_ = book_.count();
  most_of_one_address_ = book_.most_of_one_address();
}

}  // namespace mosa::manager
