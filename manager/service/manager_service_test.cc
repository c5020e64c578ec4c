// The manager's service in this process: real gRPC, real RocksDB, a temporary directory.
#include <arpa/inet.h>
#include <grpcpp/client_context.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
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
#include "manager/service/test_client.h"
#include "mosa/v1/node.grpc.pb.h"
#include "mosa/v1/session.grpc.pb.h"
#include "proto/convert/capability.h"
#include "proto/convert/node.h"
#include "proto/convert/session.h"
#include "proto/convert/status.h"

namespace mosa::manager {
namespace {

using ::testing::HasSubstr;

class ManagerServiceTest : public ::testing::Test {
 protected:
  ManagerServiceTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "mosa_service_test.XXXXXX";
    MOSA_CHECK(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    options_.listen = "127.0.0.1:0";
    options_.data_directory = directory_ / "store";
  }
  ~ManagerServiceTest() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  void StartServer() {
    auto server = ManagerServer::Start(options_);
    ASSERT_TRUE(server.ok()) << MessageOf(server.status());
    server_ = *std::move(server);
  }
  std::unique_ptr<TestClient> Client(uint64_t id) {
    auto client = std::make_unique<TestClient>(id, server_->address(), options_.secret);
    const Status started = client->Start();
    EXPECT_TRUE(started.ok()) << MessageOf(started);
    return client;
  }
  ClusterSecret NewSecret(const std::string& name) {
    const std::filesystem::path path = directory_ / name;
    std::ofstream(path) << GenerateSecret().value();
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    return LoadSecret(path).value();
  }

