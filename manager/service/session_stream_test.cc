// One client's stream shared by many threads: each polls for its own answer, and messages that
// answer nobody still arrive. Real gRPC, real RocksDB.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client-sai/api/wait_budget.h"
#include "common/base/check.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "manager/service/manager_server.h"
#include "manager/service/test_client.h"

namespace mosa::manager {
namespace {

class SessionStreamTest : public ::testing::Test {
 protected:
  SessionStreamTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "mosa_stream_test.XXXXXX";
    MOSA_CHECK(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    options_.listen = "127.0.0.1:0";
    options_.data_directory = directory_ / "store";
    StartServer();
    options_.listen = server_->address();  // The same address after a restart.
  }
  ~SessionStreamTest() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }
  void StartServer() {
    auto server = ManagerServer::Start(options_);
    MOSA_CHECK(server.ok());
    server_ = *std::move(server);
  }
  std::unique_ptr<TestClient> Client(uint64_t id) {
    auto client = std::make_unique<TestClient>(id, server_->address());
    MOSA_CHECK(client->Start().ok());
    return client;
  }

  std::filesystem::path directory_;
  ServerOptions options_;
  std::unique_ptr<ManagerServer> server_;
};

// Makes files until told to stop, or `count` of them. Every answer must be this thread's own.
void MakeFiles(TestClient& client, int thread, int count, std::atomic<int>& wrong) {
  for (int i = 0; i < count; ++i) {
    const MakeRequest make = client.MakeOf(kRootFile, fmt::format("t{}-{}", thread, i));
    const Reply reply = client.Ask(make);
    const auto* const made = std::get_if<MakeReply>(&reply);
    if (made == nullptr || made->entry.file != make.file) ++wrong;
  }
}

TEST_F(SessionStreamTest, ManyThreadsGetTheirOwnAnswers) {
  const auto client = Client(1);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] { MakeFiles(*client, thread, 200, wrong); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Ben has looked up a file. Anna changes its attributes, which waits for Ben's answer to the
// recall.
void ExpectRecalled(TestClient& anna, TestClient& ben, const std::string& name) {
  const MakeRequest make = anna.MakeOf(kRootFile, name);
  ASSERT_TRUE(std::holds_alternative<MakeReply>(anna.Ask(make)));
  ASSERT_TRUE(std::holds_alternative<AttributesReply>(ben.Ask(GetAttributesRequest{make.file})));
  const auto began = std::chrono::steady_clock::now();
  SetAttributesRequest change;
  change.file = make.file;
  change.permissions = 0600;
  ASSERT_TRUE(std::holds_alternative<AttributesReply>(anna.Ask(change)));
  // An unanswered recall ends with the lease, after 5 s.
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_TRUE(ben.WaitForPush([&make](const std::vector<Push>& pushes) {
    return std::any_of(pushes.begin(), pushes.end(), [&make](const Push& push) {
      const auto* const recall = std::get_if<RecallPush>(&push);
      return recall != nullptr && recall->file == make.file;
    });
  }));
}

TEST_F(SessionStreamTest, PushesArriveWhetherOrNotThreadsAreCalling) {
  const auto anna = Client(1);
  const auto ben = Client(2);
  for (int i = 0; i < 20; ++i) ExpectRecalled(*anna, *ben, fmt::format("idle{}", i));
  std::atomic<bool> enough = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> busy;
  for (int thread = 0; thread < 3; ++thread) {
    busy.emplace_back([&, thread] {
      for (int round = 0; !enough; ++round) MakeFiles(*ben, thread * 100'000 + round, 10, wrong);
    });
  }
  for (int i = 0; i < 20; ++i) ExpectRecalled(*anna, *ben, fmt::format("busy{}", i));
  enough = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A caller's next action relies on every recall that arrived before the answer.
TEST_F(SessionStreamTest, ACallGoesOnOnlyAfterEarlierPushesWereDealtWith) {
  const auto anna = Client(1);
  const auto ben = Client(2);
  const MakeRequest make = anna->MakeOf(kRootFile, "f");
  ASSERT_TRUE(std::holds_alternative<MakeReply>(anna->Ask(make)));
  ben->SlowPushes(std::chrono::milliseconds(100));
  for (size_t round = 0; round < 5; ++round) {
    ASSERT_TRUE(std::holds_alternative<AttributesReply>(ben->Ask(GetAttributesRequest{make.file})));
    const size_t before = ben->pushes();
    std::thread change([&] {
      SetAttributesRequest request;
      request.file = make.file;
      request.permissions = 0600;
      EXPECT_TRUE(std::holds_alternative<AttributesReply>(anna->Ask(request)));
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    // The manager has sent the recall by now, and its listener is busy with it.
    ASSERT_TRUE(std::holds_alternative<AttributesReply>(ben->Ask(GetAttributesRequest{make.file})));
    EXPECT_GT(ben->pushes(), before);
    change.join();
  }
}

TEST_F(SessionStreamTest, APushArrivesWhileACallWaits) {
  const auto anna = Client(1);
  const auto ben = Client(2);
  const MakeRequest make = anna->MakeOf(kRootFile, "locked");
  ASSERT_TRUE(std::holds_alternative<MakeReply>(anna->Ask(make)));
  SetLockRequest lock;
  lock.file = make.file;
  lock.lock = {.type = LockType::kExclusive, .owner = 1, .whole_file = true};
  lock.wait = true;
  ASSERT_FALSE(std::holds_alternative<Failure>(anna->Ask(lock)));
  std::thread waiter([&ben, lock] {
    const Reply reply = ben->Ask(lock);
    EXPECT_FALSE(std::holds_alternative<Failure>(reply));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int i = 0; i < 5; ++i) ExpectRecalled(*anna, *ben, fmt::format("waiting{}", i));
  lock.lock.type = LockType::kUnlock;
  EXPECT_FALSE(std::holds_alternative<Failure>(anna->Ask(lock)));
  waiter.join();
}

TEST_F(SessionStreamTest, CallsUnderWayAreAnsweredByARestartedManager) {
  const auto client = Client(1);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] { MakeFiles(*client, thread, 500, wrong); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  server_.reset();
  StartServer();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(SessionStreamTest, ARemovalThatTimedOutWithoutAManagerNeverRuns) {
  const auto client = Client(1);
  const MakeRequest make = client->MakeOf(kRootFile, "x");
  ASSERT_TRUE(std::holds_alternative<MakeReply>(client->Ask(make)));
  server_->Stop();
  server_.reset();
  const auto replies =
      client->api().Call({RemoveRequest{.parent = kRootFile, .name = "x"}}, Milliseconds(500));
  ASSERT_EQ(replies.size(), 1U);
  ASSERT_TRUE(std::holds_alternative<Failure>(replies[0]));
  EXPECT_EQ(std::get<Failure>(replies[0]).reason, ErrorReason::kTimedOut);
  StartServer();
  // Requests run in order: whatever was repeated ran before this one.
  const Reply found = client->Ask(LookupRequest{.parent = kRootFile, .name = "x"});
  ASSERT_TRUE(std::holds_alternative<EntryReply>(found));
  EXPECT_EQ(std::get<EntryReply>(found).entry.file, make.file);
}

TEST_F(SessionStreamTest, ACallEndsAtItsDeadlineWithoutAManager) {
  const auto client = Client(1);
  server_.reset();
  const auto began = std::chrono::steady_clock::now();
  const std::vector<Reply> replies =
      client->api().Call({GetAttributesRequest{kRootFile}}, Milliseconds(300));
  const auto* const failure = std::get_if<Failure>(&replies.back());
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->reason, ErrorReason::kTimedOut);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
}

// Programs do not wait anew for a manager that has been silent for long. Bytes that were buffered
// wait for it: no program does meanwhile, and they would be lost.
TEST_F(SessionStreamTest, AStoreWaitsForAManagerForWhichProgramsDoNotWaitAnyMore) {
  const auto client = Client(1);
  server_->Stop();
  server_.reset();
  std::this_thread::sleep_for(std::chrono::nanoseconds(sai::WaitBudget::kAll.ns) +
                              std::chrono::seconds(1));
  const auto ask = [&] {
    return client->api().Call({GetAttributesRequest{kRootFile}}, Seconds(10)).back();
  };
  {
    const auto began = std::chrono::steady_clock::now();
    const sai::WaitBudget program(began);
    EXPECT_TRUE(std::holds_alternative<Failure>(ask()));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  }
  std::thread restart([this] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    StartServer();
  });
  {
    const sai::WaitBudget store(sai::WaitBudget::ForBackground());
    EXPECT_TRUE(std::holds_alternative<AttributesReply>(ask()));
  }
  restart.join();
}

}  // namespace
}  // namespace mosa::manager
