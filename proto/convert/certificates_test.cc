#include "proto/convert/certificates.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/convert/expired_secret.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;

const Identity kMount{.role = Role::kMount, .node = {}, .uid = {}};

TEST(RoleText, IsReadBack) {
  const Identity identities[] = {
      {.role = Role::kManager, .node = {}, .uid = {}},
      {.role = Role::kNode, .node = {}, .uid = {}},
      {.role = Role::kNode, .node = "n-1.example", .uid = {}},
      kMount,
      {.role = Role::kAdmin, .node = {}, .uid = {}},
      {.role = Role::kUser, .node = {}, .uid = 0},
      {.role = Role::kUser, .node = {}, .uid = UINT32_MAX},
  };
  for (const Identity& identity : identities)
    EXPECT_EQ(IdentityOfUri(ToUri(identity)).value(), identity) << ToUri(identity);
}

TEST(RoleText, IsRefusedWhereItIsNotExact) {
  for (const char* text : {"",
                           "mosa:",
                           "mount",
                           "mosa:Mount",
                           "mosa:mount ",
                           "mosa:mount/",
                           "mosa:mount/x",
                           "mosa:user",
                           "mosa:user/",
                           "mosa:user/-1",
                           "mosa:user/01",
                           "mosa:user/4294967296",
                           "mosa:user/1x",
                           "mosa:admin/0",
                           "mosa:node/",
                           "mosa:node/a b",
                           "mosa:node/a/b",
                           "mosa:node/a,b",
                           "spiffe://x/mosa:admin",
                           "mosa:root"}) {
    EXPECT_EQ(IdentityOfUri(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

class SecretFile : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_, std::ios::trunc) << text;
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void Refuses(const std::string& text, StatusCode code, const char* why,
               std::initializer_list<Role> roles = {}) {
    const auto secret = LoadSecret(Write(text), roles);
    ASSERT_EQ(secret.status().code(), code) << why << ": " << MessageOf(secret.status());
    EXPECT_THAT(MessageOf(secret.status()), HasSubstr(why));
  }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("mosa_secret_test." + std::to_string(::getpid()));
  const Authority authority_ = CreateAuthority().value();
};

TEST_F(SecretFile, IsReadBackWithItsRole) {
  const std::string text = IssueSecret(authority_, kMount, 1).value();
  const auto secret = LoadSecret(Write(text), {Role::kAdmin, Role::kMount});
  ASSERT_TRUE(secret.ok()) << MessageOf(secret.status());
  EXPECT_EQ(secret->certificate_pem + secret->private_key_pem + secret->trusted_pem, text);
  EXPECT_EQ(secret->identity, kMount);
  EXPECT_EQ(secret->path, path_);
  const SecretFacts facts = FactsOf(*secret);
  EXPECT_THAT(facts.expires, HasSubstr("GMT"));
  EXPECT_EQ(facts.trusted, std::vector<std::string>{facts.issuer});
}

TEST_F(SecretFile, IsRefusedForAnotherRole) {
  const Identity user{.role = Role::kUser, .node = {}, .uid = 1000};
  Refuses(IssueSecret(authority_, user, 1).value(), StatusCode::kPermissionDenied,
          "has the role user of uid 1000, but the role mount or admin is needed",
          {Role::kMount, Role::kAdmin});
}

TEST_F(SecretFile, IsRefusedWhenOthersCanReachIt) {
  const std::string text = IssueSecret(authority_, kMount, 1).value();
  for (const mode_t mode : {0644u, 0640u, 0604u, 0660u, 0601u}) {
    const auto secret = LoadSecret(Write(text, mode));
    ASSERT_EQ(secret.status().code(), StatusCode::kPermissionDenied) << std::oct << mode;
    EXPECT_THAT(MessageOf(secret.status()), HasSubstr("chmod 600"));
  }
}

// systemd gives a service that is not root an access list: the group bits show its mask.
TEST_F(SecretFile, MayBeACredentialThatSystemdHasLoaded) {
  if (::geteuid() != 0) GTEST_SKIP() << "credentials belong to root";
  const std::string text = IssueSecret(authority_, kMount, 1).value();
  const auto code_in = [&](const std::string& directory, mode_t mode) {
    EXPECT_EQ(::setenv("CREDENTIALS_DIRECTORY", directory.c_str(), 1), 0);
    const StatusCode code = LoadSecret(Write(text, mode)).status().code();
    EXPECT_EQ(::unsetenv("CREDENTIALS_DIRECTORY"), 0);
    return code;
  };
  const std::string here = std::filesystem::path(path_).parent_path();
  EXPECT_EQ(code_in(here, 0440), StatusCode::kOk);
  EXPECT_EQ(code_in(here, 0640), StatusCode::kPermissionDenied);
  EXPECT_EQ(code_in(here, 0444), StatusCode::kPermissionDenied);
  EXPECT_EQ(code_in("/", 0440), StatusCode::kPermissionDenied);
  EXPECT_EQ(code_in("", 0440), StatusCode::kPermissionDenied);
  EXPECT_EQ(LoadSecret(Write(text, 0440)).status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(::chown(path_.c_str(), 1, 0), 0);
  EXPECT_EQ(code_in(here, 0440), StatusCode::kPermissionDenied);
}

TEST_F(SecretFile, IsIssuedAnewUntilWhenItWasGood) {
  const auto old = LoadSecret(Write(IssueSecret(authority_, kMount, 3).value()));
  ASSERT_TRUE(old.ok());
  const auto text = ReissueSecret(CreateAuthority().value(), *old);
  ASSERT_TRUE(text.ok()) << MessageOf(text.status());
  const auto fresh = LoadSecret(Write(*text));
  ASSERT_TRUE(fresh.ok()) << MessageOf(fresh.status());
  EXPECT_EQ(FactsOf(*fresh).expires, FactsOf(*old).expires);
  EXPECT_EQ(fresh->identity, kMount);
  EXPECT_NE(fresh->private_key_pem, old->private_key_pem);
}

TEST_F(SecretFile, IsRefusedWithOtherContent) {
  const std::string one = IssueSecret(authority_, kMount, 1).value();
  const std::string two = IssueSecret(authority_, kMount, 1).value();
  const auto key_at = [](const std::string& text) { return text.find("-----BEGIN PRIVATE KEY"); };
  const auto trust_at = [](const std::string& text) {
    return text.find("-----BEGIN CERTIFICATE", text.find("-----END PRIVATE KEY"));
  };
  const std::string stranger = CreateAuthority()->certificate_pem;
  const StatusCode wrong = StatusCode::kInvalidArgument;
  Refuses("", wrong, "holds no certificate");
  Refuses("not a secret", wrong, "holds no certificate");
  Refuses(one.substr(0, key_at(one)), wrong, "holds no unencrypted private key");
  Refuses(one.substr(0, key_at(one)) + two.substr(key_at(two)), wrong, "does not belong");
  Refuses(one.substr(0, trust_at(one)), wrong, "not issued by any");
  Refuses(one.substr(0, trust_at(one)) + stranger, wrong, "not issued by any");
  Refuses(std::string(70'000, 'x'), wrong, "at most 65536 bytes");
  Refuses(authority_.ToPem(), wrong, "has no role");
  std::string many = one;
  for (int i = 0; i < 9; ++i) many += authority_.certificate_pem;
  Refuses(many, wrong, "more than 8 authorities");
  EXPECT_EQ(LoadSecret("/nonexistent/secret").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(LoadSecret("/").status()), HasSubstr("name one of the files in it"));
}

TEST_F(SecretFile, IsIssuedOnlyForWhatCanBe) {
  const auto refuses = [this](const Identity& identity, int days) {
    EXPECT_EQ(IssueSecret(authority_, identity, days).status().code(),
              StatusCode::kInvalidArgument);
  };
  refuses(kMount, 0);
  refuses(kMount, -1);
  refuses(kMount, kDaysMax + 1);
  refuses({.role = Role::kUser, .node = {}, .uid = {}}, 1);
  refuses({.role = Role::kAdmin, .node = {}, .uid = 1}, 1);
  refuses({.role = Role::kMount, .node = "n1", .uid = {}}, 1);
  refuses({.role = Role::kNode, .node = "n1,DNS:mosa-cluster", .uid = {}}, 1);
}

// What the program made before there were roles: one self-signed certificate for the cluster.
TEST_F(SecretFile, OfTheTimeBeforeRolesNamesTheCommandThatMakesNewOnes) {
  constexpr char kOld[] = R"(-----BEGIN CERTIFICATE-----
MIIBnjCCAUSgAwIBAgIUBk0Fe+DvmU4hPpga5OWSmDnvTl4wCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMbW9zYS1jbHVzdGVyMCAXDTI2MTEyNjE0MTE0OVoYDzIxMjYx
MTAyMTQxMTQ5WjAXMRUwEwYDVQQDDAxtb3NhLWNsdXN0ZXIwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAATyh3gM1c/kuDXlbwR1czFO4Uf5vbKpU1v7Ck7AOLePRlZ5
IE2ZNTW5UHBdd4It+ZiwGUnbxbSJbPASeQ+wcPIwo2wwajAdBgNVHQ4EFgQU9H1j
671Hf3zS/155co5QRTxSMQwwHwYDVR0jBBgwFoAU9H1j671Hf3zS/155co5QRTxS
MQwwDwYDVR0TAQH/BAUwAwEB/zAXBgNVHREEEDAOggxtb3NhLWNsdXN0ZXIwCgYI
KoZIzj0EAwIDSAAwRQIhAM3hFnSiI9eigAgarkuR8MsPib1sqVGd74I/hy1QjHQg
AiBof2Tf6m/Npwi9JmtDTkvhSxwXhM8z6lE5mRe1FRx5/Q==
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4f3sFWPV/Azr5wF4
FNV2+Eog9VxPVuX/JHV8Kx+iuLqhRANCAATyh3gM1c/kuDXlbwR1czFO4Uf5vbKp
U1v7Ck7AOLePRlZ5IE2ZNTW5UHBdd4It+ZiwGUnbxbSJbPASeQ+wcPIw
-----END PRIVATE KEY-----
)";
  Refuses(kOld, StatusCode::kFailedPrecondition, "mosa secret create DIR");
}

TEST_F(SecretFile, IsRefusedWhenItsTimeIsOver) {
  Refuses(ExpireSecret(IssueSecret(authority_, kMount, 1).value(), authority_),
          StatusCode::kFailedPrecondition, "is not valid now");
  EXPECT_TRUE(HasExpired(path_));
  EXPECT_FALSE(HasExpired(Write(IssueSecret(authority_, kMount, 1).value())));
  EXPECT_FALSE(HasExpired(Write("no secret")));
}

TEST_F(SecretFile, TrustsTwoAuthoritiesWhileTheyChange) {
  Authority old = authority_;
  Authority next = CreateAuthority().value();
  old.also_trusted_pem = {next.certificate_pem};
  next.also_trusted_pem = {old.certificate_pem};
  const auto before = LoadSecret(Write(IssueSecret(authority_, kMount, 1).value()));
  const auto begun = LoadSecret(Write(WithTrust(*before, old)));
  ASSERT_TRUE(begun.ok()) << MessageOf(begun.status());
  EXPECT_EQ(begun->certificate_pem, before->certificate_pem);
  EXPECT_EQ(FactsOf(*begun).trusted.size(), 2u);
  EXPECT_EQ(FactsOf(*begun).issuer, FactsOf(*before).issuer);
  const auto switched = LoadSecret(Write(IssueSecret(next, kMount, 1).value()));
  ASSERT_TRUE(switched.ok());
  EXPECT_NE(FactsOf(*switched).issuer, FactsOf(*before).issuer);
  EXPECT_EQ(FactsOf(*switched).trusted.size(), 2u);
  next.also_trusted_pem = {};
  EXPECT_TRUE(LoadSecret(Write(WithTrust(*switched, next))).ok());
  Refuses(WithTrust(*before, next), StatusCode::kInvalidArgument, "not issued by any");
}

TEST_F(SecretFile, AnAuthorityIsReadBackAndNothingElseTakenForOne) {
  Authority authority = authority_;
  authority.also_trusted_pem = {CreateAuthority()->certificate_pem};
  const auto read = LoadAuthority(Write(authority.ToPem()));
  ASSERT_TRUE(read.ok()) << MessageOf(read.status());
  EXPECT_EQ(read->ToPem(), authority.ToPem());
  const auto none = LoadAuthority(Write(IssueSecret(authority_, kMount, 1).value()));
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(none.status()), HasSubstr("not an authority"));
}

}  // namespace
}  // namespace mosa
