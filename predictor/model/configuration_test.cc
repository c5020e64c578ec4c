#include "predictor/model/configuration.h"

#include <gtest/gtest.h>

#include <string>

namespace mosa::predict {
namespace {

TEST(Configuration, SaysItAllInOneLineThatReadsBack) {
  const auto parsed = ParseConfiguration(
      "hosts=14,storage=5,manager=apart,slots=3,system=dss,chunk=256K,stripe=4,replicas=2,"
      "placement=local,store=2G,seed=7");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->hosts, 14U);
  EXPECT_EQ(parsed->storage_hosts, 5U);
  EXPECT_EQ(parsed->chunk_bytes, 256U << 10);
  EXPECT_EQ(parsed->system, System::kDss);
  const auto again = ParseConfiguration(ToText(*parsed));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *parsed);
  EXPECT_EQ(*ParseConfiguration(ToText(Configuration())), Configuration());
  EXPECT_EQ(*ParseConfiguration(""), Configuration());
}

TEST(Configuration, SaysWhatIsWrongAndWhatMayBeSaid) {
  const struct {
    const char* text;
    const char* expected;
  } rows[] = {
      {"hosts", "'hosts' is not name=value"},
      {"host=3", "'host' is no name; there are hosts, storage"},
      {"hosts=", "hosts=: a whole number"},
      {"hosts=-1", "hosts=-1: a whole number"},
      {"hosts=3x", "hosts=3x: a whole number"},
      {"hosts=99999999999", "a whole number"},
      {"hosts=0", "no host would run tasks"},
      {"hosts=9000,storage=2000", "at most 10000"},
      {"slots=5000", "at most 4096"},
      {"chunk=1000", "a multiple of 4096"},
      {"chunk=many", "a size is needed"},
      {"hosts=3,stripe=4", "there are only 3 storage nodes"},
      {"hosts=9,storage=2,replicas=3", "there are only 2 storage nodes"},
      {"replicas=0", "1 to 64"},
      {"placement=near", "it is stripe or local"},
      {"system=fast", "it is dss or wass"},
      {"manager=somewhere", "it is shared or apart"},
      {"hosts=2,,seed=1", "'' is not name=value"},
  };
  for (const auto& row : rows) {
    const auto parsed = ParseConfiguration(row.text);
    ASSERT_FALSE(parsed.ok()) << row.text;
    EXPECT_NE(MessageOf(parsed.status()).find(row.expected), std::string::npos)
        << row.text << ": " << parsed.status();
  }
}

}  // namespace
}  // namespace mosa::predict
