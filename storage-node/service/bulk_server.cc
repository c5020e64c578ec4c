#include "storage-node/service/bulk_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/mutex.h"
#include "common/base/socket_address.h"
#include "common/base/tcp_options.h"

namespace mosa::node {
namespace {

constexpr int kBacklog = 1024;
// Maximum number of connections accepted before others are served.
constexpr int kAcceptedAtOnce = 64;
constexpr std::chrono::seconds kWorkerRest{10};

// Identifiers returned by epoll; connections are numbered from 1.
constexpr uint64_t kTcpListener = UINT64_MAX;
constexpr uint64_t kUnixListener = UINT64_MAX - 1;
constexpr uint64_t kStop = UINT64_MAX - 2;

// A peer that has gone must not end the process: neither sendfile nor OpenSSL can be told to raise
// no SIGPIPE, which goes to the thread that writes.
void BlockBrokenPipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// Returns how many connections the process has descriptors for after raising the soft limit: half
// of them, since objects need some too.
size_t ConnectionsAffordable() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit most{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &most) == 0) limit = most;
  }
  return static_cast<size_t>(limit.rlim_cur) / 2;
}

BulkServerOptions Affordable(BulkServerOptions options) {
  ConnectionLimits& limits = options.limits;
  const size_t affordable = ConnectionsAffordable();
  limits.unproven_max = std::clamp<size_t>(affordable / 8, 1, limits.unproven_max);
  limits.proven_max = std::clamp<size_t>(affordable - affordable / 4, 1, limits.proven_max);
  return options;
}

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
  // Removes the socket of a killed node, and nothing else.
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

// If a client's machine fails, its connection ends within half a minute, idle or in the middle of
// an answer.
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

void SetBlocking(int socket, bool blocks) {
  const int flags = ::fcntl(socket, F_GETFL);
  ::fcntl(socket, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

// Returns the account of a connection and its buffers. All copying nodes have the same client id.
std::string AccountOf(ClientId client, const std::string& host) {
  return client == kNodeClient ? fmt::format("the node at {}", host)
                               : fmt::format("client {:016x}", client.value);
}

}  // namespace

BulkServer::BulkServer(BulkServerOptions options, ObjectEngine& engine, const AccessGate& gate,
                       const Copier& copier)
    : options_(Affordable(std::move(options))),
      engine_(engine),
      gate_(gate),
      copier_(copier),
      book_(options_.limits) {}

Result<std::unique_ptr<BulkServer>> BulkServer::Start(const BulkServerOptions& options,
                                                      ObjectEngine& engine, const AccessGate& gate,
                                                      const Copier& copier) {
  std::unique_ptr<BulkServer> server(new BulkServer(options, engine, gate, copier));
  MOSA_RETURN_IF_ERROR(server->Listen());
  {
    const SystemMutexLock lock(server->mutex_);
    server->Publish();
  }
  server->loop_ = std::thread([raw = server.get()] { raw->Loop(); });
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
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  const auto add = [this](const UniqueFd& fd, uint64_t name) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = name}};
    return fd && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0;
  };
  if (!epoll_ || !add(stop_event_, kStop) || !add(tcp_, kTcpListener) || !add(unix_, kUnixListener))
    return ErrnoStatus(errno, "cannot create an event descriptor");
  return OkStatus();
}

BulkServer::~BulkServer() {
  {
    const SystemMutexLock lock(mutex_);
    stopping_ = true;
    work_.notify_all();
  }
  if (loop_.joinable()) {
    const uint64_t one = 1;
    MOSA_CHECK(::write(stop_event_.get(), &one, sizeof one) == sizeof one);
    loop_.join();
  }
  SystemMutexLock lock(mutex_);
  for (const auto& [id, connection] : connections_)
    if (connection->served != nullptr) connection->served->Shutdown();
  std::map<uint64_t, std::thread> workers = std::move(workers_);
  workers_.clear();
  lock.unlock();
  for (auto& [number, thread] : workers) thread.join();
  for (std::thread& thread : ended_workers_) thread.join();
  if (unix_) ::unlink(options_.socket_path.c_str());
}

// ---- the loop

void BulkServer::Loop() {
  BlockBrokenPipes();
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), NextTimeout());
    for (int i = 0; i < count; ++i) {
      const uint64_t name = events[static_cast<size_t>(i)].data.u64;
      if (name == kStop) return;
      if (name == kTcpListener) {
        Accept(tcp_.get(), /*is_unix=*/false);
      } else if (name == kUnixListener) {
        Accept(unix_.get(), /*is_unix=*/true);
      } else {
        OnReadable({name});
      }
    }
    CloseExpired();
  }
}

