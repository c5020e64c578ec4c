// The manager's service as clients, nodes and users see it.
#include <arpa/inet.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "client-sai/api/admin_client.h"
#include "common/base/check.h"
#include "common/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manager/service/core_driver.h"
#include "manager/service/manager_server.h"
#include "manager/service/service_fixture.h"
#include "manager/service/test_client.h"
#include "mosa/v1/manager_service.grpc.pb.h"
#include "mosa/v1/node.grpc.pb.h"
#include "mosa/v1/session.grpc.pb.h"
#include "proto/convert/bulk_hello.h"
#include "proto/convert/capability.h"
#include "proto/convert/session.h"
#include "proto/convert/status.h"

namespace mosa::manager {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ManagerServiceTest, FilesMadeByOneClientAreSeenByAnother) {
  StartServer();
  const auto anna = Client(1);
  const auto ben = Client(2);
  EXPECT_EQ(anna->ready().cluster_name, "mosa");

  MakeRequest make = anna->MakeOf(kRootFile, "a");
  make.open = true;
  const FileId file = make.file;
  const auto replies = anna->api().Call({make, CommitOf(file, "tiny bytes")}, kWaitMax);
  ASSERT_EQ(replies.size(), 2u);
  ASSERT_TRUE(std::holds_alternative<AttributesReply>(replies[1]))
      << std::get<Failure>(replies[1]).message;

  const Reply found = ben->Ask(LookupRequest{.parent = kRootFile, .name = "a"});
  ASSERT_TRUE(std::holds_alternative<EntryReply>(found));
  EXPECT_EQ(std::get<EntryReply>(found).entry.attributes.size_bytes, 10u);
  const Reply opened = ben->Ask(OpenRequest{.file = file, .write = false, .task = ""});
  ASSERT_TRUE(std::holds_alternative<OpenReply>(opened));
  EXPECT_EQ(std::get<OpenReply>(opened).access.inline_data, "tiny bytes");
}

TEST_F(ManagerServiceTest, RecallsReachWhoHasCachedAndTheChangeWaitsForThem) {
  StartServer();
  const auto anna = Client(1);
  const auto ben = Client(2);
  const MakeRequest make = anna->MakeOf(kRootFile, "a");
  ASSERT_TRUE(std::holds_alternative<MakeReply>(anna->Ask(make)));
  ASSERT_TRUE(std::holds_alternative<AttributesReply>(ben->Ask(GetAttributesRequest{make.file})));
  SetAttributesRequest change;
  change.file = make.file;
  change.permissions = 0600;
  ASSERT_TRUE(std::holds_alternative<AttributesReply>(anna->Ask(change)));
  EXPECT_TRUE(ben->WaitForPush([&make](const std::vector<Push>& pushes) {
    for (const Push& push : pushes) {
      const auto* const recall = std::get_if<RecallPush>(&push);
      if (recall != nullptr && recall->file == make.file) return true;
    }
    return false;
  }));
}

TEST_F(ManagerServiceTest, InlineBytesAreServedAfterARestart) {
  StartServer();
  FileId file;
  {
    const auto anna = Client(1);
    const MakeRequest make = anna->MakeOf(kRootFile, "a");
    file = make.file;
    anna->api().Call({make, CommitOf(file, std::string(5000, 'z'))}, kWaitMax);
  }
  server_->Stop();
  server_.reset();
  StartServer();
  const auto ben = Client(2);
  const Reply opened = ben->Ask(OpenRequest{.file = file, .write = false, .task = ""});
  ASSERT_TRUE(std::holds_alternative<OpenReply>(opened));
  EXPECT_EQ(std::get<OpenReply>(opened).access.inline_data, std::string(5000, 'z'));
}

