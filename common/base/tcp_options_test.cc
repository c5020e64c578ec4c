#include "common/base/tcp_options.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "common/base/unique_fd.h"

namespace mosa {
namespace {

std::string CongestionControlOf(int socket) {
  char name[16] = {};
  socklen_t size = sizeof name - 1;
  EXPECT_EQ(getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

bool Use(int socket, const std::string& name) {
  return setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

UniqueFd TcpSocket() { return UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

TEST(TuneBulkTcp, ExchangesPacingOnly) {
  const UniqueFd paced = TcpSocket();
  if (Use(paced.get(), "bbr")) {
    TuneBulkTcp(paced.get());
    const std::string name = CongestionControlOf(paced.get());
    EXPECT_TRUE(name == "cubic" || name == "reno") << name;
  }
  const UniqueFd chosen = TcpSocket();
  ASSERT_TRUE(Use(chosen.get(), "reno"));
  TuneBulkTcp(chosen.get());
  EXPECT_EQ(CongestionControlOf(chosen.get()), "reno");
}

// A host that connects to a listener whose queue is full retries a second later.
TEST(LostSegments, CountsWhatIsSentAgain) {
  const UniqueFd listener = TcpSocket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), generic, size), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  ASSERT_EQ(getsockname(listener.get(), generic, &size), 0);
  UniqueFd first = TcpSocket();
  ASSERT_EQ(connect(first.get(), generic, size), 0);
  EXPECT_EQ(LostSegments(first.get()), 0U);
  std::vector<UniqueFd> asking;
  for (int i = 0; i < 4; ++i) {
    asking.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    connect(asking.back().get(), generic, size);
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (LostSegments(asking.back().get()) == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GT(LostSegments(asking.back().get()), 0U);
  EXPECT_EQ(LostSegments(first.get()), 0U);
  EXPECT_EQ(LostSegments(UniqueFd(socket(AF_UNIX, SOCK_STREAM, 0)).get()), 0U);
}

TEST(TuneBulkTcp, WhoIsAcceptedInherits) {
  const UniqueFd listener = TcpSocket();
  const bool paced = Use(listener.get(), "bbr");
  TuneBulkTcp(listener.get());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), generic, size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), generic, &size), 0);
  const UniqueFd client = TcpSocket();
  ASSERT_EQ(connect(client.get(), generic, size), 0);
  const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  int at_once = 0;
  size = sizeof at_once;
  ASSERT_EQ(getsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, &size), 0);
  EXPECT_NE(at_once, 0);
  if (paced) {
    EXPECT_NE(CongestionControlOf(accepted.get()), "bbr");
  }
}

TEST(TuneBulkTcp, LeavesOtherSocketsAlone) {
  TuneBulkTcp(-1);
  const UniqueFd local(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(local);
  TuneBulkTcp(local.get());
}

}  // namespace
}  // namespace mosa
