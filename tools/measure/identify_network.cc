#include "tools/measure/identify_network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"
#include "common/base/tcp_options.h"
#include "common/base/time.h"

namespace mosa::cli {
namespace {

constexpr size_t kSentAtOnceBytes = 256 << 10;
constexpr int kConnectMs = 2000;
constexpr timeval kSilence{10, 0};  // Limit of waiting for the other side.
constexpr int kServedMax = 64;      // Concurrent connections of one receiver;
constexpr int kStrangersMax = 8;    // those of them that have not sent the token.
constexpr Duration kStrangeMax = Seconds(1);
constexpr uint64_t kPing = 0;  // Sent instead of a number of bytes.

// What a sender says first, after the token.
struct Header {
  uint64_t bytes = kPing;
  uint64_t warm_bytes = 0;  // The first part of these, which is not counted.
  int64_t counted_ns = 0;   // How long the rest is counted; 0: to the end.
};

bool SendWhole(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  for (size_t sent = 0; sent < size;) {
    const ssize_t bytes = send(fd, at + sent, size - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    sent += static_cast<size_t>(bytes);
  }
  return true;
}

bool ReceiveWhole(int fd, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  for (size_t have = 0; have < size;) {
    const ssize_t bytes = recv(fd, at + have, size - have, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    have += static_cast<size_t>(bytes);
  }
  return true;
}

// Receives all of it within kStrangeMax.
bool ReceiveSoon(int fd, char* at, size_t size) {
  const SystemClock clock;
  const Time until = clock.Monotonic() + kStrangeMax;
  for (size_t have = 0; have < size;) {
    const int64_t left_ms = (until - clock.Monotonic()).ns / 1'000'000;
    pollfd wait{fd, POLLIN, 0};
    if (left_ms <= 0 || poll(&wait, 1, static_cast<int>(left_ms)) == 0) return false;
    const ssize_t bytes = recv(fd, at + have, size - have, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes <= 0) return false;
    have += static_cast<size_t>(bytes);
  }
  return true;
}

void Prepare(int fd) {
  constexpr int kOn = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kSilence, sizeof kSilence);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSilence, sizeof kSilence);
}

UniqueFd ConnectTo(const std::string& address, uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), fmt::format("{}", port).c_str(), &wanted, &found) != 0)
    return {};
  UniqueFd connected;
  for (const addrinfo* each = found; each != nullptr && !connected; each = each->ai_next) {
    UniqueFd fd(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) continue;
    // Like the store's own connections: the sender's congestion control decides how full queues on
    // the way get.
    TuneBulkTcp(fd.get());
    int error = connect(fd.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd wait{fd.get(), POLLOUT, 0};
      socklen_t size = sizeof error;
      if (poll(&wait, 1, kConnectMs) != 1 ||
          getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = ETIMEDOUT;
    }
    if (error != 0) continue;
    int non_blocking = 0;
    ioctl(fd.get(), FIONBIO, &non_blocking);
    connected = std::move(fd);
  }
  freeaddrinfo(found);
  return connected;
}

// Connects to a receiver that knows the token, as it proves by sending it back.
Result<UniqueFd> Connect(const StreamTarget& target) {
  for (const std::string& address : target.addresses) {
    UniqueFd fd = ConnectTo(address, target.port);
    if (!fd) continue;
    Prepare(fd.get());
    std::string echo(target.token.size(), '\0');
    if (SendWhole(fd.get(), target.token.data(), target.token.size()) &&
        ReceiveWhole(fd.get(), echo.data(), echo.size()) && echo == target.token)
      return fd;
  }
  return UnavailableError(
      fmt::format("cannot reach port {} on any of {}: open all ports between the hosts",
                  target.port, fmt::join(target.addresses, ", ")));
}

Result<StreamSpan> StreamOnce(const StreamTarget& target, const Header& header) {
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, Connect(target));
  const std::vector<char> block(kSentAtOnceBytes, 'm');
  bool sent = SendWhole(fd.get(), &header, sizeof header);
  for (uint64_t done = 0; sent && done < header.bytes; done += block.size())
    sent = SendWhole(fd.get(), block.data(), std::min<uint64_t>(block.size(), header.bytes - done));
  StreamSpan span;
  if (!sent || !ReceiveWhole(fd.get(), &span, sizeof span))
    return UnavailableError("a stream to another host broke off");
  return span;
}

