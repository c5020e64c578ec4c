#include "proto/convert/bulk_tls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "common/base/unique_fd.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;

const std::string kKey(32, 'k');

BulkIdentity Anna(std::string key = kKey) {
  return {.client = ClientId{7}, .era = 3, .key = std::move(key), .tls = true};
}
Result<std::string> KeyOf(ClientId client, uint64_t era) {
  if (client == ClientId{7} && era == 3) return kKey;
  return NotFoundError("no such client");
}

// Two ends whose bytes go through the test's hands.
class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    int near[2];
    int far[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, near), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, far), 0);
    for (int i = 0; i < 2; ++i) {
      near_[i] = UniqueFd(near[i]);
      far_[i] = UniqueFd(far[i]);
    }
    server_ = TlsStream::Server(far_[0].get(), KeyOf);
  }
  // Passes on what has arrived on the way, and keeps it.
  void Carry() {
    const auto move = [this](int from, int to) {
      char bytes[4096];
      ssize_t n = 0;
      while ((n = ::recv(from, bytes, sizeof bytes, 0)) > 0) {
        seen_.append(bytes, static_cast<size_t>(n));
        EXPECT_EQ(::send(to, bytes, static_cast<size_t>(n), MSG_NOSIGNAL), n);
      }
    };
    move(near_[1].get(), far_[1].get());
    move(far_[1].get(), near_[1].get());
  }
  // The first error, or whether both sides are through.
  Result<bool> Shake() {
    bool near_over = false;
    bool far_over = false;
    for (int i = 0; i < 20 && !(near_over && far_over); ++i) {
      if (!near_over) {
        MOSA_ASSIGN_OR_RETURN(near_over, client_->Handshake());
      }
      Carry();
      if (!far_over) {
        MOSA_ASSIGN_OR_RETURN(far_over, server_->Handshake());
      }
      Carry();
    }
    return near_over && far_over;
  }

  UniqueFd near_[2];
  UniqueFd far_[2];
  std::unique_ptr<TlsStream> client_;
  std::unique_ptr<TlsStream> server_;
  std::string seen_;
};

TEST_F(TlsTest, BytesArriveAndCannotBeReadOnTheWay) {
  client_ = TlsStream::Client(near_[0].get(), Anna());
  const auto over = Shake();
  ASSERT_TRUE(over.ok() && *over) << MessageOf(over.status());
  const std::string secret(40'000, 's');
  std::string sent;
  std::string received;
  while (received.size() < secret.size()) {
    if (sent.size() < secret.size()) {
      const ssize_t n = client_->Send(secret.data() + sent.size(), secret.size() - sent.size());
      if (n > 0) sent.append(static_cast<size_t>(n), 's');
    }
    Carry();
    char bytes[5000];
    const ssize_t n = server_->Receive(bytes, sizeof bytes);
    if (n > 0) received.append(bytes, static_cast<size_t>(n));
    ASSERT_TRUE(n > 0 || errno == EAGAIN);
  }
  EXPECT_EQ(received, secret);
  EXPECT_EQ(seen_.find("ssssssss"), std::string::npos);
  EXPECT_EQ(seen_.find(kKey), std::string::npos);
  client_ = nullptr;
  near_[0].reset();
  near_[1].reset();
  far_[1].reset();
  char byte = 0;
  EXPECT_EQ(server_->Receive(&byte, 1), 0);
}

TEST_F(TlsTest, ChangedBytesEndTheConnection) {
  client_ = TlsStream::Client(near_[0].get(), Anna());
  const auto over = Shake();
  ASSERT_TRUE(over.ok() && *over);
  ASSERT_EQ(client_->Send("hello", 5), 5);
  char record[200];
  const ssize_t n = ::recv(near_[1].get(), record, sizeof record, 0);
  ASSERT_GT(n, 10);
  record[n - 3] = static_cast<char>(record[n - 3] ^ 1);
  ASSERT_EQ(::send(far_[1].get(), record, static_cast<size_t>(n), 0), n);
  EXPECT_EQ(server_->Receive(record, sizeof record), -1);
  EXPECT_EQ(errno, EPROTO);
}

TEST_F(TlsTest, AnotherKeyOrAnUnknownClientIsRefused) {
  client_ = TlsStream::Client(near_[0].get(), Anna(std::string(32, 'x')));
  EXPECT_EQ(Shake().status().code(), StatusCode::kUnavailable);
  SetUp();
  BulkIdentity stranger = Anna();
  stranger.client = ClientId{8};
  client_ = TlsStream::Client(near_[0].get(), stranger);
  const auto refused = Shake();
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("does not have the session key"));
}

TEST_F(TlsTest, BytesThatAreNoTlsAreRefused) {
  ASSERT_EQ(::send(far_[1].get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  EXPECT_EQ(server_->Handshake().status().code(), StatusCode::kUnavailable);
  client_ = TlsStream::Client(near_[0].get(), Anna());
  ASSERT_EQ(::send(near_[1].get(), "\x2a\0\0\0\0\0\0\0", 8, 0), 8);
  EXPECT_EQ(client_->Handshake().status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace mosa