TEST_F(ManagerServiceTest, CapabilitiesAreGoodForNodesAndForTheirFileOnly) {
  StartServer();
  TestNode node(server_->address());
  node.Register(RegistrationOf("n1"));
  const auto registered = std::get<NodeRegistered>(node.Read().value());
  EXPECT_EQ(registered.cluster_name, "mosa");
  ASSERT_EQ(registered.capability_key.size(), kCapabilityKeyBytes);
  node.Heartbeat({.used_bytes = 0, .limit_bytes = uint64_t{1} << 30, .corrupt_objects = {}});

  const auto anna = Client(1);
  MakeRequest make = anna->MakeOf(kRootFile, "a");
  make.open = true;
  ASSERT_TRUE(std::holds_alternative<MakeReply>(anna->Ask(make)));
  const Reply bound = anna->Ask(BindRequest{.file = make.file, .first_bytes = 1 << 20});
  ASSERT_TRUE(std::holds_alternative<BindReply>(bound)) << std::get<Failure>(bound).message;
  const DataAccess& access = std::get<BindReply>(bound).access;
  ASSERT_TRUE(access.layout.bound());
  EXPECT_EQ(access.layout.Nodes(), std::vector<NodeId>{registered.node});
  const Result<Capability> capability =
      OpenCapability(access.capability, registered.capability_key, registered.now);
  ASSERT_TRUE(capability.ok()) << MessageOf(capability.status());
  EXPECT_EQ(capability->file, make.file);
  EXPECT_EQ(capability->client, ClientId{1});
  EXPECT_TRUE(capability->may_write);
  EXPECT_GT(capability->expires, registered.now);
  EXPECT_LE(capability->expires, registered.now + kCapabilityLifetime + Seconds(5));
  // The client's key for the bulk plane equals the one that nodes derive.
  EXPECT_EQ(anna->ready().bulk_key,
            BulkKeyOf(registered.capability_key, ClientId{1}, anna->ready().era));

  // Removing the file orders the node to drop its object.
  anna->Ask(ReleaseRequest{make.file});
  ASSERT_TRUE(std::holds_alternative<RemoveReply>(
      anna->Ask(RemoveRequest{.parent = kRootFile, .name = "a"})));
  const auto order = std::get<NodeOrder>(node.Read().value());
  EXPECT_EQ(std::get<DropObjectsOrder>(order).files, std::vector<FileId>{make.file});
}

TEST_F(ManagerServiceTest, StatusIsAnswered) {
  StartServer();
  TestNode node(server_->address());
  node.Register(RegistrationOf("n1"));
  node.Read();
  const auto anna = Client(1);
  const MakeRequest make = anna->MakeOf(kRootFile, "a");
  anna->api().Call({make, CommitOf(make.file, "x")}, kWaitMax);

  sai::AdminClient admin(server_->address(), std::nullopt);
  const Result<ClusterStatus> cluster = admin.GetClusterStatus();
  ASSERT_TRUE(cluster.ok()) << MessageOf(cluster.status());
  EXPECT_EQ(cluster->cluster_name, "mosa");
  ASSERT_EQ(cluster->nodes.size(), 1u);
  EXPECT_EQ(cluster->nodes[0].address.name, "n1");
  ASSERT_EQ(cluster->sessions.size(), 1u);
  EXPECT_TRUE(cluster->sessions[0].connected);
  const Result<FileStatus> file = admin.GetFileStatus("/a");
  ASSERT_TRUE(file.ok()) << MessageOf(file.status());
  EXPECT_EQ(file->entry.file, make.file);
  EXPECT_TRUE(file->is_inline);
  EXPECT_EQ(admin.GetFileStatus("/no/such").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(admin.ListLostFiles(10)->size(), 0u);
  EXPECT_EQ(admin.ListLostFiles(0).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ManagerServiceTest, KeepAlivesRenewTheLeaseOfAnIdleSession) {
  StartServer();
  const auto anna = Client(1);
  const int before = anna->leases_renewed();
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_GE(anna->leases_renewed(), before + 2);
}

TEST_F(ManagerServiceTest, StoppingTellsSessions) {
  StartServer();
  const auto anna = Client(1);
  server_->Stop();
  EXPECT_TRUE(anna->WaitForPush([](const std::vector<Push>& pushes) {
    return !pushes.empty() && std::holds_alternative<SessionEndPush>(pushes.back());
  }));
}

TEST_F(ManagerServiceTest, SessionsGoOnAfterARestartAndRepeatWhatWasNotAnswered) {
  StartServer();
  const std::string address = server_->address();
  const auto anna = Client(1);
  server_->Stop();
  server_.reset();
  std::thread restart([this, &address] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    options_.listen = address;
    StartServer();
  });
  // Sent without a listener; the next manager answers.
  const Reply made = anna->Ask(anna->MakeOf(kRootFile, "late"));
  restart.join();
  EXPECT_TRUE(std::holds_alternative<MakeReply>(made)) << std::get<Failure>(made).message;
  EXPECT_TRUE(anna->WaitForSessions(2));
}

TEST_F(ManagerServiceTest, AQuestionIsAskedAgainWhileTheManagerRestarts) {
  StartServer();
  const std::string address = server_->address();
  sai::AdminClient admin(address, std::nullopt);
  ASSERT_TRUE(admin.GetClusterStatus().ok());
  server_->Stop();
  server_.reset();
  std::thread restart([this, &address] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    options_.listen = address;
    StartServer();
  });
  const auto status = admin.GetClusterStatus();
  restart.join();
  EXPECT_TRUE(status.ok()) << status.status();
}