  std::filesystem::path directory_;
  ServerOptions options_;
  std::unique_ptr<ManagerServer> server_;
};

CommitRequest CommitOf(FileId file, std::string bytes) {
  CommitRequest commit;
  commit.file = file;
  commit.size_bytes = bytes.size();
  commit.inline_data = std::move(bytes);
  commit.last_close = true;
  return commit;
}

// A storage node that only talks: registers, and reads orders.
class TestNode {
 public:
  explicit TestNode(const std::string& address)
      : channel_(MakeChannel(address, std::nullopt)),
        stub_(v1::NodeSessionService::NewStub(channel_)),
        stream_(stub_->Session(&context_)) {}
  ~TestNode() {
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }
  void Register(const NodeRegistration& registration) {
    for (const v1::NodeMessage& message : ToProto(registration)) stream_->Write(message);
  }
  std::optional<ManagerToNode> Read() {
    v1::ManagerToNode message;
    if (!stream_->Read(&message)) return std::nullopt;
    return FromProto(message).value();
  }
  void Heartbeat(const NodeHeartbeat& heartbeat) {
    v1::NodeMessage message;
    ToProto(heartbeat, &message);
    stream_->Write(message);
  }
  Status Finish() {
    finished_ = true;
    return FromGrpc(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::NodeSessionService::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::NodeMessage, v1::ManagerToNode>> stream_;
  bool finished_ = false;
};

NodeRegistration RegistrationOf(const std::string& name) {
  return {.name = name,
          .cluster_name = "",
          .incarnation = 5,
          .address = "127.0.0.1:9",
          .socket_path = "/none",
          .host_identity = "h",
          .limit_bytes = uint64_t{1} << 30,
          .used_bytes = 0,
          .objects = {}};
}

TEST_F(ManagerServiceTest, FilesMadeByOneClientAreSeenByAnother) {
  StartServer();
  const auto anna = Client(1);
  const auto ben = Client(2);
  EXPECT_EQ(anna->ready().cluster_name, "mosa");

  MakeRequest make = anna->MakeOf(kRootFile, "a");
  make.open = true;
  const FileId file = make.file;
  const auto replies = anna->api().Call({make, CommitOf(file, "tiny bytes")});
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
    anna->api().Call({make, CommitOf(file, std::string(5000, 'z'))});
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
  anna->api().Call({make, CommitOf(make.file, "x")});

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
  // Sent while nobody listens; answered by the next manager.
  const Reply made = anna->Ask(anna->MakeOf(kRootFile, "late"));
  restart.join();
  EXPECT_TRUE(std::holds_alternative<MakeReply>(made)) << std::get<Failure>(made).message;
  EXPECT_TRUE(anna->WaitForSessions(2));
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
  const auto replies = anna->api().Call(many);
  EXPECT_EQ(std::get<Failure>(replies.back()).reason, ErrorReason::kArgumentTooBig);

  // A client that does not care about the limit.
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
  // The tick is late, as it is in a process that was stopped.
  std::this_thread::sleep_for(std::chrono::nanoseconds(kSessionLease.ns) +
                              std::chrono::milliseconds(50));
  const auto second = std::make_shared<RememberingSink>();
  driver.ClientStarted(second, start);
  driver.Flush();
  ASSERT_EQ(second->messages().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<SessionReady>(second->messages()[0]));
  EXPECT_FALSE(second->ended());
}

// Swapping, or with too much to do, the loop may need seconds for what has come: each step is quick
// enough, yet somebody's sign of life waits behind the others.
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
              HasSubstr("'0' is no value of hint 'replicas': allowed are 1 to 64, or auto"));
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
  ASSERT_EQ(anna->api().Call({make, CommitOf(make.file, "tiny bytes")}).size(), 2u);
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

// ---- what is predicted

// A file of two chunks on n1 and n2.
void MakeStriped(TestClient& client, const std::string& name) {
  MakeRequest make = client.MakeOf(kRootFile, name);
  make.open = true;
  make.hints = {{"chunk_size", "1048576"}};
  CommitRequest commit;
  commit.file = make.file;
  commit.size_bytes = 2 << 20;
  const auto bound = client.api().Call({make, BindRequest{make.file, 1}});
  const auto& access = std::get<BindReply>(bound.back()).access;
  for (const NodeId node : access.layout.Nodes()) commit.nodes.push_back({node, 1 << 20, 0});
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
  anna->api().Call({tiny, CommitOf(tiny.file, "tiny bytes")});
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
  EXPECT_THAT(answer->sets[2].failure->message, HasSubstr("'/' is no regular file"));
  EXPECT_EQ(answer->sets[3].hosts.at(0).cost, ReadCost{});

  const auto some = admin.PredictReads({{{"/striped"}}, {"n3"}});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->sets[0].hosts.size(), 1u);
  EXPECT_THAT(MessageOf(admin.PredictReads({{{"/tiny"}}, {"n1", "n9"}}).status()),
              HasSubstr("'n9' is no storage node of this cluster of 3"));
  // More than one call takes, and more than any call takes.
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
  // The next one knows it from its first command on.
  server_.reset();
  StartServer();
  sai::AdminClient admin(server_->address(), std::nullopt);
  const auto explained = admin.ExplainHints("/new");
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_THAT(explained->hints,
              ::testing::Contains(::testing::Field(&ExplainedHint::note, HasSubstr("on 1 node"))));
}

TEST_F(ManagerServiceTest, QuestionsAreAnsweredOrRefusedWhileTheManagerStops) {
  options_.platform.emplace();
  StartServer();
  TestNode node(server_->address());
  node.Register(RegistrationOf("n1"));
  ASSERT_TRUE(node.Read().has_value());
  const auto anna = Client(1);
  const MakeRequest tiny = anna->MakeOf(kRootFile, "tiny");
  anna->api().Call({tiny, CommitOf(tiny.file, "tiny bytes")});
  std::vector<std::thread> askers;
  for (int i = 0; i < 8; ++i)
    askers.emplace_back([address = server_->address()] {
      sai::AdminClient admin(address, std::nullopt);
      const std::vector<std::vector<std::string>> many(10'000, {"/tiny"});
      while (admin.PredictReads({many, {"n1"}}).ok()) continue;
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  server_->Stop();
  for (std::thread& asker : askers) asker.join();
}

// ---- who may come in

TEST_F(ManagerServiceTest, OnlyWhoHasTheSecretComesIn) {
  options_.secret = NewSecret("right");
  StartServer();
  {
    const auto anna = Client(1);
    EXPECT_TRUE(
        std::holds_alternative<AttributesReply>(anna->Ask(GetAttributesRequest{kRootFile})));
  }
  TestClient without(2, server_->address(), std::nullopt, Seconds(1));
  EXPECT_FALSE(without.Start().ok());
  TestClient wrong(3, server_->address(), NewSecret("wrong"), Seconds(1));
  EXPECT_FALSE(wrong.Start().ok());
}

TEST_F(ManagerServiceTest, AClientWithASecretDoesNotTalkToAManagerWithout) {
  StartServer();
  TestClient careful(1, server_->address(), NewSecret("mine"), Seconds(1));
  EXPECT_FALSE(careful.Start().ok());
}

// ---- what keeps a manager from starting

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