Result<std::vector<StreamSpan>> StreamAtOnce(const std::vector<StreamTarget>& targets,
                                             const Header& header, uint32_t connections) {
  std::vector<Result<StreamSpan>> results(targets.size() * connections,
                                          Result<StreamSpan>(StreamSpan{}));
  const auto stream = [&](size_t i) {
    results[i] = StreamOnce(targets[i % targets.size()], header);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < results.size(); ++i) threads.emplace_back(stream, i);
  stream(0);
  for (std::thread& thread : threads) thread.join();
  std::vector<StreamSpan> spans;
  for (const Result<StreamSpan>& result : results) {
    if (!result.ok()) return result.status();
    spans.push_back(*result);
  }
  return spans;
}

}  // namespace

void StreamSpan::Join(const StreamSpan& other) {
  begin_ns = bytes == 0 ? other.begin_ns : std::min(begin_ns, other.begin_ns);
  end_ns = std::max(end_ns, other.end_ns);
  bytes += other.bytes;
}

double StreamSpan::BytesPerSecond() const {
  const int64_t ns = std::max<int64_t>(1, end_ns - begin_ns);
  return static_cast<double>(bytes) * 1e9 / static_cast<double>(ns);
}

StreamReceiver::StreamReceiver(UniqueFd listener, uint16_t port, std::string token)
    : listener_(std::move(listener)),
      port_(port),
      token_(std::move(token)),
      accepting_([this] { Accept(); }) {}

Result<std::unique_ptr<StreamReceiver>> StreamReceiver::Open(const std::string& address,
                                                             std::string token) {
  sockaddr_in own4{};
  own4.sin_family = AF_INET;
  sockaddr_in6 own6{};
  own6.sin6_family = AF_INET6;
  const bool is4 = inet_pton(AF_INET, address.c_str(), &own4.sin_addr) == 1;
  if (!is4 && inet_pton(AF_INET6, address.c_str(), &own6.sin6_addr) != 1)
    return InvalidArgumentError(fmt::format("'{}' is not an address to listen on", address));
  sockaddr* const own =
      is4 ? reinterpret_cast<sockaddr*>(&own4) : reinterpret_cast<sockaddr*>(&own6);
  socklen_t size = is4 ? sizeof own4 : sizeof own6;
  UniqueFd fd(socket(own->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || bind(fd.get(), own, size) != 0 || listen(fd.get(), kServedMax) != 0 ||
      getsockname(fd.get(), own, &size) != 0)
    return UnavailableError(fmt::format("cannot listen on {}: {}", address, strerror(errno)));
  const uint16_t port = ntohs(is4 ? own4.sin_port : own6.sin6_port);
  return std::unique_ptr<StreamReceiver>(new StreamReceiver(std::move(fd), port, std::move(token)));
}

StreamReceiver::~StreamReceiver() {
  ending_ = true;
  shutdown(listener_.get(), SHUT_RDWR);
  accepting_.join();
  for (Serving& each : serving_) shutdown(each.connection.get(), SHUT_RDWR);
  for (Serving& each : serving_) each.thread.join();
}

// Removes ended connections first.
bool StreamReceiver::HasRoom() {
  int strangers = 0;
  for (auto each = serving_.begin(); each != serving_.end();) {
    if (each->ended) {
      each->thread.join();
      each = serving_.erase(each);
      continue;
    }
    strangers += each->strange ? 1 : 0;
    ++each;
  }
  return strangers < kStrangersMax && serving_.size() < size_t{kServedMax};
}

void StreamReceiver::Accept() {
  while (!ending_) {
    UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (!HasRoom()) continue;
    Serving& serving = serving_.emplace_back();
    serving.connection = std::move(connection);
    serving.thread = std::thread([this, &serving] {
      Serve(serving);
      shutdown(serving.connection.get(), SHUT_RDWR);
      serving.ended = true;
    });
  }
}

void StreamReceiver::Serve(Serving& serving) const {
  const int fd = serving.connection.get();
  Prepare(fd);
  std::string said(token_.size(), '\0');
  if (!ReceiveSoon(fd, said.data(), said.size()) || said != token_) return;
  serving.strange = false;
  Header header;
  if (!SendWhole(fd, said.data(), said.size()) || !ReceiveWhole(fd, &header, sizeof header)) return;
  char byte = 0;
  if (header.bytes == kPing) {
    while (!ending_ && ReceiveWhole(fd, &byte, 1) && SendWhole(fd, &byte, 1)) {
    }
    return;
  }
  const SystemClock clock;
  std::vector<char> block(kSentAtOnceBytes);
  uint64_t done = 0, counted_from = 0;
  Time begin = clock.Monotonic();
  StreamSpan span;  // Once it is known.
  while (done < header.bytes && !ending_) {
    const ssize_t bytes = recv(fd, block.data(), block.size(), 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return;
    done += static_cast<uint64_t>(bytes);
    if (counted_from != 0 || done < header.warm_bytes) {
      const int64_t now_ns = header.counted_ns > 0 ? clock.Monotonic().ns : 0;
      if (header.counted_ns > 0 && span.end_ns == 0 && now_ns - begin.ns >= header.counted_ns)
        span = {done - counted_from, begin.ns, now_ns};
      continue;
    }
    counted_from = done;
    begin = clock.Monotonic();
  }
  if (span.end_ns == 0) span = {done - counted_from, begin.ns, clock.Monotonic().ns};
  SendWhole(fd, &span, sizeof span);
}

Result<StreamSpan> SendStreams(const StreamTarget& target, uint64_t bytes, uint64_t warm_bytes,
                               uint32_t connections) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StreamSpan> spans,
                        StreamAtOnce({target}, {bytes, warm_bytes}, connections));
  StreamSpan all;
  for (const StreamSpan& span : spans) all.Join(span);
  return all;
}

