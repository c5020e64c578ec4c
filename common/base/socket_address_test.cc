#include "common/base/socket_address.h"

#include <gtest/gtest.h>

#include <string>

namespace mosa {
namespace {

TEST(SocketAddress, ReadsHostAndPort) {
  const struct {
    const char* text;
    const char* address;
    bool loopback;
  } rows[] = {{"127.0.0.1:7000", "127.0.0.1:7000", true},
              {"127.9.9.9:0", "127.9.9.9:0", true},
              {"[::1]:65535", "[::1]:65535", true},
              {"0.0.0.0:1", "0.0.0.0:1", false},
              {"[::]:1", "[::]:1", false}};
  for (const auto& row : rows) {
    const auto address = ResolveAddress(row.text);
    ASSERT_TRUE(address.ok()) << MessageOf(address.status());
    EXPECT_EQ(address->ToText(), row.address);
    EXPECT_EQ(address->IsLoopback(), row.loopback) << row.text;
  }
}

TEST(SocketAddress, RefusesWhatIsNone) {
  for (const char* text : {"", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                           "127.0.0.1:-1", "127.0.0.1:8x", "::1:80", "[::1]"}) {
    const auto address = ResolveAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(MessageOf(address.status()).find(std::string("'") + text + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace mosa
