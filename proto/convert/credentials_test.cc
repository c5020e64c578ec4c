#include "proto/convert/credentials.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/convert/expired_secret.h"
#include "proto/convert/grpc_process.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;

// A server and clients by files of secrets, as daemons have them.
class Connections : public ::testing::Test {
 protected:
  Connections() { std::filesystem::create_directories(directory_); }
  ~Connections() override {
    Stop();
    std::filesystem::remove_all(directory_);
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown();
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) continue;
    server_ = nullptr;
  }

  // As a daemon's file is replaced: as a whole.
  std::string WriteFile(const std::string& name, const std::string& text) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path + ".new") << text;
    EXPECT_EQ(::chmod((path + ".new").c_str(), 0600), 0);
    std::filesystem::rename(path + ".new", path);
    return path;
  }
  ClusterSecret Write(const std::string& name, const std::string& text) {
    return LoadSecret(WriteFile(name, text)).value();
  }
  ClusterSecret Issue(const std::string& name, const Authority& authority, Role role) {
    const Identity identity{.role = role,
                            .node = {},
                            .uid = role == Role::kUser ? std::optional<uint32_t>(7) : std::nullopt};
    return Write(name, IssueSecret(authority, identity, 1).value());
  }
  void Serve(const ClusterSecret& secret) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", MakeServerCredentials(secret), &port);
    service_ = std::make_unique<grpc::AsyncGenericService>();  // One serves once.
    builder.RegisterAsyncGenericService(service_.get());
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  bool Connects(const std::optional<ClusterSecret>& secret) {
    return AwaitConnection(*MakeChannel(address_, secret), Seconds(2));
  }
  // Within the time in which files are read again.
  bool Becomes(bool connects, const ClusterSecret& secret) {
    for (int i = 0; i < 20; ++i) {
      if (Connects(secret) == connects) return true;
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return false;
  }

  const std::string directory_ = std::filesystem::temp_directory_path() /
                                 ("mosa_connections_test." + std::to_string(::getpid()));
  const Authority authority_ = CreateAuthority().value();
  std::unique_ptr<grpc::AsyncGenericService> service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(Connections, AreMadeByWhoeverHasASecretOfTheSameAuthority) {
  Serve(Issue("manager", authority_, Role::kManager));
  for (const Role role : {Role::kNode, Role::kMount, Role::kAdmin, Role::kUser})
    EXPECT_TRUE(Connects(Issue("client", authority_, role))) << NameOf(role);
  EXPECT_FALSE(Connects(Issue("stranger", CreateAuthority().value(), Role::kMount)));
}

// By a program that does not look at its own certificate.
TEST_F(Connections, AreNotMadeByWhoeverHasASecretWhoseTimeIsOver) {
  Serve(Issue("manager", authority_, Role::kManager));
  ClusterSecret mount = Issue("mount", authority_, Role::kMount);
  EXPECT_TRUE(Connects(mount));
  const std::string text = IssueSecret(authority_, mount.identity, 1).value();
  mount.path = WriteFile("expired", ExpireSecret(text, authority_));
  EXPECT_FALSE(Connects(mount));
}

TEST_F(Connections, AreNotMadeToWhoeverPosesAsTheManager) {
  const ClusterSecret mount = Issue("mount", authority_, Role::kMount);
  for (const Role role : {Role::kNode, Role::kMount, Role::kAdmin, Role::kUser}) {
    Serve(Issue("impostor", authority_, role));
    EXPECT_FALSE(Connects(mount)) << NameOf(role);
    Stop();
  }
}

TEST_F(Connections, GoOnWhileTheAuthorityIsExchanged) {
  const ClusterSecret manager = Issue("manager", authority_, Role::kManager);
  const ClusterSecret mount = Issue("mount", authority_, Role::kMount);
  Serve(manager);
  ASSERT_TRUE(Connects(mount));
  Authority old = authority_;
  Authority next = CreateAuthority().value();
  old.also_trusted_pem = {next.certificate_pem};
  next.also_trusted_pem = {old.certificate_pem};
  const ClusterSecret newer = Issue("newer", next, Role::kMount);
  EXPECT_FALSE(Connects(newer));
  Write("manager", WithTrust(manager, old));
  EXPECT_TRUE(Becomes(true, newer));
  EXPECT_TRUE(Connects(mount));
  // The manager's own certificate is the next one's: a peer that trusts both goes on.
  Issue("manager", next, Role::kManager);
  EXPECT_TRUE(Becomes(false, mount));  // It was left behind.
  EXPECT_TRUE(Connects(Write("mount", WithTrust(mount, old))));
  next.also_trusted_pem = {};
  Issue("manager", next, Role::kManager);
  EXPECT_TRUE(Becomes(false, mount));
  EXPECT_TRUE(Connects(newer));
}

TEST(ListenAddress, IsLoopbackUnlessThereIsASecret) {
  struct Row {
    const char* address;
    bool without_secret;
    bool with_secret;
  };
  const Row rows[] = {
      {"127.0.0.1:7400", true, true},
      {"127.8.8.8:0", true, true},
      {"localhost:1", true, true},
      {"[::1]:65535", true, true},
      {"0.0.0.0:7400", false, true},
      {"10.0.0.1:7400", false, true},
      {"host.example:7400", false, true},
      {"[::]:7400", false, true},
      {"127.0.0.1.evil:1", false, true},
      {"127.x:1", false, true},
      {"", false, false},
      {"127.0.0.1", false, false},
      {"127.0.0.1:", false, false},
      {":7400", false, false},
      {"127.0.0.1:65536", false, false},
      {"127.0.0.1:-1", false, false},
      {"127.0.0.1:7400x", false, false},
      {"::1:7400", false, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(CheckListenAddress(row.address, false).ok(), row.without_secret) << row.address;
    EXPECT_EQ(CheckListenAddress(row.address, true).ok(), row.with_secret) << row.address;
  }
  EXPECT_THAT(MessageOf(CheckListenAddress("0.0.0.0:1", false)), HasSubstr("--secret FILE"));
}

bool DrawsRandomBytes() {
  unsigned char byte = 0;
  return RAND_bytes(&byte, 1) == 1;
}

// As a thread of gRPC's would, that greets a peer while the process ends.
TEST(GrpcProcessDeathTest, OpenSslServesUntilTheProcessEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        // What is registered first runs last, after whatever OpenSSL may have registered.
        std::atexit([] { _exit(DrawsRandomBytes() ? 0 : 3); });
        PrepareGrpcProcess();
        std::exit(DrawsRandomBytes() ? 1 : 2);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mosa
