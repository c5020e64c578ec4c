// Descriptors where things are not as they should be: a node that does not answer, a store that
// cannot tell who writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/base/host_identity.h"
#include "storage-node/store/faulty_object_store.h"
#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using node::FaultyObjectStore;
using sai::ObjectTarget;
using ::testing::HasSubstr;
using testing::kTestNode;
using testing::TemporaryDirectory;
using testing::TestNode;

constexpr FileId kFile{42};

TEST(Descriptors, WhereWritersCannotBeSeenNoDescriptorForWritingIsPassed) {
  // As a file system without leases: the store says that nobody can write, whoever does.
  class BlindStore final : public FaultyObjectStore {
   public:
    BlindStore() : FaultyObjectStore(node::NewMemoryStore("n1"), OkStatus()) {}
    Result<bool> HasWriters(int) override { return false; }
  };
  TestNode node(std::make_unique<BlindStore>());
  const std::string data = "abc";
  const std::string capability = node.Seal(kFile, true);
  const ObjectTarget target{kTestNode, kFile, capability};
  ASSERT_TRUE(node.client().Write(target, 0, std::as_bytes(std::span(data))).ok());
  const auto refused = node.client().OpenLocal(target, true);
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("no leases"));
  EXPECT_TRUE(node.client().OpenLocal(target, false).ok());
}

// A stopped process: the kernel takes connections for it, and nobody answers.
TEST(Descriptors, AStoppedNodeHoldsUpNobodyWhoWantsDescriptors) {
  const TemporaryDirectory directory;
  NodeAddress address{.node = kTestNode,
                      .name = "n1",
                      .address = "127.0.0.1:1",
                      .socket_path = directory.path() + "/node.sock",
                      .host_identity = *HostIdentity(),
                      .incarnation = 1,
                      .state = NodeState::kLive};
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  address.socket_path.copy(name.sun_path, sizeof name.sun_path - 1);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::chmod(address.socket_path.c_str(), S_IRUSR | S_IWUSR), 0);  // As a node's.
  ASSERT_EQ(::listen(listener.get(), 128), 0);

  const BulkIdentity identity{.client = ClientId{5}, .era = 0, .key = "a session's key"};
  constexpr size_t kThreads = 20;
  const auto ask = [&](sai::BulkNodeApi& client, std::vector<Status>& answers) {
    std::vector<std::thread> threads;
    answers.resize(kThreads);
    for (Status& answer : answers) {
      threads.emplace_back([&client, &answer] {
        answer = client.OpenLocal({kTestNode, kFile, "a capability"}, true).status();
      });
    }
    return threads;
  };
  using Clock = std::chrono::steady_clock;
  {
    sai::BulkNodeApi client(
        {.host_identity = *HostIdentity(), .channel = {}, .call_wait = Milliseconds(1000)});
    client.SetIdentity(identity);
    client.SetNodes({address});
    std::vector<Status> answers;
    const auto begun = Clock::now();
    auto threads = ask(client, answers);
    EXPECT_TRUE(client.IsLocal(kTestNode));
    EXPECT_LT(Clock::now() - begun, std::chrono::milliseconds(900));
    for (auto& thread : threads) thread.join();
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(4));  // Not one after the other.
    // Who waited for another one's attempt may hear of its end before the own deadline.
    for (const Status& answer : answers) {
      EXPECT_TRUE(answer.code() == StatusCode::kDeadlineExceeded ||
                  answer.code() == StatusCode::kUnavailable)
          << MessageOf(answer);
    }
  }
  sai::BulkNodeApi client(
      {.host_identity = *HostIdentity(), .channel = {}, .call_wait = Seconds(60)});
  client.SetIdentity(identity);
  client.SetNodes({address});
  std::vector<Status> answers;
  auto threads = ask(client, answers);
  const auto begun = Clock::now();
  EXPECT_TRUE(client.IsLocal(kTestNode));
  address.state = NodeState::kSilent;
  client.SetNodes({address});
  for (auto& thread : threads) thread.join();
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(5));
  for (const Status& answer : answers) {
    EXPECT_EQ(answer.code(), StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(answer), HasSubstr("n1"));
  }
}

}  // namespace
}  // namespace mosa
