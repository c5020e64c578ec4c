// The three steps that rotate a cluster's authority, on a directory of secrets.
#include "tools/cluster/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "proto/convert/certificates.h"

namespace mosa::cluster {
namespace {

// It expired in 2018.
constexpr char kExpired[] = R"(-----BEGIN CERTIFICATE-----
MIIBFDCBu6ADAgECAgEHMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCW1vc2EgdXNl
cjAeFw0xNzAxMDEwMDAwMDBaFw0xODAxMDEwMDAwMDBaMBQxEjAQBgNVBAMMCW1v
c2EgdXNlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOtq45+OUe42Jc6nVQNj
mDo5kxT+dGCEpo2hyL3kFstsmIvicUun8Bkul+3n8mRF16ife5eEJQq+aBc/26EI
QqUwCgYIKoZIzj0EAwIDSAAwRQIhAOITMT+vAQPsmyD9E1zLBIyMW80+l/set2Ls
FHI90VTuAiBJgcJ0BkdI7zWJlqis+LwpJ/T2CDcMT5/kQ2BdkMXeOg==
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtFBD/2jIlDOWLDKa
TV4AxGXkD4hPxEG/0JLyazVuAkuhRANCAATrauOfjlHuNiXOp1UDY5g6OZMU/nRg
hKaNoci95BbLbJiL4nFLp/AZLpft5/JkRdeon3uXhCUKvmgXP9uhCEKl
-----END PRIVATE KEY-----
)";

class RotationTest : public ::testing::Test {
 protected:
  RotationTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "mosa_secret_test.XXXXXX";
    top_ = ::mkdtemp(pattern.data());
    directory_ = top_ + "/secrets";
    EXPECT_TRUE(CreateSecrets(directory_).ok());
    const Identity user{.role = Role::kUser, .node = {}, .uid = 1000};
    EXPECT_TRUE(IssueSecretFile({.directory = directory_,
                                 .path = directory_ + "/user.pem",
                                 .identity = user,
                                 .days = 3})
                    .ok());
  }
  ~RotationTest() override { std::filesystem::remove_all(top_); }
  void Write(const std::string& name, const std::string& text) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
  }
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      files[entry.path().filename()] = text.str();
    }
    return files;
  }
  SecretFacts Facts(const std::string& name) const {
    const auto secret = LoadSecret(directory_ + "/" + name);
    EXPECT_TRUE(secret.ok()) << secret.status();
    return secret.ok() ? FactsOf(*secret) : SecretFacts{};
  }

  std::string top_, directory_;
};

constexpr Rotation kSteps[] = {Rotation::kBegin, Rotation::kSwitch, Rotation::kEnd};

TEST_F(RotationTest, ProlongsNoSecret) {
  const SecretFacts user = Facts("user.pem"), node = Facts("node.pem");
  for (const Rotation step : kSteps) {
    const auto rotated = Rotate(directory_, step);
    ASSERT_TRUE(rotated.ok()) << rotated.status();
    EXPECT_EQ(rotated->written.size(), 5U);
    EXPECT_TRUE(rotated->expired.empty());
  }
  EXPECT_NE(Facts("user.pem").issuer, user.issuer);
  EXPECT_EQ(Facts("user.pem").expires, user.expires);
  EXPECT_EQ(Facts("node.pem").expires, node.expires);
}

TEST_F(RotationTest, LeavesExpiredSecretsOutAndNamesThem) {
  Write("bob.pem", kExpired);
  for (const Rotation step : kSteps) {
    const auto rotated = Rotate(directory_, step);
    ASSERT_TRUE(rotated.ok()) << rotated.status();
    EXPECT_EQ(rotated->written.size(), 5U);
    EXPECT_EQ(rotated->expired, std::vector<std::string>{directory_ + "/bob.pem"});
  }
  EXPECT_EQ(Files().at("bob.pem"), kExpired);
}

TEST_F(RotationTest, WritesNothingUnlessAllSecretsCanBeLoaded) {
  for (const Rotation step : kSteps) {
    Write("zoe.pem", "no secret");
    const auto before = Files();
    const auto refused = Rotate(directory_, step);
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(MessageOf(refused.status()).find("zoe.pem"), std::string::npos);
    EXPECT_EQ(Files(), before);
    std::filesystem::remove(directory_ + "/zoe.pem");
    ASSERT_TRUE(Rotate(directory_, step).ok());
  }
}

}  // namespace
}  // namespace mosa::cluster
