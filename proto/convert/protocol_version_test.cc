#include "proto/convert/protocol_version.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace mosa {
namespace {

TEST(ProtocolVersion, SaysWhoIsToBeUpgraded) {
  constexpr ProtocolPeers kPeers{.own = "manager", .peer = "mount"};
  const struct {
    std::optional<ProtocolVersions> mount;
    std::string_view upgraded;  // Nothing: they understand each other.
  } cases[] = {
      {ProtocolVersions{3, 4}, ""},
      {ProtocolVersions{4, 9}, ""},
      {ProtocolVersions{1, 3}, ""},
      {ProtocolVersions{1, 2}, "upgrade the mount first"},
      {std::nullopt, "upgrade the mount first"},
      {ProtocolVersions{5, 5}, "upgrade the manager first"},
  };
  for (const auto& each : cases) {
    const Status status = CheckProtocol(kPeers, {3, 4}, each.mount);
    EXPECT_EQ(status.ok(), each.upgraded.empty()) << MessageOf(status);
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_NE(MessageOf(status).find(each.upgraded), std::string::npos) << MessageOf(status);
  }
  EXPECT_EQ(
      MessageOf(CheckProtocol(kPeers, {5, 5}, ProtocolVersions{3, 4})),
      "the manager speaks version 5 of Mosa's protocol, the mount version 3 to 4: upgrade the "
      "mount first");
}

TEST(ProtocolVersion, ReadsWhatItWrites) {
  EXPECT_EQ(ParseProtocolVersions(ToText({2, 31})), (ProtocolVersions{2, 31}));
  EXPECT_EQ(VersionsOfUserAgent(UserAgentOf({2, 31}) + " grpc-c++/1.51"),
            (ProtocolVersions{2, 31}));
  for (const std::string_view bad :
       {"", "2", "-", "2-", "-2", "3-2", "0-1", "2-3x", "2--3", "2-99999999999", " 2-3", "+2-3"})
    EXPECT_EQ(ParseProtocolVersions(bad), std::nullopt) << bad;
  for (const std::string_view bad : {"", "grpc-c++/1.51", "mosa", "mosa/", "mosa/x", "xmosa/2-3"})
    EXPECT_EQ(VersionsOfUserAgent(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace mosa
