#include "common/base/tcp_options.h"

#include <linux/tcp.h>
#include <netinet/in.h>
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

void AbortOnClose(int socket) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

uint64_t LostSegments(int socket) {
  tcp_info info = {};  // Fields unknown to the kernel stay 0.
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return uint64_t{info.tcpi_total_retrans} + info.tcpi_rcv_ooopack;
}

}  // namespace mosa
