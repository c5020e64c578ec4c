// What the manager answers from forecasts: the cost of reading, and the number of copies.
#include "manager/service/read_answers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
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

// Reading costs a call, and a link nine times as much as a byte of one's own.
Forecasts FewForecasts() {
  Forecasts forecasts;
  forecasts.reads.in_manager = {{0, 1000}};
  forecasts.reads.whole = forecasts.reads.by_mount = {{0, 2000}, {1000, 3000}};
  StripeCurves& stripe = forecasts.reads.stripes[kMiB][1];
  stripe.remote = {{0, 10'000}, {1000, 19'000}};
  stripe.exposed[1] = {{0, 0}};
  forecasts.copies[1] = {{65'536, 1}};
  return forecasts;
}

// ---- one question

class ReadAnswers : public CoreFixture {
 protected:
  ReadAnswers() { Start(kAnna); }
  void AddNodes(int count) {
    for (int i = 1; i <= count; ++i) AddNode("n" + std::to_string(i));
  }
  Result<ReadCostAnswer> Ask(const ReadCostQuery& query) const {
    return AnswerReads(*core_, now_, FewForecasts().reads, query);
  }
};

using Paths = std::vector<std::string>;

TEST_F(ReadAnswers, AddUpFilesAndNameEachHostOnceTheFastestFirst) {
  AddNodes(3);
  MakeBound(kAnna, kRootFile, "f", kMiB);
  const auto answer = Ask({{{"/f", "/f"}, {}, {"/f", "/none"}}, {"n2", "n1", "n2"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->hosts, (Paths{"n2", "n1"}));
  EXPECT_EQ(answer->sets[1].hosts, (std::vector<HostReadCost>{{0, {}}, {1, {}}}));
  EXPECT_TRUE(answer->sets[2].failure.has_value());
  EXPECT_TRUE(answer->sets[2].hosts.empty());
  // The same for each host alone, and for one more: sums do not depend on who else is asked about.
  const auto all = Ask({{{"/f"}}, {}});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->sets[0].hosts.size(), 3U);
  for (const HostReadCost& host : all->sets[0].hosts)
    EXPECT_EQ(host.cost.local_bytes + host.cost.remote_bytes, 3 * kMiB);
  for (const HostReadCost& host : answer->sets[0].hosts) {
    const auto alone = Ask({{{"/f"}}, {answer->hosts[host.host]}});
    EXPECT_EQ(host.cost.time.ns, 2 * alone->sets[0].hosts[0].cost.time.ns);
    EXPECT_EQ(host.cost.local_bytes, 2 * alone->sets[0].hosts[0].cost.local_bytes);
  }
}

TEST_F(ReadAnswers, AreRefusedIfTheyAreTooMuchWork) {
  AddNodes(101);
  const size_t sets_max = kReadAnswersMax / 101;
  const auto refused = Ask({std::vector<Paths>(sets_max + 1), {}});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("sets on 101 hosts make 50096 combinations: "
                                                     "ask for at most 50000 at once"));
  EXPECT_TRUE(Ask({std::vector<Paths>(sets_max), {}}).ok());
  AddNodes(1001);
  const size_t files_max = kReadAddendsMax / 1001;
  EXPECT_TRUE(Ask({{Paths(files_max, "/none")}, {}}).ok());
  const auto many = Ask({{Paths(files_max + 1, "/none")}, {}});
  EXPECT_EQ(many.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(many.status()), HasSubstr("files on 1001 hosts"));
}

// One file under many names: every lookup counts.
TEST_F(ReadAnswers, LookUpNoMoreThanSoManyPlacesOfBytes) {
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
  std::vector<Paths> sets;
  for (const std::string& path : paths) sets.push_back({path});
  const auto answer = Ask({sets, {"n1"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto& failure = answer->sets[i].failure;
    EXPECT_EQ(failure.has_value(), i * kPlaces >= kReadNodesMax) << i;
    EXPECT_TRUE(!failure || failure->reason == ErrorReason::kArgumentTooBig);
  }
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
  options_.forecasts = FewForecasts();
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

TEST_F(ManagerServiceTest, WithoutForecastsNothingIsPredicted) {
  StartServer();
  sai::AdminClient admin(server_->address(), std::nullopt);
  const auto answer = admin.PredictReads({{{"/a"}}, {"n1"}});
  EXPECT_EQ(answer.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(answer.status()), HasSubstr("--forecasts FORECASTS"));
}

TEST_F(ManagerServiceTest, AutomaticCopiesFollowTheForecastsFromTheFirstCommandOn) {
  options_.forecasts = FewForecasts();
  StartServer();
  sai::AdminClient admin(server_->address(), std::nullopt);
  EXPECT_TRUE(admin.SetHint("/", {"replicas", "auto"}).ok());
  const auto explained = admin.ExplainHints("/new");
  ASSERT_TRUE(explained.ok()) << explained.status();
  const auto note =
      HasSubstr("1 copy, predicted best for a long file (its size is not known yet) on 1 node");
  EXPECT_THAT(explained->hints, ::testing::Contains(::testing::Field(&ExplainedHint::note, note)));
}

TEST_F(ManagerServiceTest, MakesAreQuickBesideQuestionsAboutFilesWithManyCopies) {
  options_.forecasts = FewForecasts();
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
      const std::vector<std::vector<std::string>> sets(2'000, {"/f"});
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

}  // namespace
}  // namespace mosa::manager
