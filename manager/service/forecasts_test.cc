// What the predictor answers through the manager: the cost of reading, and the number of copies.
#include "manager/service/forecasts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client-sai/api/admin_client.h"
#include "common/base/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manager/core/core_fixture.h"
#include "manager/service/service_fixture.h"

namespace mosa::manager {
namespace {

using ::testing::HasSubstr;

// ---- looking up a question

class ReadCostTasks : public CoreFixture {
 protected:
  ReadCostTasks() { Start(kAnna); }
  void AddNodes(int count) {
    for (int i = 1; i <= count; ++i) AddNode("n" + std::to_string(i));
  }
  Result<ReadCostTask> Ask(const ReadCostQuery& query) const { return TaskOf(*core_, now_, query); }
};

using Paths = std::vector<std::string>;

TEST_F(ReadCostTasks, NameEachFileAndHostOnceHoweverOftenItIsAskedAbout) {
  AddNodes(3);
  MakeBound(kAnna, kRootFile, "f", kMiB);
  const std::vector<Paths> sets(10'000, {"/f"});
  const auto task = Ask({sets, {"n2", "n1", "n2"}});
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ(task->files.size(), 1U);
  EXPECT_EQ(task->set_files.size(), 10'000U);
  EXPECT_EQ(task->set_ends.back(), 10'000U);
  EXPECT_EQ(task->hosts, (Paths{"n2", "n1"}));
  EXPECT_EQ(task->nodes, (std::vector<NodeId>{NodeId(2), NodeId(1)}));
  EXPECT_EQ(Ask({{{"/f", "/none"}, {"/none"}, {}}, {}})->set_files,
            (std::vector<uint32_t>{0, 1, 1}));
}

TEST_F(ReadCostTasks, AreRefusedIfTheyAreTooMuchWork) {
  AddNodes(101);
  const auto refused = Ask({std::vector<Paths>(9'901), {}});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      MessageOf(refused.status()),
      HasSubstr("9901 sets on 101 hosts make 1000001 combinations: ask for at most 1000000"));
  EXPECT_TRUE(Ask({std::vector<Paths>(9'900), {}}).ok());
  AddNodes(1001);
  EXPECT_TRUE(Ask({{Paths(9'990, "/none")}, {}}).ok());
  const auto many = Ask({{Paths(9'991, "/none")}, {}});
  EXPECT_EQ(many.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(many.status()), HasSubstr("9991 files on 1001 hosts"));
}

// One file under many names: every lookup counts.
TEST_F(ReadCostTasks, LookUpNoMoreThanSoManyPlacesOfBytes) {
  AddNodes(64);
  const FileId file = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  for (const auto& [hint, value] : std::vector<std::pair<std::string, std::string>>{
           {"replicas", "20"}, {"replicate", "eager"}, {"placement", "stripe"}})
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa." + hint, value, false, false});
  Ok<BindReply>(kAnna, BindRequest{file, kMiB});
  ASSERT_EQ(core_->GetFileStatus("/f")->copies.size(), 64U);
  constexpr size_t kPlaces = size_t{64} * 20;
  Paths paths;
  for (std::string path = "/f"; paths.size() < kReadNodesMax / kPlaces + 10; path = "/" + path)
    paths.push_back(path);
  const auto task = Ask({{paths}, {"n1"}});
  ASSERT_TRUE(task.ok()) << task.status();
  for (size_t i = 0; i < paths.size(); ++i) {
    const ReadableFile& each = task->files.at(i);
    EXPECT_EQ(each.failure.has_value(), i * kPlaces >= kReadNodesMax) << i;
    if (each.failure) {
      EXPECT_EQ(each.failure->reason, ErrorReason::kArgumentTooBig);
      EXPECT_FALSE(each.layout.bound());
    }
  }
}

// ---- on the forecasts' thread

class ForecastsTest : public ::testing::Test {
 protected:
  // Returns when everything asked for earlier is done.
  void Wait(Forecasts& forecasts) {
    std::promise<Status> answered;
    forecasts.PredictReads(
        {}, [&](const Status& status, const ReadCostAnswer&) { answered.set_value(status); });
    EXPECT_TRUE(answered.get_future().get().ok());
  }
  const predict::Platform platform_{};
};

TEST_F(ForecastsTest, OfNodeCountsThatNobodyHasBegunWithOnlyTheLastIsForecastFor) {
  Forecasts forecasts(platform_);
  std::promise<void> began, go_on;
  forecasts.PredictReads({}, [&](const Status&, const ReadCostAnswer&) {
    began.set_value();
    go_on.get_future().wait();
  });
  began.get_future().wait();
  for (const uint32_t nodes : {5U, 3U, 2U}) EXPECT_FALSE(forecasts.TakeCopies(nodes).has_value());
  go_on.set_value();
  Wait(forecasts);
  const auto forecast = forecasts.TakeCopies(2);
  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->nodes, 2U);
  Wait(forecasts);
  EXPECT_FALSE(forecasts.TakeCopies(2).has_value()) << "it is told once";
  // A forecast that was displaced by another is requested again.
  EXPECT_FALSE(forecasts.TakeCopies(3).has_value());
  Wait(forecasts);
  EXPECT_EQ(forecasts.TakeCopies(2)->nodes, 3U);
}

TEST_F(ForecastsTest, QuestionsAreRefusedWhenItStopsAndWhenNobodyWaitsAnyMore) {
  const auto answer_of = [](Forecasts& forecasts) {
    std::promise<Status> answered;
    forecasts.PredictReads({.set_ends = {0}}, [&](const Status& status, const ReadCostAnswer&) {
      answered.set_value(status);
    });
    return answered.get_future().get().code();
  };
  Forecasts late(platform_, Duration{-1});
  EXPECT_EQ(answer_of(late), StatusCode::kDeadlineExceeded);
  Forecasts stopping(platform_);
  EXPECT_EQ(answer_of(stopping), StatusCode::kOk);
  stopping.Stop();
  EXPECT_EQ(answer_of(stopping), StatusCode::kUnavailable);
}

// ---- over gRPC

// A file of two chunks, on n1 and n2.
void MakeStriped(TestClient& client, const std::string& name) {
  MakeRequest make = client.MakeOf(kRootFile, name);
  make.open = true;
  make.hints = {{"chunk_size", "1048576"}};
  CommitRequest commit;
  commit.file = make.file;
  commit.size_bytes = 2 << 20;
  const auto bound = client.api().Call({make, BindRequest{make.file, 1}}, kWaitMax);
  const auto& access = std::get<BindReply>(bound.back()).access;
  for (const NodeId node : access.layout.Nodes()) commit.nodes.push_back({node, 1 << 20, 0});
  commit.generation = access.generation;
  commit.last_close = true;
  EXPECT_TRUE(std::holds_alternative<AttributesReply>(client.Ask(commit)));
}

TEST_F(ManagerServiceTest, CostsOfReadingAreAnsweredInBulkBestHostFirst) {
  options_.platform.emplace();
  options_.platform->client.receive.ns_per_byte = 1;
  StartServer();
  std::vector<std::unique_ptr<TestNode>> nodes;
  for (const char* name : {"n1", "n2", "n3"}) {
    nodes.push_back(std::make_unique<TestNode>(server_->address()));
    nodes.back()->Register(RegistrationOf(name));
    ASSERT_TRUE(nodes.back()->Read().has_value());
    NodeHeartbeat heartbeat;
    heartbeat.limit_bytes = 1 << 30;
    nodes.back()->Heartbeat(heartbeat);
  }
  const auto anna = Client(1);
  const MakeRequest tiny = anna->MakeOf(kRootFile, "tiny");
  anna->api().Call({tiny, CommitOf(tiny.file, "tiny bytes")}, kWaitMax);
  MakeStriped(*anna, "striped");

  sai::AdminClient admin(server_->address(), std::nullopt);
  const auto answer =
      admin.PredictReads({{{"/striped", "/tiny"}, {"/tiny", "/none"}, {"/"}, {}}, {}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->hosts, (std::vector<std::string>{"n1", "n2", "n3"}));
  ASSERT_EQ(answer->sets.size(), 4u);
  const ReadSetCost& set = answer->sets[0];
  ASSERT_EQ(set.hosts.size(), 3u);
  for (const HostReadCost& host : set.hosts)
    EXPECT_EQ(host.cost.local_bytes + host.cost.remote_bytes, (2u << 20) + 10);
  EXPECT_GE(set.hosts[0].cost.local_bytes, set.hosts[2].cost.local_bytes);
  EXPECT_LT(set.hosts[0].cost.time, set.hosts[2].cost.time);
  EXPECT_EQ(answer->sets[1].failure->code, StatusCode::kNotFound);
  EXPECT_THAT(answer->sets[1].failure->message, HasSubstr("'/none'"));
  EXPECT_THAT(answer->sets[2].failure->message, HasSubstr("'/' is not a regular file"));
  EXPECT_EQ(answer->sets[3].hosts.at(0).cost, ReadCost{});

  const auto some = admin.PredictReads({{{"/striped"}}, {"n3"}});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->sets[0].hosts.size(), 1u);
  EXPECT_THAT(MessageOf(admin.PredictReads({{{"/tiny"}}, {"n1", "n9"}}).status()),
              HasSubstr("'n9' is not one of the 3 storage nodes of this cluster"));
  // More than one call accepts, and more than any call accepts.
  const std::vector<std::vector<std::string>> many(25'000, {"/tiny"});
  const auto all = admin.PredictReads({many, {}});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->sets.size(), many.size());
  EXPECT_THAT(
      MessageOf(admin.PredictReads({{std::vector<std::string>(10'001, "/tiny")}, {}}).status()),
      HasSubstr("sets.paths has 10001 entries, at most 10000 are allowed"));
}

TEST_F(ManagerServiceTest, WithoutAPlatformNothingIsPredicted) {
  StartServer();
  sai::AdminClient admin(server_->address(), std::nullopt);
  const auto answer = admin.PredictReads({{{"/a"}}, {"n1"}});
  EXPECT_EQ(answer.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(answer.status()), HasSubstr("--platform FILE"));
}

TEST_F(ManagerServiceTest, AutomaticCopiesFollowThePlatformAndTheNumberOfNodesAlsoOverARestart) {
  options_.platform.emplace();
  StartServer();
  TestNode node(server_->address());
  node.Register(RegistrationOf("n1"));
  ASSERT_TRUE(node.Read().has_value());
  const auto note_of = [this] {
    sai::AdminClient admin(server_->address(), std::nullopt);
    EXPECT_TRUE(admin.SetHint("/", {"replicas", "auto"}).ok());
    const auto explained = admin.ExplainHints("/new");
    for (const ExplainedHint& hint : explained->hints)
      if (hint.name == "replicas") return hint.note;
    return std::string();
  };
  std::string note;
  for (int i = 0; i < 100 && note.find("on 1 node") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    note = note_of();
  }
  EXPECT_THAT(note, HasSubstr("1 copy, predicted best for a long file"));
  // The next manager knows it from its first command on.
  server_.reset();
  StartServer();
  sai::AdminClient admin(server_->address(), std::nullopt);
  const auto explained = admin.ExplainHints("/new");
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_THAT(explained->hints,
              ::testing::Contains(::testing::Field(&ExplainedHint::note, HasSubstr("on 1 node"))));
}

TEST_F(ManagerServiceTest, MakesAreQuickBesideQuestionsAboutFilesWithManyCopies) {
  options_.platform.emplace();
  StartServer();
  std::vector<std::unique_ptr<TestNode>> nodes;
  for (int i = 1; i <= 24; ++i) {
    nodes.push_back(std::make_unique<TestNode>(server_->address()));
    nodes.back()->Register(RegistrationOf("n" + std::to_string(i)));
    ASSERT_TRUE(nodes.back()->Read().has_value());
    NodeHeartbeat heartbeat;
    heartbeat.limit_bytes = 1 << 30;
    nodes.back()->Heartbeat(heartbeat);
  }
  const auto anna = Client(1);
  MakeRequest make = anna->MakeOf(kRootFile, "f");
  make.open = true;
  make.hints = {{"replicas", "24"}, {"replicate", "eager"}};
  anna->api().Call({make, BindRequest{make.file, 1}}, kWaitMax);
  std::atomic<bool> enough = false;
  std::atomic<int> answered = 0;
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i)
    askers.emplace_back([&, address = server_->address()] {
      sai::AdminClient admin(address, std::nullopt);
      const std::vector<std::vector<std::string>> sets(10'000, {"/f"});
      while (!enough) answered += admin.PredictReads({sets, {"n1"}}).ok() ? 1 : 0;
    });
  std::chrono::steady_clock::duration slowest{};
  for (int i = 0; i < 1000 && (i < 10 || answered < 4); ++i) {
    const auto began = std::chrono::steady_clock::now();
    const MakeRequest each = anna->MakeOf(kRootFile, std::to_string(i));
    EXPECT_EQ(anna->api().Call({each, CommitOf(each.file, "tiny bytes")}, kWaitMax).size(), 2U);
    slowest = std::max(slowest, std::chrono::steady_clock::now() - began);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  enough = true;
  for (std::thread& asker : askers) asker.join();
  EXPECT_GE(answered, 4);
  EXPECT_LT(slowest, std::chrono::seconds(2));
}

TEST_F(ManagerServiceTest, QuestionsAreAnsweredOrRefusedWhileTheManagerStops) {
  options_.platform.emplace();
  StartServer();
  TestNode node(server_->address());
  node.Register(RegistrationOf("n1"));
  ASSERT_TRUE(node.Read().has_value());
  const auto anna = Client(1);
  const MakeRequest tiny = anna->MakeOf(kRootFile, "tiny");
  anna->api().Call({tiny, CommitOf(tiny.file, "tiny bytes")}, kWaitMax);
  constexpr size_t kAskers = 8;
  std::atomic<size_t> answered = 0;
  std::vector<Status> last(kAskers);
  std::vector<std::thread> askers;
  for (size_t i = 0; i < kAskers; ++i)
    askers.emplace_back([&, i, address = server_->address()] {
      sai::AdminClient admin(address, std::nullopt);
      const std::vector<std::vector<std::string>> many(10'000, {"/tiny"});
      for (; last[i].ok(); answered += last[i].ok() ? 1U : 0U)
        last[i] = admin.PredictReads({many, {"n1"}}).status();
    });
  for (int i = 0; i < 3000 && answered < 2 * kAskers; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(answered, 2 * kAskers);
  server_->Stop();
  for (std::thread& asker : askers) asker.join();
  for (const Status& status : last)
    EXPECT_THAT(status.code(), ::testing::AnyOf(StatusCode::kUnavailable, StatusCode::kCancelled))
        << status;
}

}  // namespace
}  // namespace mosa::manager
