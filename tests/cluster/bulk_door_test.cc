// Who gets in at the bulk plane, and what those who do not can do to those who did: silent and
// half-open connections, other clients' capabilities, other versions, idle connections.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/model/checksum_blocks.h"
#include "proto/convert/bulk_hello.h"
#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using sai::ObjectTarget;
using testing::Connect;
using ::testing::HasSubstr;
using testing::kTestClient;
using testing::kTestNode;
using testing::TestNode;

constexpr FileId kFile{42};

Time Now() { return SystemClock().Monotonic(); }
Time Soon() { return Now() + Seconds(20); }

bool Becomes(const std::function<bool()>& condition) {
  const Time end = Soon();
  while (!condition() && Now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

// What the node has said when it ends the connection; empty if nothing.
std::string LastWordOf(FrameSocket& socket) {
  v1::BulkReply reply;
  std::string last;
  while (socket.ReceiveStart(reply, Soon()).ok()) {
    EXPECT_EQ(reply.id(), 0U);
    last = reply.message();
  }
  return last;
}

class BulkDoorTest : public ::testing::Test {
 protected:
  void Start(const node::ConnectionLimits& limits = {}) {
    node_ = std::make_unique<TestNode>(node::NewMemoryStore("n1"),
                                       testing::TestNodeOptions{.limits = limits});
    capability_ = node_->Seal(kFile, true);
    EXPECT_TRUE(node_->client().Write(Target(), 0, Data()).ok());
  }
  ObjectTarget Target() const { return {kTestNode, kFile, capability_}; }
  std::span<const std::byte> Data() const { return std::as_bytes(std::span(data_)); }
  Status ReadBy(sai::BulkNodeApi& client) {
    std::string out(data_.size(), '?');
    const Status status = client.Read(Target(), 0, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(!status.ok() || out == data_);
    return status;
  }
  BulkUse Use() { return node_->engine().UseOfBulkPlane(); }
  // The median of so many reads.
  Duration ReadTime(int reads) {
    std::vector<int64_t> times;
    for (int i = 0; i < reads; ++i) {
      const Time begin = Now();
      EXPECT_TRUE(ReadBy(node_->client()).ok());
      times.push_back((Now() - begin).ns);
    }
    std::ranges::nth_element(times, times.begin() + reads / 2);
    return Duration{times[static_cast<size_t>(reads) / 2]};
  }

  const std::string data_ = std::string(100'000, 'd');
  std::unique_ptr<TestNode> node_;
  std::string capability_;
};

TEST_F(BulkDoorTest, SilentConnectionsFromOneHostShutNobodyOut) {
  Start({.unproven_max = 64});
  const Duration before = ReadTime(200);
  std::vector<FrameSocket> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(Connect(*node_, "127.0.0.9"));
  const Duration during = ReadTime(200);
  EXPECT_LT(during.ns, 2 * before.ns + 20'000'000);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ReadBy(*node_->NewClient()).ok());
  EXPECT_LE(Use().unproven, 64U);
  EXPECT_TRUE(Becomes([&] { return Use().turned_away >= 300; }));
  EXPECT_TRUE(Becomes([&] { return Use().unproven == 0; }));
}

TEST_F(BulkDoorTest, AStormOfConnectionsFromManyHostsShutsNobodyOut) {
  Start({.unproven_max = 64});
  const Duration before = ReadTime(200);
  std::atomic<bool> over{false};
  std::atomic<int> made{0};
  std::thread storm([&] {
    std::vector<FrameSocket> silent;
    for (int i = 0; !over; ++i) {
      silent.push_back(Connect(*node_, "127.0.0." + std::to_string(10 + i % 200)));
      ++made;
      if (silent.size() > 500) silent.erase(silent.begin(), silent.begin() + 400);
      if (i % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    }
  });
  EXPECT_TRUE(Becomes([&] { return made > 300; }));
  const Duration during = ReadTime(200);
  EXPECT_LT(during.ns, 2 * before.ns + 20'000'000);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ReadBy(*node_->NewClient()).ok());
  over = true;
  storm.join();
}

TEST_F(BulkDoorTest, WhoDoesNotFinishItsHelloGoesInTwoSeconds) {
  Start();
  const std::string hello = EncodeFrameStart(HelloOf(node_->Identity(), NewNonce()), 0);
  for (const size_t sent : {size_t{0}, size_t{5}, hello.size() - 1, hello.size()}) {
    SCOPED_TRACE(sent);
    FrameSocket socket = Connect(*node_);
    const Time begin = Now();
    ASSERT_EQ(::send(socket.fd(), hello.data(), sent, MSG_NOSIGNAL), static_cast<ssize_t>(sent));
    LastWordOf(socket);
    EXPECT_GE((Now() - begin).ns, Milliseconds(1900).ns);
    EXPECT_LT((Now() - begin).ns, Seconds(8).ns);
  }
}

TEST_F(BulkDoorTest, ConnectionsWithoutARequestHoldNoThread) {
  Start();
  std::vector<FrameSocket> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(Connect(*node_));
    ASSERT_TRUE(Introduce(idle.back(), node_->Identity(), "n1", Soon()).ok());
  }
  EXPECT_TRUE(Becomes([&] { return Use().connections >= 40 && Use().unproven == 0; }));
  EXPECT_TRUE(Becomes([&] { return Use().threads == 0; }));
  EXPECT_EQ(Use().buffer_bytes, 0U);
  const auto tasks = std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                   std::filesystem::directory_iterator());
  EXPECT_LT(tasks, 50);  // The copier has 34.
}

TEST_F(BulkDoorTest, AnOverheardCapabilityIsOfNoUseToAnotherClient) {
  Start();
  const auto thief = node_->NewClient({}, ClientId{78});
  const Status refused = ReadBy(*thief);
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(
      MessageOf(refused),
      HasSubstr(
          "belongs to client 000000000000004d, but the connection to client 000000000000004e"));
  EXPECT_EQ(thief->Write(Target(), 0, Data()).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(thief->OpenLocal(Target(), false).status().code(), StatusCode::kPermissionDenied);
}

TEST_F(BulkDoorTest, AnotherClientsNameWithoutItsKeyGetsNowhere) {
  Start();
  const auto liar = node_->NewClient();
  liar->SetIdentity({.client = kTestClient, .era = 0, .key = std::string(32, 'x')});
  EXPECT_EQ(ReadBy(*liar).code(), StatusCode::kUnavailable);
  liar->SetIdentity({.client = kTestClient, .era = 1, .key = node_->Identity().key});
  EXPECT_EQ(ReadBy(*liar).code(), StatusCode::kUnavailable);
  liar->SetIdentity(node_->Identity());
  EXPECT_TRUE(ReadBy(*liar).ok());

  // Who skips its own check of the node still has to show a proof.
  FrameSocket socket = Connect(*node_);
  ASSERT_TRUE(socket.SendFrame(HelloOf(node_->Identity(), NewNonce()), {}, Soon()).ok());
  v1::BulkReply greeting;
  ASSERT_TRUE(socket.ReceiveStart(greeting, Soon()).ok());
  v1::BulkRequest forged;
  forged.mutable_proof()->set_proof(greeting.greeting().proof());
  ASSERT_TRUE(socket.SendFrame(forged, {}, Soon()).ok());
  EXPECT_THAT(LastWordOf(socket), HasSubstr("failed to authenticate"));
}

TEST_F(BulkDoorTest, BeforeTheHelloNothingIsAnswered) {
  Start();
  FrameSocket socket = Connect(*node_);
  v1::BulkRequest request;
  request.set_id(1);
  request.set_file_id(kFile.value);
  request.set_capability(capability_);
  request.mutable_read()->set_length_bytes(10);
  ASSERT_TRUE(socket.SendFrame(request, {}, Soon()).ok());
  EXPECT_THAT(LastWordOf(socket), HasSubstr("began without a hello"));
  FrameSocket large = Connect(*node_);
  ASSERT_TRUE(large.SendStart(request, 1'000'000, false, Soon()).ok());
  EXPECT_THAT(LastWordOf(large), HasSubstr("began without a hello"));
}

TEST_F(BulkDoorTest, AnotherVersionIsRefusedWithBothSidesVersions) {
  Start();
  FrameSocket socket = Connect(*node_);
  v1::BulkRequest hello = HelloOf(node_->Identity(), NewNonce());
  hello.mutable_hello()->set_version(9);
  hello.mutable_hello()->set_version_min(8);
  ASSERT_TRUE(socket.SendFrame(hello, {}, Soon()).ok());
  EXPECT_EQ(LastWordOf(socket),
            "this node speaks versions 2 to 2 of the bulk protocol, the peer 8 to 9: upgrade the "
            "older one of the two");
}

TEST_F(BulkDoorTest, IdleConnectionsMakeRoomAndAreMadeAgainUnnoticed) {
  Start({.proven_max = 3});
  std::vector<std::unique_ptr<sai::BulkNodeApi>> clients;
  for (uint64_t i = 0; i < 10; ++i) clients.push_back(node_->NewClient());
  uint64_t end = data_.size();
  for (int round = 0; round < 30; ++round) {
    for (const auto& client : clients) {
      // A look that has begun is never repeated, so it must not meet the end of a connection.
      const auto look = client->LookAtLocalWrites(Target(), {});
      ASSERT_TRUE(look.ok()) << MessageOf(look.status());
      ASSERT_TRUE(ReadBy(*client).ok());
      const Status written = client->Write(Target(), end, Data().first(10));
      ASSERT_TRUE(written.ok()) << MessageOf(written);
      end += 10;
    }
  }
  EXPECT_LE(Use().connections, 3U);
  EXPECT_GT(Use().turned_away, 200U);
  EXPECT_EQ(node_->client().Stat(Target())->size_bytes, end);
}

TEST_F(BulkDoorTest, ARequestThatMeetsTheEndOfItsConnectionIsToldThatItWasNotBegun) {
  Start({.proven_max = 1});
  FrameSocket first = Connect(*node_);
  ASSERT_TRUE(Introduce(first, node_->Identity(), "n1", Soon()).ok());
  v1::BulkRequest request;
  request.set_id(1);
  request.set_file_id(kFile.value);
  request.set_capability(capability_);
  request.mutable_stat();
  ASSERT_TRUE(first.SendFrame(request, {}, Soon()).ok());
  v1::BulkReply reply;
  ASSERT_TRUE(first.ReceiveStart(reply, Soon()).ok());
  EXPECT_EQ(reply.id(), 1U);
  EXPECT_TRUE(Becomes([&] { return Use().threads == 0; }));
  ASSERT_TRUE(ReadBy(*node_->NewClient()).ok());  // Needs the place.
  request.set_id(2);
  request.mutable_write()->set_offset_bytes(data_.size());
  for (const uint32_t crc : BlockChecksums(data_.size(), Data()))
    request.mutable_write()->add_crc32c(crc);
  ASSERT_TRUE(first.SendFrame(request, Data(), Soon()).ok());
  EXPECT_THAT(LastWordOf(first), HasSubstr("it was idle"));
  EXPECT_EQ(node_->client().Stat(Target())->size_bytes, data_.size());
}

TEST_F(BulkDoorTest, OneClientCannotTakeAllPlaces) {
  Start({.proven_max = 20, .per_client_max = 8});
  std::vector<FrameSocket> greedy;
  for (int i = 0; i < 30; ++i) {
    greedy.push_back(Connect(*node_));
    ASSERT_TRUE(Introduce(greedy.back(), node_->Identity(ClientId{5}), "n1", Soon()).ok());
    v1::BulkRequest nonsense;
    ASSERT_TRUE(greedy.back().SendFrame(nonsense, {}, Soon()).ok());
  }
  EXPECT_TRUE(Becomes([&] { return Use().unproven == 0; }));
  EXPECT_LE(Use().connections, 8U + 8U);
  EXPECT_TRUE(ReadBy(node_->client()).ok());
}

// The bytes of an object that a local program may be changing are held in memory until they are
// sent.
TEST_F(BulkDoorTest, OneClientCannotTakeAllBuffers) {
  Start();
  const std::string large(kFramePayloadBytesMax, 'l');
  ASSERT_TRUE(node_->client().Write(Target(), 0, std::as_bytes(std::span(large))).ok());
  const auto writer = node_->client().OpenLocal(Target(), true);
  ASSERT_TRUE(writer.ok()) << MessageOf(writer.status());
  v1::BulkRequest request;
  request.set_file_id(kFile.value);
  request.set_capability(
      node_->Seal({.file = kFile, .client = ClientId{5}, .may_write = false, .expires = {}}));
  request.mutable_read()->set_length_bytes(large.size());
  // None of them receives its answer, which is larger than the buffers of two sockets.
  std::vector<FrameSocket> greedy;
  for (int i = 0; i < 12; ++i) {
    greedy.push_back(Connect(*node_));
    ASSERT_TRUE(Introduce(greedy.back(), node_->Identity(ClientId{5}), "n1", Soon()).ok());
    ASSERT_TRUE(greedy.back().SendFrame(request, {}, Soon()).ok());
  }
  EXPECT_TRUE(Becomes([&] { return node_->engine().budget().used_bytes() >= large.size(); }));
  std::string out(large.size(), '?');
  const Time begin = Now();
  const Status answer = node_->client().Read(Target(), 0, std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(answer.ok()) << MessageOf(answer);
  EXPECT_LT((Now() - begin).ns, Seconds(2).ns);
  EXPECT_TRUE(out == large);
}

// A process with a node in it may leave SIGPIPE as it is.
TEST_F(BulkDoorTest, WhoGoesBeforeItsAnswerHasComeEndsNoProcess) {
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  Start();
  const std::string large(kFramePayloadBytesMax, 'l');
  ASSERT_TRUE(node_->client().Write(Target(), 0, std::as_bytes(std::span(large))).ok());
  v1::BulkRequest request;
  request.set_file_id(kFile.value);
  request.set_capability(
      node_->Seal({.file = kFile, .client = ClientId{5}, .may_write = false, .expires = {}}));
  request.mutable_read()->set_length_bytes(large.size());
  for (int i = 0; i < 50; ++i) {
    FrameSocket hasty = Connect(*node_);
    ASSERT_TRUE(Introduce(hasty, node_->Identity(ClientId{5}), "n1", Soon()).ok());
    ASSERT_TRUE(hasty.SendFrame(request, {}, Soon()).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 10));
  }
  std::string out(large.size(), '?');
  EXPECT_TRUE(node_->client().Read(Target(), 0, std::as_writable_bytes(std::span(out))).ok());
  std::signal(SIGPIPE, before);
}

TEST_F(BulkDoorTest, MoreRequestsThanThreadsAreAllAnswered) {
  Start({.threads_max = 2, .threads_per_client_max = 1});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto client = node_->NewClient({}, ClientId{kTestClient.value + t});
      const std::string capability = SealCapability({.file = kFile,
                                                     .client = ClientId{kTestClient.value + t},
                                                     .may_write = true,
                                                     .expires = SystemClock().Now() + Seconds(60)},
                                                    node_->key());
      std::string out(data_.size(), '?');
      for (int i = 0; i < 100; ++i)
        EXPECT_TRUE(
            client->Read({kTestNode, kFile, capability}, 0, std::as_writable_bytes(std::span(out)))
                .ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(Use().threads, 2U);
}

// A held question is not kept while somebody else waits for its thread.
TEST_F(BulkDoorTest, HeldQuestionsLetOthersGoFirst) {
  Start({.threads_max = 1});
  const auto follower = node_->NewClient();
  std::atomic<bool> over{false};
  std::thread following([&] {
    uint64_t change = 0;
    while (!over) {
      const auto sums = follower->Sums(
          Target(), {.range = {0, 0}, .after_change = change, .wait = Seconds(1), .about = {}});
      EXPECT_TRUE(sums.ok()) << MessageOf(sums.status());
      if (sums.ok()) change = sums->change;
    }
  });
  for (int i = 0; i < 10; ++i) {
    const Time begin = Now();
    EXPECT_TRUE(ReadBy(node_->client()).ok());
    EXPECT_LT((Now() - begin).ns, Milliseconds(900).ns);
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
  }
  over = true;
  following.join();
}

// ---- encrypted

TEST_F(BulkDoorTest, WhoDoesNotEncryptIsToldToAndWhoDoesIsServed) {
  std::signal(SIGPIPE, SIG_IGN);
  node_ = std::make_unique<TestNode>(node::NewMemoryStore("n1"),
                                     testing::TestNodeOptions{.bulk_tls = true});
  capability_ = node_->Seal(kFile, true);
  ASSERT_TRUE(node_->client().Write(Target(), 0, Data()).ok());
  EXPECT_TRUE(ReadBy(node_->client()).ok());
  // None of them needed a second attempt.
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ReadBy(*node_->NewClient()).ok());
  EXPECT_EQ(Use().turned_away, 0U);
  EXPECT_TRUE(node_->client().OpenLocal(Target(), false).ok());  // By the Unix socket, in clear.

  const auto clear = node_->NewClient();
  BulkIdentity identity = node_->Identity();
  identity.tls = false;
  clear->SetIdentity(identity);
  const Status refused = ReadBy(*clear);
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(refused), HasSubstr("bulk plane is encrypted"));

  const auto thief = node_->NewClient({}, ClientId{78});
  EXPECT_EQ(ReadBy(*thief).code(), StatusCode::kPermissionDenied);
  identity.tls = true;
  identity.key = std::string(32, 'x');
  thief->SetIdentity(identity);
  EXPECT_EQ(ReadBy(*thief).code(), StatusCode::kUnavailable);

  FrameSocket silent = Connect(*node_);
  EXPECT_EQ(LastWordOf(silent), "");  // Ended, by the node.
}

// Its last word must not wait for a peer that reads nothing: the server's lock is held.
TEST_F(BulkDoorTest, WhoIsToldToGoIsNotWaitedFor) {
  node_ = std::make_unique<TestNode>(
      node::NewMemoryStore("n1"),
      testing::TestNodeOptions{.limits = {.proven_max = 1}, .bulk_tls = true});
  capability_ = node_->Seal(kFile, true);
  ASSERT_TRUE(node_->client().Write(Target(), 0, Data()).ok());
  EXPECT_TRUE(Becomes([&] { return Use().threads == 0; }));
  ASSERT_TRUE(ReadBy(*node_->NewClient()).ok());  // Needs the place.
  // The node's ends of both connections are in this process.
  int ends = 0, blocking = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    const auto own = LocalAddress(fd);
    if (!own.ok() || *own != node_->server().address() || !PeerAddress(fd).ok()) continue;
    ++ends;
    if ((::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0) ++blocking;
  }
  EXPECT_GE(ends, 1);
  EXPECT_EQ(blocking, ends - 1) << "one of them was told to go";
}

TEST_F(BulkDoorTest, WhoEncryptsWhereTheClusterDoesNotIsRefused) {
  std::signal(SIGPIPE, SIG_IGN);
  Start();
  BulkIdentity identity = node_->Identity();
  identity.tls = true;
  const auto client = node_->NewClient();
  client->SetIdentity(identity);
  const Status refused = ReadBy(*client);
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(refused), HasSubstr("the TLS handshake failed"));
  EXPECT_TRUE(ReadBy(node_->client()).ok());
}

}  // namespace
}  // namespace mosa
