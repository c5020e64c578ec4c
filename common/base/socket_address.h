// Converts between addresses as people write them ("host:port", "[::1]:port") and sockaddr.
#ifndef MOSA_COMMON_BASE_SOCKET_ADDRESS_H_
#define MOSA_COMMON_BASE_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace mosa {

class SocketAddress {
 public:
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  // True for 127.0.0.0/8 and ::1.
  bool IsLoopback() const;
  // Returns text such as "127.0.0.1:80" or "[::1]:80".
  std::string ToText() const;

 private:
  friend Result<SocketAddress> ResolveAddress(std::string_view text);
  friend Result<std::string> LocalAddress(int socket);
  friend Result<std::string> PeerAddress(int socket);
  sockaddr_storage storage_{};
  socklen_t size_ = sizeof(sockaddr_storage);
};

// InvalidArgument if `text` is not HOST:PORT; Unavailable if the host has no address.
Result<SocketAddress> ResolveAddress(std::string_view text);
// The addresses of a socket's local and remote ends.
Result<std::string> LocalAddress(int socket);
Result<std::string> PeerAddress(int socket);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_SOCKET_ADDRESS_H_
