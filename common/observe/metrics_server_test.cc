// Tests the HTTP endpoint for monitoring systems over plain sockets: correct requests, wrong ones,
// none.
#include "common/observe/metrics_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/socket_address.h"
#include "common/base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mosa {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWaitMs = 30'000;

class MetricsServerTest : public ::testing::Test {
 protected:
  // Long enough for tests that are not about silence, however busy the machine is.
  MetricsServerTest() { StartServer(60); }
  void StartServer(unsigned silence_seconds_max) {
    auto started =
        MetricsServer::Start({.listen = "127.0.0.1:0", .silence_seconds_max = silence_seconds_max},
                             [this] { return Page(); });
    server_ = *std::move(started);
  }
  std::string Page() { return "page " + std::to_string(++pages_) + "\n"; }

  UniqueFd Connect() const {
    const SocketAddress address = ResolveAddress(server_->address()).value();
    UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), address.get(), address.size()), 0);
    return socket;
  }
  // Receives until the server closes; appends "..." if it does not.
  static std::string ReceiveAll(const UniqueFd& socket) {
    std::string all;
    while (true) {
      pollfd event{.fd = socket.get(), .events = POLLIN, .revents = 0};
      if (::poll(&event, 1, kWaitMs) != 1) return all + "...";
      char buffer[4096];
      const ssize_t bytes = ::recv(socket.get(), buffer, sizeof buffer, 0);
      if (bytes <= 0) return all;
      all.append(buffer, static_cast<size_t>(bytes));
    }
  }
  std::string Ask(const std::string& request) const {
    const UniqueFd socket = Connect();
    static_cast<void>(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL));
    return ReceiveAll(socket);
  }

  // For a short silence limit: repeats the request, because this test may itself be too slow.
  std::string AskUntilAnswered(const std::string& request) const {
    std::string answer;
    for (int i = 0; i < 30 && answer.empty(); ++i) answer = Ask(request);
    return answer;
  }

  std::atomic<int> pages_ = 0;
  std::unique_ptr<MetricsServer> server_;
};

constexpr char kGet[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

TEST_F(MetricsServerTest, EachRequestGetsAPageOfItsOwn) {
  for (const char* page : {"\r\n\r\npage 1\n", "\r\n\r\npage 2\n"}) {
    const std::string answer = Ask(kGet);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("text/plain; version=0.0.4"));
    EXPECT_TRUE(answer.ends_with(page)) << answer;
  }
}

TEST_F(MetricsServerTest, OtherPathsAndMethodsAreRefused) {
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(
      Ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"),
      StartsWith("HTTP/1.1 405"));
  EXPECT_EQ(pages_, 0);
}

TEST_F(MetricsServerTest, WhatIsNoRequestEndsTheConnectionOnly) {
  StartServer(1);
  const std::vector<std::string> wrong = {
      "\r\n\r\n\r\n\r\n",
      "hello\r\n\r\n",
      std::string("\0\x01\x02\xff\r\n\r\n", 8),
      "GET /metrics HTTP/9.9\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: x\r\nLong: " + std::string(100'000, 'x') + "\r\n\r\n",
      "GET /" + std::string(100'000, 'y') + " HTTP/1.1\r\n\r\n",
  };
  for (const std::string& request : wrong) {
    const UniqueFd socket = Connect();
    // The server may refuse the request while it is still being sent.
    static_cast<void>(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL));
    const std::string answer = ReceiveAll(socket);
    EXPECT_THAT(answer, AnyOf("", StartsWith("HTTP/1.1 4"), StartsWith("HTTP/1.0 4"),
                              StartsWith("HTTP/1.1 5"), StartsWith("HTTP/1.0 5")));
    EXPECT_THAT(AskUntilAnswered(kGet), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(MetricsServerTest, WhoSaysNothingHoldsUpNobodyAndIsClosed) {
  StartServer(1);
  const UniqueFd silent = Connect();
  const UniqueFd half = Connect();
  static_cast<void>(::send(half.get(), kGet, 10, MSG_NOSIGNAL));
  EXPECT_THAT(AskUntilAnswered(kGet), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(ReceiveAll(silent), "");
  EXPECT_THAT(ReceiveAll(half), AnyOf("", StartsWith("HTTP/1.1 408")));
}

TEST_F(MetricsServerTest, ConnectionsAreFew) {
  StartServer(1);
  std::vector<UniqueFd> many;
  for (int i = 0; i < 20; ++i) many.push_back(Connect());
  // All are closed in the end, most at once; then there is room again.
  for (const UniqueFd& socket : many)
    EXPECT_THAT(ReceiveAll(socket), AnyOf("", StartsWith("HTTP/1.1 408")));
  EXPECT_THAT(AskUntilAnswered(kGet), StartsWith("HTTP/1.1 200"));
}

TEST_F(MetricsServerTest, AnAddressThatIsTakenOrNoneIsSaid) {
  const auto page = [] { return std::string(); };
  const auto taken = MetricsServer::Start({.listen = server_->address()}, page);
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("cannot listen on " + server_->address()));
  const auto none = MetricsServer::Start({.listen = "nowhere"}, page);
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(MetricsServerTest, ServesNothingWithoutAnAddress) {
  const auto server = ServeMetrics("", [] { return std::string(); });
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(*server, nullptr);
}

}  // namespace
}  // namespace mosa
