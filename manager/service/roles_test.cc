// Which calls each role may make, over real connections.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client-sai/api/admin_client.h"
#include "manager/service/access.h"
#include "manager/service/service_fixture.h"

namespace mosa::manager {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kAlice = 1000;
constexpr uint32_t kBob = 1001;

Identity Of(Role role, std::optional<uint32_t> uid = std::nullopt) {
  return {.role = role, .node = {}, .uid = uid};
}
Identity User(uint32_t uid) { return Of(Role::kUser, uid); }

TEST(Rights, AreThoseOfTheRole) {
  const std::map<Right, std::set<Role>> allowed = {
      {Right::kRegisterNode, {Role::kNode}},
      {Right::kOpenSession, {Role::kMount, Role::kAdmin}},
      {Right::kAsk, {Role::kUser, Role::kAdmin, Role::kMount}},
      {Right::kChangeOwn, {Role::kUser, Role::kAdmin}},
      {Right::kAdminister, {Role::kAdmin}},
  };
  for (const auto& [right, roles] : allowed) {
    for (const Role role : {Role::kManager, Role::kNode, Role::kMount, Role::kAdmin, Role::kUser}) {
      const Status status = CheckRight(role == Role::kUser ? User(kAlice) : Of(role), right);
      EXPECT_EQ(status.ok(), roles.contains(role)) << NameOf(role) << MessageOf(status);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
        EXPECT_THAT(MessageOf(status), HasSubstr(std::string(NameOf(role))));
      }
    }
  }
  EXPECT_EQ(AskerFor(User(kAlice)), kAlice);
  EXPECT_EQ(AskerFor(Of(Role::kAdmin)), std::nullopt);
}

TEST(Rights, ANodesNameMayBeBoundToItsCertificate) {
  const Identity bound{.role = Role::kNode, .node = "n1", .uid = {}};
  EXPECT_TRUE(CheckNodeName(bound, "n1").ok());
  EXPECT_THAT(MessageOf(CheckNodeName(bound, "n2")), HasSubstr("register node 'n2'"));
  EXPECT_TRUE(CheckNodeName(Of(Role::kNode), "n2").ok());
}

class RolesTest : public ManagerServiceTest {
 protected:
  void SetUp() override {
    options_.secret = Secret(Of(Role::kManager));
    StartServer();
    mount_ = Client(1);
    MakeRequest make = mount_->MakeOf(kRootFile, "alices");
    make.uid = kAlice;
    ASSERT_TRUE(std::holds_alternative<MakeReply>(mount_->Ask(make)));
  }
  sai::AdminClient As(const Identity& identity) { return {server_->address(), Secret(identity)}; }
  // Opens a session with a certificate of this role.
  Status OpenSession(const Identity& identity) {
    return TestClient(9, server_->address(), Secret(identity), Seconds(5)).Start();
  }
  Status Register(const Identity& identity, const std::string& name) {
    TestNode node(server_->address(), Secret(identity));
    node.Register(RegistrationOf(name));
    if (node.Read()) return OkStatus();
    return node.Finish();
  }
  std::unique_ptr<TestClient> mount_;
};

TEST_F(RolesTest, OnlyNodesRegisterNodes) {
  for (const Identity& identity : {User(kAlice), Of(Role::kMount), Of(Role::kAdmin)}) {
    const Status refused = Register(identity, "evil");
    EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied) << Describe(identity);
    EXPECT_THAT(MessageOf(refused), HasSubstr("register a storage node"));
  }
  const Identity bound{.role = Role::kNode, .node = "n1", .uid = {}};
  EXPECT_EQ(Register(bound, "n2").code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(Register(bound, "n1").ok());
  EXPECT_TRUE(Register(Of(Role::kNode), "n2").ok());
}

TEST_F(RolesTest, OnlyMountsAndAdminsOpenSessions) {
  EXPECT_EQ(OpenSession(User(kAlice)).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(OpenSession(Of(Role::kNode)).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(OpenSession(Of(Role::kAdmin)).ok());
}

TEST_F(RolesTest, UsersAsk) {
  sai::AdminClient alice = As(User(kAlice));
  EXPECT_TRUE(alice.GetClusterStatus().ok());
  EXPECT_TRUE(alice.GetFileStatus("/alices").ok());
  EXPECT_TRUE(alice.ListLocations({"/alices"}, false).ok());
  EXPECT_TRUE(alice.ExplainHints("/alices").ok());
  EXPECT_TRUE(alice.ListHintRules().ok());
  EXPECT_TRUE(alice.ListUnstaged(1).ok());
  EXPECT_TRUE(alice.GetResidence({}).ok());
  sai::AdminClient node = As(Of(Role::kNode));
  EXPECT_EQ(node.GetClusterStatus().status().code(), StatusCode::kPermissionDenied);
}

TEST_F(RolesTest, UsersNeitherDrainNorHaveLogsWritten) {
  sai::AdminClient alice = As(User(kAlice));
  EXPECT_EQ(alice.DrainNode("n1", true).code(), StatusCode::kPermissionDenied);
  const ResidenceQuery log{
      .query = 0, .log_order = RequestLogOrder::kBegin, .log_directory = directory_.string()};
  EXPECT_EQ(alice.GetResidence({}, log).status().code(), StatusCode::kPermissionDenied);
  const ResidenceQuery end{.query = 0, .log_order = RequestLogOrder::kEnd, .log_directory = {}};
  EXPECT_EQ(alice.GetResidence({}, end).status().code(), StatusCode::kPermissionDenied);
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    EXPECT_NE(entry.path().extension(), ".requests");
}

TEST_F(RolesTest, UsersGiveHintsToWhatIsTheirs) {
  const HintValue hint{"replicas", "2"};
  EXPECT_EQ(As(User(kBob)).SetHint("/alices", hint).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(As(User(kAlice)).SetHint("/alices", hint).ok());
  EXPECT_EQ(As(User(kAlice)).SetHint("/", hint).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(As(Of(Role::kMount)).SetHint("/alices", hint).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(As(Of(Role::kAdmin)).SetHint("/alices", hint).ok());
}

TEST_F(RolesTest, UsersRulesAndRunsAreTheirs) {
  sai::AdminClient alice = As(User(kAlice));
  sai::AdminClient bob = As(User(kBob));
  const auto rule = alice.AddHintRule("/a*", {{"replicas", "2"}});
  ASSERT_TRUE(rule.ok()) << MessageOf(rule.status());
  const auto own = bob.AddHintRule("/a*", {{"replicas", "3"}});
  ASSERT_TRUE(own.ok()) << "one for the same glob, for what is his: " << MessageOf(own.status());
  EXPECT_NE(*own, *rule);
  EXPECT_EQ(bob.RemoveHintRule(*rule).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(bob.ListHintRules()->at(0).owner, kAlice);
  EXPECT_TRUE(alice.RemoveHintRule(*rule).ok());
  EXPECT_TRUE(alice.BeginWorkflow("run").ok());
  EXPECT_EQ(bob.EndTask("run/t", true).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(bob.EndWorkflow("run").status().code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(alice.EndTask("run/t", true).ok());
  EXPECT_TRUE(alice.EndWorkflow("run").ok());
}

}  // namespace
}  // namespace mosa::manager
