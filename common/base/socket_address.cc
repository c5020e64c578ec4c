#include "common/base/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "common/base/errno_status.h"

namespace mosa {

Result<SocketAddress> ResolveAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  std::string_view host;
  bool readable = colon != std::string_view::npos && colon > 0;
  if (readable) {
    host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    readable = error == std::errc{} && end == digits.data() + digits.size();
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    } else {
      readable = readable && host.find(':') == std::string_view::npos;
    }
  }
  if (!readable) {
    return InvalidArgumentError(fmt::format(
        "'{}' is not an address: write HOST:PORT, like 127.0.0.1:7000 or [::1]:7000", text));
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(std::string(host).c_str(), fmt::format("{}", port).c_str(), &hints, &found);
  if (error != 0) {
    return UnavailableError(
        fmt::format("cannot resolve the host of address '{}': {}", text, ::gai_strerror(error)));
  }
  SocketAddress address;
  std::memcpy(&address.storage_, found->ai_addr, found->ai_addrlen);
  address.size_ = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

bool SocketAddress::IsLoopback() const {
  if (family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

std::string SocketAddress::ToText() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    ::inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    return fmt::format("{}:{}", host, ntohs(v4->sin_port));
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
  ::inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
  return fmt::format("[{}]:{}", host, ntohs(v6->sin6_port));
}

Result<std::string> LocalAddress(int socket) {
  SocketAddress address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_) != 0)
    return ErrnoStatus(errno, "cannot read the socket's address");
  return address.ToText();
}

Result<std::string> PeerAddress(int socket) {
  SocketAddress address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_) != 0)
    return ErrnoStatus(errno, "cannot read the peer's address");
  return address.ToText();
}

}  // namespace mosa