// ---- bad input

TEST_F(ManagerServiceTest, ARequestOutOfBoundsIsAnsweredAndTheSessionGoesOn) {
  StartServer();
  const auto anna = Client(1);
  const Reply refused =
      anna->Ask(LookupRequest{.parent = kRootFile, .name = std::string(256, 'n')});
  ASSERT_TRUE(std::holds_alternative<Failure>(refused));
  EXPECT_EQ(std::get<Failure>(refused).reason, ErrorReason::kNameTooLong);
  EXPECT_TRUE(std::holds_alternative<AttributesReply>(anna->Ask(GetAttributesRequest{kRootFile})));
}

TEST_F(ManagerServiceTest, TooLongMessagesAreRefusedByBothSides) {
  StartServer();
  const auto anna = Client(1);
  std::vector<Request> many;
  for (int i = 0; i < 2000; ++i) {
    CommitRequest commit = CommitOf(FileId{2}, std::string(kInlineBytesMax, 'x'));
    many.emplace_back(std::move(commit));
  }
  const auto replies = anna->api().Call(many, kWaitMax);
  EXPECT_EQ(std::get<Failure>(replies.back()).reason, ErrorReason::kArgumentTooBig);

  // A client that ignores the limit.
  const auto channel = MakeChannel(server_->address(), std::nullopt);
  const auto stub = v1::ClientSessionService::NewStub(channel);
  grpc::ClientContext context;
  const auto stream = stub->Session(&context);
  v1::ClientMessage message;
  message.mutable_start()->set_client_id(7);
  message.mutable_start()->set_mount_point(std::string(17 << 20, 'm'));
  stream->Write(message);
  v1::ManagerMessage in;
  EXPECT_FALSE(stream->Read(&in));
  EXPECT_EQ(FromGrpc(stream->Finish()).code(), StatusCode::kResourceExhausted);

  EXPECT_TRUE(std::holds_alternative<AttributesReply>(anna->Ask(GetAttributesRequest{kRootFile})));
}

TEST_F(ManagerServiceTest, StreamsThatDoNotBeginAsTheyShouldAreEnded) {
  StartServer();
  const auto channel = MakeChannel(server_->address(), std::nullopt);
  const auto stub = v1::ClientSessionService::NewStub(channel);
  const auto end_of = [&stub](const std::vector<v1::ClientMessage>& messages) {
    grpc::ClientContext context;
    const auto stream = stub->Session(&context);
    for (const v1::ClientMessage& message : messages) stream->Write(message);
    v1::ManagerMessage in;
    while (stream->Read(&in)) continue;
    return FromGrpc(stream->Finish());
  };
  v1::ClientMessage request;
  request.mutable_requests()->set_id(1);
  v1::ClientMessage start;
  start.mutable_start()->set_client_id(3);
  EXPECT_THAT(MessageOf(end_of({request})), HasSubstr("before the session was started"));
  EXPECT_THAT(MessageOf(end_of({start, start})), HasSubstr("started twice"));
  EXPECT_EQ(end_of({v1::ClientMessage()}).code(), StatusCode::kInvalidArgument);

  TestNode node(server_->address());
  node.Heartbeat({});
  EXPECT_FALSE(node.Read().has_value());
  EXPECT_EQ(node.Finish().code(), StatusCode::kInvalidArgument);
}

TEST_F(ManagerServiceTest, WhoSpeaksNoVersionOfTheManagersIsToldWhoIsToBeUpgraded) {
  StartServer();
  const auto refusal_of = [this](const std::string& agent) {
    grpc::ChannelArguments arguments;
    arguments.SetUserAgentPrefix(agent);
    const auto channel = grpc::CreateCustomChannel(server_->address(),
                                                   grpc::InsecureChannelCredentials(), arguments);
    grpc::ClientContext mount_context, node_context, admin_context;
    const auto mount = v1::ClientSessionService::NewStub(channel)->Session(&mount_context);
    v1::ManagerMessage to_mount;
    EXPECT_FALSE(mount->Read(&to_mount));
    const auto node = v1::NodeSessionService::NewStub(channel)->Session(&node_context);
    v1::ManagerToNode to_node;
    EXPECT_FALSE(node->Read(&to_node));
    v1::GetClusterStatusResponse response;
    const Status admin = FromGrpc(v1::ManagerService::NewStub(channel)->GetClusterStatus(
        &admin_context, v1::GetClusterStatusRequest(), &response));
    std::vector<std::string> all;
    for (const Status& status : {FromGrpc(mount->Finish()), FromGrpc(node->Finish()), admin}) {
      EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << MessageOf(status);
      all.push_back(MessageOf(status));
    }
    return all;
  };
  EXPECT_THAT(refusal_of("curl"), ElementsAre(HasSubstr("upgrade the mount first"),
                                              HasSubstr("upgrade the storage node first"),
                                              HasSubstr("upgrade the program first")));
  EXPECT_THAT(refusal_of("mosa/1-1"),
              ElementsAre(HasSubstr("the mount version 1: upgrade the mount"),
                          HasSubstr("upgrade the storage node first"),
                          HasSubstr("upgrade the program first")));
  EXPECT_THAT(refusal_of("mosa/7-9"), Each(HasSubstr("upgrade the manager first")));
  const auto anna = Client(1);
  EXPECT_TRUE(std::holds_alternative<AttributesReply>(anna->Ask(GetAttributesRequest{kRootFile})));
}