Result<std::vector<StreamSpan>> SendStreamsApart(const std::vector<StreamTarget>& targets,
                                                 uint64_t bytes, Duration counted,
                                                 uint32_t connections) {
  return StreamAtOnce(targets, {bytes, 0, counted.ns}, connections);
}

Result<double> RoundTripSeconds(const StreamTarget& target, uint32_t count, bool under_stream) {
  MOSA_ASSIGN_OR_RETURN(const UniqueFd ping, Connect(target));
  const Header header;
  if (!SendWhole(ping.get(), &header, sizeof header))
    return UnavailableError("a connection to another host broke off");
  UniqueFd stream;
  std::thread streaming;
  if (under_stream) {
    MOSA_ASSIGN_OR_RETURN(stream, Connect(target));
    streaming = std::thread([&stream] {
      const Header endless{uint64_t{1} << 62, 0};
      const std::vector<char> block(kSentAtOnceBytes, 'm');
      bool sent = SendWhole(stream.get(), &endless, sizeof endless);
      while (sent) sent = SendWhole(stream.get(), block.data(), block.size());
    });
    poll(nullptr, 0, 400);  // Until queues are as full as they get.
  }
  const SystemClock clock;
  const Time begin = clock.Monotonic();
  bool good = true;
  for (uint32_t i = 0; i < count && good; ++i) {
    char byte = 'p';
    good = SendWhole(ping.get(), &byte, 1) && ReceiveWhole(ping.get(), &byte, 1);
  }
  const Duration taken = clock.Monotonic() - begin;
  if (streaming.joinable()) {
    shutdown(stream.get(), SHUT_RDWR);
    streaming.join();
  }
  if (!good) return UnavailableError("a connection to another host broke off");
  return static_cast<double>(taken.ns) / 1e9 / count;
}

std::string AddressTowards(const std::string& peer) {
  constexpr const char* kLoopback = "127.0.0.1";
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (peer.empty() || getaddrinfo(peer.c_str(), "9", &wanted, &found) != 0) return kLoopback;
  // Sends no byte: the kernel only looks up the route.
  const UniqueFd fd(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char text[NI_MAXHOST] = "";
  if (!fd || connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0)
    text[0] = '\0';
  freeaddrinfo(found);
  return text[0] != '\0' ? text : kLoopback;
}

}  // namespace mosa::cli
