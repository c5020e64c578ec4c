// Residence times: the manager's own rows, and what it relays from nodes and clients.
#include "proto/convert/residence.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "client-sai/api/admin_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manager/service/service_fixture.h"
#include "manager/service/test_client.h"
#include "mosa/v1/session.grpc.pb.h"
#include "proto/convert/session.h"

namespace mosa::manager {
namespace {

using ::testing::HasSubstr;

class ResidenceTest : public ManagerServiceTest {
 protected:
  // Long enough for tests that are not about silence, however busy the machine is.
  ResidenceTest() { options_.residence_wait = Seconds(60); }
  std::unique_ptr<sai::AdminClient> Admin() const {
    return std::make_unique<sai::AdminClient>(server_->address(), std::nullopt);
  }
  std::map<std::string, uint64_t> Counts() const {
    std::map<std::string, uint64_t> counts;
    const ResidenceSnapshot snapshot = Admin()->GetResidence({}).value();
    for (const ResidenceRow& row : snapshot.rows) counts.emplace(row.name, row.times.Count());
    return counts;
  }
  // Returns a registered node and its id.
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

// Returns the next question; other orders are skipped.
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
  anna->api().Call({make, CommitOf(make.file, "bytes")}, kWaitMax);
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

TEST_F(ResidenceTest, WaitingForALockIsAClassOfItsOwn) {
  StartServer();
  const auto anna = Client(1);
  const MakeRequest make = anna->MakeOf(kRootFile, "a");
  anna->Ask(make);
  SetLockRequest lock{.file = make.file, .lock = {}, .wait = false};
  lock.lock = {.type = LockType::kExclusive, .owner = 1, .whole_file = true};
  anna->Ask(lock);
  lock.wait = true;
  anna->Ask(lock);
  anna->Ask(lock);
  std::map<std::string, uint64_t> counts = Counts();
  EXPECT_EQ(counts["set_lock"], 1U);
  EXPECT_EQ(counts["set_lock_held"], 2U);
}

// On a stream of its own, so that the test can break it.
TEST_F(ResidenceTest, WhatIsRepeatedOnANewStreamIsCountedOnce) {
  StartServer();
  const auto stub = v1::ClientSessionService::NewStub(MakeChannel(server_->address(), {}));
  const auto ask_anew = [&] {
    grpc::ClientContext context;
    const auto stream = stub->Session(&context);
    v1::ClientMessage start;
    start.mutable_start()->set_client_id(7);
    start.mutable_start()->set_host_identity("test host");
    stream->Write(start);
    RequestEnvelope envelope;
    envelope.id = RequestId{1};
    envelope.requests = {GetAttributesRequest{kRootFile}};
    v1::ClientMessage request;
    ToProto(envelope, &request);
    stream->Write(request);
    v1::ManagerMessage answer;
    while (stream->Read(&answer) && !answer.has_replies()) {
    }
    EXPECT_TRUE(answer.has_replies());
    context.TryCancel();
    stream->Finish();
  };
  ask_anew();
  ask_anew();
  std::map<std::string, uint64_t> counts = Counts();
  EXPECT_EQ(counts["get_attributes"], 1U);
  EXPECT_EQ(counts["get_attributes.core"], 1U);
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

TEST_F(ResidenceTest, ADirectoryThatNoDaemonWouldTakeIsNotPassedOn) {
  StartServer();
  const auto [node, id] = Node("h1");
  for (const std::string& directory :
       {std::string(), std::string("relative"), "/" + std::string(4096, 'a')}) {
    const auto answer = Admin()->GetResidence(
        id, {.query = 0, .log_order = RequestLogOrder::kBegin, .log_directory = directory});
    EXPECT_EQ(answer.status().code(), StatusCode::kInvalidArgument);
  }
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

TEST_F(ResidenceTest, NobodyWaitsForOneWhoDoesNotAnswer) {
  StartServer();
  const auto [silent, silent_id] = Node("silent");
  const auto [node, id] = Node("n1");
  auto nothing = AskLater(silent_id);
  NextQuery(*silent);
  EXPECT_TRUE(Admin()->GetClusterStatus().ok());
  auto answer = AskLater(id);
  node->Answer(ReportOf(NextQuery(*node), {}));
  EXPECT_TRUE(answer.get().ok());
  server_->Stop();
  EXPECT_FALSE(nothing.get().ok());
}

TEST_F(ResidenceTest, WhoDoesNotAnswerIsWaitedForSoLong) {
  options_.residence_wait = Seconds(1);
  StartServer();
  const auto [silent, id] = Node("silent");
  auto nothing = AskLater(id);
  const ResidenceQuery lost = NextQuery(*silent);
  const Status status = nothing.get().status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("1 s"));
  // Late or unsolicited answers change nothing.
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

}  // namespace
}  // namespace mosa::manager