class RememberingSink final : public ClientSink {
 public:
  void Send(const ManagerMessage& message) override { messages_.push_back(message); }
  void End(const Status&) override { ended_ = true; }
  const std::vector<ManagerMessage>& messages() const { return messages_; }
  bool ended() const { return ended_; }

 private:
  std::vector<ManagerMessage> messages_;
  bool ended_ = false;
};

TEST(CoreDriverTest, AStartThatFindsItsOldSessionRunOutIsAnswered) {
  const auto store = NewMemoryStore();
  CoreDriver driver(std::make_unique<ManagerCore>(ManagerOptions{}), *store,
                    {.capability_key = NewCapabilityKey()});
  SessionStart start;
  start.client = ClientId{1};
  const auto first = std::make_shared<RememberingSink>();
  driver.ClientStarted(first, start);
  driver.ClientGone(first, start.client, /*closed=*/false);
  // The tick is late, as in a process that was stopped.
  std::this_thread::sleep_for(std::chrono::nanoseconds(kSessionLease.ns) +
                              std::chrono::milliseconds(50));
  const auto second = std::make_shared<RememberingSink>();
  driver.ClientStarted(second, start);
  driver.Flush();
  ASSERT_EQ(second->messages().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<SessionReady>(second->messages()[0]));
  EXPECT_FALSE(second->ended());
}

// When it swaps or is overloaded, the loop may need seconds for one batch: each step is fast
// enough, but a keep-alive waits behind the others.
TEST(CoreDriverTest, WhoseSignOfLifeWaitsInASlowRoundIsNotSilent) {
  const auto store = NewMemoryStore();
  CoreDriver driver(std::make_unique<ManagerCore>(ManagerOptions{}), *store,
                    {.capability_key = NewCapabilityKey()});
  const auto anna = std::make_shared<RememberingSink>();
  const auto ben = std::make_shared<RememberingSink>();
  SessionStart start;
  start.client = ClientId{1};
  driver.ClientStarted(anna, start);
  start.client = ClientId{2};
  driver.ClientStarted(ben, start);
  driver.TickIfDue();
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds((kSessionLease + Milliseconds(500)).ns);
  while (std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    driver.ClientAsked(ben, ClientId{2}, {});
  }
  driver.ClientAsked(anna, ClientId{1}, {});
  driver.TickIfDue();
  driver.Flush();
  EXPECT_FALSE(anna->ended());
}

TEST_F(ManagerServiceTest, GarbageOnThePortHarmsNobody) {
  StartServer();
  const auto anna = Client(1);
  const std::string address = server_->address();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Rng rng(4711);
  for (int round = 0; round < 50; ++round) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    std::string garbage = round % 2 == 0 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "";
    for (uint64_t n = rng.Below(5000); n > 0; --n) garbage += static_cast<char>(rng.Below(256));
    ASSERT_GE(::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
    ::close(fd);
  }
  EXPECT_TRUE(std::holds_alternative<AttributesReply>(anna->Ask(GetAttributesRequest{kRootFile})));
}

// ---- hints and locations

