#include "common/base/tcp_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string_view>

namespace mosa {
namespace {

bool UseCongestionControl(int socket, std::string_view name) {
  return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                      static_cast<socklen_t>(name.size())) == 0;
}

}  // namespace

void TuneBulkTcp(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  char name[16] = {};
  socklen_t size = sizeof name - 1;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return;
  if (!std::string_view(name).starts_with("bbr")) return;
  if (!UseCongestionControl(socket, "cubic")) UseCongestionControl(socket, "reno");
}

}  // namespace mosa
