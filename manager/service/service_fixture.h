// Fixture for tests of the manager's service in one process: real gRPC, real RocksDB in a temporary
// directory, and a storage node that only exchanges messages.
#ifndef MOSA_MANAGER_SERVICE_SERVICE_FIXTURE_H_
#define MOSA_MANAGER_SERVICE_SERVICE_FIXTURE_H_

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "fmt/format.h"
#include "manager/service/manager_server.h"
#include "manager/service/test_client.h"
#include "mosa/v1/node.grpc.pb.h"
#include "proto/convert/node.h"
#include "proto/convert/status.h"

namespace mosa::manager {

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
    std::optional<ClusterSecret> secret;
    if (options_.secret) secret = Secret({.role = Role::kMount, .node = {}, .uid = {}});
    auto client = std::make_unique<TestClient>(id, server_->address(), secret);
    const Status started = client->Start();
    EXPECT_TRUE(started.ok()) << MessageOf(started);
    return client;
  }
  // Writes a secret issued by `authority` to a file that exists for the rest of the test.
  ClusterSecret SecretOf(const Authority& authority, const Identity& identity) {
    const std::filesystem::path path = directory_ / fmt::format("secret{}", ++secrets_);
    std::ofstream(path) << IssueSecret(authority, identity, 1).value();
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    return LoadSecret(path).value();
  }
  // A secret of the manager's cluster.
  ClusterSecret Secret(const Identity& identity) { return SecretOf(authority_, identity); }

  const Authority authority_ = CreateAuthority().value();
  int secrets_ = 0;
  std::filesystem::path directory_;
  ServerOptions options_;
  std::unique_ptr<ManagerServer> server_;
};

inline CommitRequest CommitOf(FileId file, std::string bytes) {
  CommitRequest commit;
  commit.file = file;
  commit.size_bytes = bytes.size();
  commit.inline_data = std::move(bytes);
  commit.last_close = true;
  return commit;
}

// A storage node without objects: registers, and reads orders.
class TestNode {
 public:
  explicit TestNode(const std::string& address,
                    const std::optional<ClusterSecret>& secret = std::nullopt)
      : channel_(MakeChannel(address, secret)),
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
  void Answer(const ResidenceReport& report) {
    v1::NodeMessage message;
    ToProto(report, &message);
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

inline NodeRegistration RegistrationOf(const std::string& name) {
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

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_SERVICE_FIXTURE_H_