TEST_F(ManagerServiceTest, RulesAreAddedAskedForRemovedAndKeptOverARestart) {
  StartServer();
  sai::AdminClient admin(server_->address(), std::nullopt);
  const auto first = admin.AddHintRule("/a/*.dat", {{"pattern", "reduce:g"}, {"chunk_size", "4M"}});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = admin.AddHintRule("/a/**", {{"strict", "1"}});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(admin.AddHintRule("a", {{"strict", "1"}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(admin.AddHintRule("/a", {{"replicas", "0"}}).status()),
              HasSubstr("'0' is not a value of hint 'replicas': allowed are 1 to 64, or auto"));
  server_->Stop();
  server_.reset();
  StartServer();
  sai::AdminClient again(server_->address(), std::nullopt);
  const std::vector<HintRule> expected = {
      {*first, "/a/*.dat", {{"chunk_size", "4194304"}, {"pattern", "reduce:g"}}},
      {*second, "/a/**", {{"strict", "1"}}}};
  EXPECT_EQ(*again.ListHintRules(), expected);
  const auto explained = again.ExplainHints("/a/x.dat");
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_FALSE(explained->exists);
  EXPECT_THAT(explained->hints, ::testing::Contains(ExplainedHint{
                                    "placement", "collocate:g", HintSource::kPattern, "reduce:g"}));
  EXPECT_TRUE(again.RemoveHintRule(*first).ok());
  EXPECT_EQ(again.RemoveHintRule(*first).code(), StatusCode::kNotFound);
  EXPECT_EQ(again.ListHintRules()->size(), 1u);
  EXPECT_TRUE(again.SetHint("/", {"lifetime", "temporary"}).ok());
  EXPECT_EQ(again.SetHint("/none", {"lifetime", "keep"}).code(), StatusCode::kNotFound);
  EXPECT_EQ(again.SetHint("/", {"lifetime", "long"}).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      again.ExplainHints("/b")->hints,
      ::testing::Contains(ExplainedHint{"lifetime", "temporary", HintSource::kDirectory, "/"}));
}

TEST_F(ManagerServiceTest, LocationsOfTenThousandPathsComeInOneCall) {
  StartServer();
  TestNode node(server_->address());
  node.Register(RegistrationOf("n1"));
  ASSERT_TRUE(node.Read().has_value());
  const auto anna = Client(1);
  const MakeRequest make = anna->MakeOf(kRootFile, "a");
  ASSERT_EQ(anna->api().Call({make, CommitOf(make.file, "tiny bytes")}, kWaitMax).size(), 2u);
  std::vector<std::string> paths;
  for (int i = 0; i < 10'000; ++i) paths.push_back(i % 2 == 0 ? "/a" : "/b");
  sai::AdminClient admin(server_->address(), std::nullopt);
  const auto locations = admin.ListLocations(paths, false);
  ASSERT_TRUE(locations.ok()) << locations.status();
  ASSERT_EQ(locations->size(), paths.size());
  EXPECT_FALSE(locations->at(9998).failure.has_value());
  EXPECT_EQ(locations->at(9998).size_bytes, 10u);
  EXPECT_EQ(locations->at(9999).failure->code, StatusCode::kNotFound);
}

// ---- authentication

TEST_F(ManagerServiceTest, OnlyWhoHasTheSecretComesIn) {
  options_.secret = Secret({.role = Role::kManager});
  StartServer();
  {
    const auto anna = Client(1);
    EXPECT_TRUE(
        std::holds_alternative<AttributesReply>(anna->Ask(GetAttributesRequest{kRootFile})));
  }
  TestClient without(2, server_->address(), std::nullopt, Seconds(1));
  EXPECT_FALSE(without.Start().ok());
  TestClient wrong(3, server_->address(),
                   SecretOf(CreateAuthority().value(), {.role = Role::kMount}), Seconds(1));
  EXPECT_FALSE(wrong.Start().ok());
}

TEST_F(ManagerServiceTest, AClientWithASecretDoesNotTalkToAManagerWithout) {
  StartServer();
  TestClient careful(1, server_->address(), Secret({.role = Role::kMount}), Seconds(1));
  EXPECT_FALSE(careful.Start().ok());
}

// ---- failures to start

TEST_F(ManagerServiceTest, RefusesAPortInUseAnotherClustersDatabaseAndOpenAddresses) {
  StartServer();
  ServerOptions second = options_;
  second.listen = server_->address();
  second.data_directory = directory_ / "second";
  EXPECT_EQ(ManagerServer::Start(second).status().code(), StatusCode::kFailedPrecondition);

  second.listen = "0.0.0.0:0";
  EXPECT_EQ(ManagerServer::Start(second).status().code(), StatusCode::kInvalidArgument);

  server_.reset();
  options_.core.cluster_name = "other";
  const auto other = ManagerServer::Start(options_);
  ASSERT_EQ(other.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(other.status()), HasSubstr("belongs to cluster 'mosa'"));
}

}  // namespace
}  // namespace mosa::manager