int BulkServer::NextTimeout() const {
  const SystemMutexLock lock(mutex_);
  const auto at = book_.next_expiry();
  if (!at) return 1000;
  const int64_t left_ms = (*at - clock_.Monotonic()).ns / 1'000'000 + 1;
  return static_cast<int>(std::clamp<int64_t>(left_ms, 0, 1000));
}

void BulkServer::Accept(int listener, bool is_unix) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
      const SystemMutexLock lock(mutex_);
      warnings_.Warning("{}", MessageOf(ErrnoStatus(errno, "cannot accept a connection")));
      const auto spared = book_.Spare();
      if (!spared) return;
      Close(*spared);
      continue;
    }
    auto connection = std::make_shared<Connection>();
    connection->is_unix = is_unix;
    connection->peer = "the Unix socket";
    connection->host = "this host";
    if (!is_unix) {
      TuneTcp(socket.get());
      connection->peer = PeerAddress(socket.get()).value_or("a peer that has gone");
      connection->host = connection->peer.substr(0, connection->peer.rfind(':'));
    }
    connection->fd = socket.get();
    connection->socket = FrameSocket(std::move(socket));
    connection->door = std::make_unique<BulkDoor>(gate_, options_.node_name);
    if (!is_unix && gate_.bulk_tls()) {
      SetBlocking(connection->fd, false);
      connection->socket.UseTls(TlsStream::Server(
          connection->fd,
          [this](ClientId client, uint64_t era) { return gate_.BulkKeyFor(client, era); }));
    }
    const SystemMutexLock lock(mutex_);
    std::optional<ConnectionId> displaced;
    connection->id = book_.Accept(connection->host, clock_.Monotonic(), displaced);
    connections_[connection->id] = connection;
    if (displaced) {
      warnings_.Warning(
          "{} connections are not authenticated, which is the limit; the last one is from {}",
          options_.limits.unproven_max, connection->peer);
      connections_.erase(*displaced);  // Not the new one, which is the newest.
    }
    epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = connection->id.value}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd, &event) != 0)
      Close(connection->id);
  }
}

void BulkServer::OnReadable(ConnectionId id) {
  ConnectionRef connection;
  bool is_parting = false;
  {
    const SystemMutexLock lock(mutex_);
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    connection = found->second;
    is_parting = book_.IsParting(id);
    if (!is_parting && connection->served != nullptr) {
      book_.Queue(id);
      return Dispatch();
    }
  }
  is_parting ? Drain(connection) : OnDoor(connection);
}

void BulkServer::OnDoor(const ConnectionRef& connection) {
  const Result<bool> proved = connection->door->Advance(connection->socket);
  const SystemMutexLock lock(mutex_);
  if (!connections_.contains(connection->id)) return;
  if (proved.ok() && *proved) return LetIn(connection);
  if (proved.ok()) {
    if (!Arm(*connection)) Close(connection->id);
    return;
  }
  if (MessageOf(proved.status()).empty()) return Close(connection->id);
  SendAway(connection->id, proved.status());
}

// Discards what a parting peer sends: it was told that no more requests are carried out.
void BulkServer::Drain(const ConnectionRef& connection) {
  std::array<char, 16 * 1024> sink{};
  const ssize_t n = ::recv(connection->fd, sink.data(), sink.size(), MSG_DONTWAIT);
  const bool has_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  const SystemMutexLock lock(mutex_);
  if (!connections_.contains(connection->id)) return;
  if (has_ended || !Arm(*connection)) Close(connection->id);
}

void BulkServer::CloseExpired() {
  std::list<std::thread> ended;
  {
    const SystemMutexLock lock(mutex_);
    for (const ConnectionId id : book_.Expired(clock_.Monotonic())) {
      const std::optional<Status> lacked =
          std::exchange(connections_.at(id)->lacks_place, std::nullopt);
      lacked ? SendAway(id, *lacked) : Close(id);
    }
    ended.swap(ended_workers_);
    Publish();
  }
  for (std::thread& thread : ended) thread.join();
}

// ---- the loop and the pool

