// How long requests stay: the manager's own rows, and what it passes on from nodes and clients.
#include "proto/convert/residence.h"

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "client-sai/api/admin_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manager/service/service_fixture.h"
#include "manager/service/test_client.h"

namespace mosa::manager {
namespace {

using ::testing::HasSubstr;

class ResidenceTest : public ManagerServiceTest {
 protected:
  std::unique_ptr<sai::AdminClient> Admin() const {
    return std::make_unique<sai::AdminClient>(server_->address(), std::nullopt);
  }
  // A node that is registered, and its id.
  std::pair<std::unique_ptr<TestNode>, NodeId> Node(const std::string& name) {
    auto node = std::make_unique<TestNode>(server_->address());
    node->Register(RegistrationOf(name));
    const NodeId id = std::get<NodeRegistered>(node->Read().value()).node;
    return {std::move(node), id};
  }
  std::future<Result<ResidenceSnapshot>> AskLater(const ResidenceSource& source) const {
    return std::async(std::launch::async,
                      [admin = Admin(), source] { return admin->GetResidence(source); });
  }
};

// The question that comes next; other orders are not for these tests.
ResidenceQuery NextQuery(TestNode& node) {
  while (true) {
    const ManagerToNode message = node.Read().value();
    if (const auto* const query = std::get_if<ResidenceQuery>(&message)) return *query;
  }
}

TEST_F(ResidenceTest, TheManagerCountsWhatItHasAnsweredByClass) {
  StartServer();
  const auto anna = Client(1);
  const MakeRequest make = anna->MakeOf(kRootFile, "a");
  anna->api().Call({make, CommitOf(make.file, "bytes")});
  for (int i = 0; i < 3; ++i) anna->Ask(GetAttributesRequest{make.file});
  const ResidenceSnapshot snapshot = Admin()->GetResidence({}).value();
  EXPECT_EQ(snapshot.component, "manager");
  EXPECT_LE(snapshot.started, snapshot.taken);
  std::map<std::string, DurationCounts> rows;
  for (const ResidenceRow& row : snapshot.rows) rows.emplace(row.name, row.times);
  EXPECT_EQ(rows["make+"].Count(), 1U);
  EXPECT_EQ(rows["make+.core"].Count(), 1U);
  EXPECT_EQ(rows["get_attributes"].Count(), 3U);
  EXPECT_EQ(rows["get_attributes.core"].Count(), 3U);
  EXPECT_GE(rows["get_attributes"].sum_ns, rows["get_attributes.core"].sum_ns);
  EXPECT_GE(rows["log"].Count(), 1U);
  EXPECT_EQ(rows.count("rename"), 0U);
}

TEST_F(ResidenceTest, WhatANodeAnswersIsPassedOn) {
  StartServer();
  const auto [node, id] = Node("n1");
  auto answer = AskLater(id);
  ResidenceSnapshot own{
      .component = "storage", .started = {1}, .taken = {2}, .rows = {}, .amounts = {}};
  own.rows.push_back({"read", "h2", {}});
  own.rows[0].times.Add(Milliseconds(1));
  node->Answer(ReportOf(NextQuery(*node), own));
  EXPECT_TRUE(answer.get().value() == own);
}

TEST_F(ResidenceTest, AClientAnswersByItself) {
  StartServer();
  const auto anna = Client(1);
  const auto answer = Admin()->GetResidence(ClientId{1});
  EXPECT_TRUE(answer.ok()) << MessageOf(answer.status());
}

TEST_F(ResidenceTest, WhoIsNotConnectedIsNotWaitedFor) {
  StartServer();
  for (const ResidenceSource& source :
       {ResidenceSource(NodeId{99}), ResidenceSource(ClientId{9})}) {
    const Status status = Admin()->GetResidence(source).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(status), HasSubstr("not connected"));
  }
}

TEST_F(ResidenceTest, WhoDoesNotAnswerIsWaitedForFiveSecondsAndNobodyElseWaits) {
  StartServer();
  const auto [silent, silent_id] = Node("silent");
  const auto [node, id] = Node("n1");
  auto nothing = AskLater(silent_id);
  const ResidenceQuery lost = NextQuery(*silent);
  EXPECT_TRUE(Admin()->GetClusterStatus().ok());
  auto answer = AskLater(id);
  node->Answer(ReportOf(NextQuery(*node), {}));
  EXPECT_TRUE(answer.get().ok());
  const Status status = nothing.get().status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("5 s"));
  // What comes too late, or what nobody has asked for, changes nothing.
  silent->Answer(ReportOf(lost, {}));
  silent->Answer({.query = 12'345, .snapshot = "?"});
  EXPECT_TRUE(Admin()->GetResidence({}).ok());
}

TEST_F(ResidenceTest, WhatIsNoSnapshotIsRefused) {
  StartServer();
  const auto [node, id] = Node("n1");
  auto answer = AskLater(id);
  node->Answer({.query = NextQuery(*node).query, .snapshot = "\xff\xff\xff"});
  EXPECT_EQ(answer.get().status().code(), StatusCode::kDataLoss);
}

TEST_F(ResidenceTest, AnOpenQuestionDoesNotKeepTheManagerFromStopping) {
  StartServer();
  const auto [node, id] = Node("n1");
  auto answer = AskLater(id);
  NextQuery(*node);
  server_->Stop();
  EXPECT_FALSE(answer.get().ok());
}

}  // namespace
}  // namespace mosa::manager
