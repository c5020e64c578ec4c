#include "proto/convert/credentials.h"

#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/convert/grpc_process.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;

class SecretFile : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_, std::ios::trunc) << text;
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("mosa_secret_test." + std::to_string(::getpid()));
};

TEST_F(SecretFile, IsReadBack) {
  const std::string text = GenerateSecret().value();
  const Result<ClusterSecret> secret = LoadSecret(Write(text));
  ASSERT_TRUE(secret.ok()) << MessageOf(secret.status());
  EXPECT_EQ(secret->certificate_pem + secret->private_key_pem, text);
}

TEST_F(SecretFile, IsRefusedWhenOthersCanReachIt) {
  for (const mode_t mode : {0644u, 0640u, 0604u, 0660u, 0601u}) {
    const Result<ClusterSecret> secret = LoadSecret(Write(GenerateSecret().value(), mode));
    ASSERT_EQ(secret.status().code(), StatusCode::kPermissionDenied) << std::oct << mode;
    EXPECT_THAT(MessageOf(secret.status()), HasSubstr("chmod 600"));
  }
}

TEST_F(SecretFile, IsRefusedWithOtherContent) {
  const std::string one = GenerateSecret().value();
  const std::string two = GenerateSecret().value();
  const size_t key_of_one = one.find("-----BEGIN PRIVATE KEY");
  const size_t key_of_two = two.find("-----BEGIN PRIVATE KEY");
  struct Row {
    std::string text;
    const char* message;
  };
  const Row rows[] = {
      {"", "holds no certificate"},
      {"not a secret", "holds no certificate"},
      {one.substr(0, key_of_one), "holds no private key"},
      {one.substr(key_of_one), "holds no certificate"},
      {one.substr(0, key_of_one) + two.substr(key_of_two), "does not belong"},
      {std::string(70'000, 'x'), "at most 65536 bytes"},
  };
  for (const Row& row : rows) {
    const Result<ClusterSecret> secret = LoadSecret(Write(row.text));
    ASSERT_EQ(secret.status().code(), StatusCode::kInvalidArgument) << row.message;
    EXPECT_THAT(MessageOf(secret.status()), HasSubstr(row.message));
  }
}

TEST_F(SecretFile, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(LoadSecret(path_).status().code(), StatusCode::kNotFound);
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
