#include <gtest/gtest.h>

#include <string>

#include "common/base/crc32c.h"
#include "common/base/hash.h"
#include "common/base/rng.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace mosa {
namespace {

TEST(Units, ReadsSizes) {
  const struct {
    const char* text;
    int64_t bytes;
  } rows[] = {
      {"0", 0},         {"4096", 4096},  {"4096B", 4096},          {"64K", 65536},
      {"64KiB", 65536}, {"1M", 1 << 20}, {"2G", int64_t{2} << 30}, {"1T", int64_t{1} << 40}};
  for (const auto& row : rows) {
    const auto bytes = ParseBytes(row.text);
    ASSERT_TRUE(bytes.ok()) << row.text;
    EXPECT_EQ(*bytes, row.bytes) << row.text;
  }
}

TEST(Units, RefusesWhatIsNoSizeAndRepeatsIt) {
  for (const char* text : {"", "K", "-1", "+1", "1k", "1 K", "1X", "1KK", "9223372036854775808",
                           "9007199254740992K", "0x10"}) {
    const auto bytes = ParseBytes(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_NE(std::string(bytes.status().message()).find(std::string("'") + text + "'"),
              std::string::npos);
  }
}

TEST(Units, ReadsTimesOnlyWithUnit) {
  EXPECT_EQ(ParseDuration("200ms")->ns, 200'000'000);
  EXPECT_EQ(ParseDuration("5s")->ns, 5'000'000'000);
  for (const char* text : {"", "5", "s", "5 s", "5h", "-5s", "99999999999999999m"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
}

TEST(Units, FormatsExactly) {
  EXPECT_EQ(FormatBytes(1 << 20), "1M");
  EXPECT_EQ(FormatBytes(1000), "1000");
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
}

TEST(Hash, HasTheseValuesForever) {
  EXPECT_EQ(Mix64(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(Hash64(""), Hash64("", 0));
  EXPECT_NE(Hash64("a"), Hash64("b"));
  EXPECT_EQ(Hash64("mosa", 7), 14973147011584369202ULL);
}

TEST(Crc32c, MatchesTheRfc) {
  // RFC 3720 B.4: 32 bytes of zeroes, and "123456789".
  const std::string zeroes(32, '\0');
  EXPECT_EQ(Crc32c(zeroes.data(), zeroes.size()), 0x8a9136aaU);
  const std::string digits = "123456789";
  EXPECT_EQ(Crc32c(digits.data(), digits.size()), 0xe3069283U);
  EXPECT_EQ(ExtendCrc32c(Crc32c(digits.data(), 4), digits.data() + 4, 5), 0xe3069283U);
}

TEST(IsUtf8, TakesWhatRfc3629Allows) {
  for (const char* text :
       {"", "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(IsUtf8(text)) << text;
  for (const char* text : {"\x80", "\xff", "a\xc3", "\xc3(", "\xc0\xaf", "\xe0\x80\xaf",
                           "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f\x98"})
    EXPECT_FALSE(IsUtf8(text)) << text;
}

TEST(FirstCharacterBytes, IsZeroWhereTextBeginsWithNoCharacter) {
  const struct {
    std::string_view text;
    size_t bytes;
  } rows[] = {{"", 0},
              {std::string_view("\0", 1), 1},
              {"\x7f\xff", 1},
              {"\xc2\x80", 2},
              {"\xdf\xbf", 2},
              {"\xe0\xa0\x80", 3},
              {"\xed\x9f\xbf", 3},
              {"\xee\x80\x80", 3},
              {"\xef\xbf\xbf\xff", 3},
              {"\xf0\x90\x80\x80", 4},
              {"\xf4\x8f\xbf\xbf", 4},
              {"\x80", 0},
              {"\xc1\xbf", 0},
              {"\xc2", 0},
              {"\xe0\x9f\xbf", 0},
              {"\xe2\x82", 0},
              {"\xe2(\xac", 0},
              {"\xed\xbf\xbf", 0},
              {"\xf0\x8f\xbf\xbf", 0},
              {"\xf4\x90\x80\x80", 0},
              {"\xf5\x80\x80\x80", 0}};
  for (const auto& [text, bytes] : rows) EXPECT_EQ(FirstCharacterBytes(text), bytes) << text;
}

TEST(Rng, StaysBelowItsLimitAndRepeats) {
  Rng a(42);
  Rng b(42);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t x = a.Below(7);
    EXPECT_LT(x, 7U);
    EXPECT_EQ(x, b.Below(7));
  }
}

}  // namespace
}  // namespace mosa