void BulkServer::LetIn(const ConnectionRef& connection) {
  const ClientId client = connection->door->client();
  const std::string account = AccountOf(client, connection->host);
  std::vector<ConnectionId> parting;
  const Status status = book_.Prove(connection->id, account, parting, clock_.Monotonic());
  for (const ConnectionId id : parting)
    SendAway(id, UnavailableError("the node has closed the connection: it was idle, and another "
                                  "one needed its place"));
  if (status.code() == StatusCode::kUnavailable) {
    connection->lacks_place = status;
    at_the_door_.push_back(connection->id);
    return Review();
  }
  if (!status.ok()) return SendAway(connection->id, status);
  connection->lacks_place.reset();
  if (connection->socket.tls() != nullptr) SetBlocking(connection->fd, true);
  connection->served = std::make_unique<BulkConnection>(
      std::move(connection->socket),
      BulkConnectionOptions{.passes_descriptors = connection->is_unix,
                            .peer = connection->peer,
                            .peer_host = connection->host,
                            .client = client,
                            .account = account},
      engine_, gate_, copier_, closings_);
  connection->door = nullptr;
  Await(*connection);
  Publish();
}

void BulkServer::LetInWaiting() {
  for (size_t i = at_the_door_.size(); i > 0; --i) {
    const auto found = connections_.find(at_the_door_.front());
    at_the_door_.pop_front();
    if (found == connections_.end() || !found->second->lacks_place) continue;
    LetIn(found->second);
  }
  Review();
}

void BulkServer::Review() {
  const bool lacks_threads =
      book_.queued() > resting_ && workers_.size() >= options_.limits.threads_max;
  others_wait_ = lacks_threads || !at_the_door_.empty();
}

bool BulkServer::Arm(const Connection& connection) {
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = connection.id.value}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd, &event) == 0;
}

void BulkServer::Await(const Connection& connection) {
  const TlsStream* const tls = connection.served->socket().tls();
  if (tls != nullptr && tls->has_pending()) {  // The socket itself may have nothing more to read.
    book_.Queue(connection.id);
    Dispatch();
  } else if (!Arm(connection)) {
    Close(connection.id);
  }
}

void BulkServer::Close(ConnectionId id) {
  if (connections_.erase(id) > 0) book_.Remove(id);
}

void BulkServer::SendAway(ConnectionId id, const Status& why) {
  const ConnectionRef connection = connections_.at(id);
  if (connection->served == nullptr) {
    book_.CountTurnedAway();
    warnings_.Warning("a connection from {} was refused: {}", connection->peer, MessageOf(why));
  }
  // The lock is held, so never wait for a peer that does not read.
  SetBlocking(connection->fd, false);
  SayGoodbye(connection->served != nullptr ? connection->served->socket() : connection->socket,
             why);
  book_.Part(id, clock_.Monotonic());
  if (!Arm(*connection)) Close(id);
}

void BulkServer::Publish() {
  BulkGauges& gauges = engine_.residence().bulk;
  const ConnectionLimits& limits = book_.limits();
  gauges.connections = book_.proven();
  gauges.connections_max = limits.proven_max;
  gauges.unproven = book_.unproven();
  gauges.unproven_max = limits.unproven_max;
  gauges.threads = book_.served();
  gauges.threads_max = limits.threads_max;
  gauges.turned_away = book_.turned_away();
}

// ---- the pool

void BulkServer::Dispatch() {
  // Each resting worker takes one connection; beyond that, start a thread.
  if (resting_ >= book_.queued()) {
    work_.notify_one();
  } else if (workers_.size() < options_.limits.threads_max && !stopping_) {
    const uint64_t worker = ++last_worker_;
    try {
      workers_.emplace(worker, std::thread([this, worker] { Work(worker); }));
    } catch (const std::system_error& error) {
      warnings_.Warning("{} threads serve connections, and no other one can be started: {}",
                        workers_.size(), error.what());
    }
  }
  Review();
}

void BulkServer::Work(uint64_t worker) {
  BlockBrokenPipes();
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(kBulkScratchBytes);
  SystemMutexLock lock(mutex_);
  bool ends = false;
  while (!stopping_ && !ends) {
    const std::optional<ConnectionId> id = book_.Next();
    if (!id) {
      Rest(lock, ends);
      continue;
    }
    const ConnectionRef connection = connections_.at(*id);
    lock.unlock();
    const bool goes_on =
        connection->served->Serve({scratch.get(), kBulkScratchBytes}, others_wait_);
    lock.lock();
    if (goes_on) {
      book_.Idle(*id);
      Await(*connection);
    } else {
      Close(*id);
    }
    LetInWaiting();
  }
  const auto self = workers_.find(worker);
  if (self == workers_.end()) return;  // The destructor joins it.
  ended_workers_.push_back(std::move(self->second));
  workers_.erase(self);
}

void BulkServer::Rest(SystemMutexLock& lock, bool& ends) {
  ++resting_;
  Review();
  ends = !work_.wait_for(lock, kWorkerRest, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || book_.queued() > 0;
  });
  --resting_;
}

}  // namespace mosa::node
