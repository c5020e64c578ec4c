#include "proto/convert/capability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mosa {
namespace {

using ::testing::HasSubstr;

const std::string kKey(kCapabilityKeyBytes, 'k');
constexpr Capability kWriter{.file = FileId{0x1122334455667788},
                             .client = ClientId{7},
                             .may_write = true,
                             .expires = Time{5'000'000'000},
                             .era = 0x8877665544332211,
                             .generation = 9,
                             .epoch = UINT64_MAX};
constexpr Time kNow{1'000'000'000};

void ExpectRefused(std::string_view sealed, std::string_view key, Time now,
                   const std::string& because) {
  const auto opened = OpenCapability(sealed, key, now);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(opened.status()), HasSubstr(because));
}

TEST(Capability, ComesBackAsItWasSealed) {
  const std::string sealed = SealCapability(kWriter, kKey);
  EXPECT_EQ(sealed.size(), kSealedCapabilityBytes);
  const auto opened = OpenCapability(sealed, kKey, kNow);
  ASSERT_TRUE(opened.ok()) << MessageOf(opened.status());
  EXPECT_EQ(*opened, kWriter);
  Capability reader = kWriter;
  reader.may_write = false;
  EXPECT_EQ(*OpenCapability(SealCapability(reader, kKey), kKey, kNow), reader);
}

TEST(Capability, EveryFlippedBitIsSeen) {
  const std::string sealed = SealCapability(kWriter, kKey);
  for (size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::string forged = sealed;
    forged[bit / 8] = static_cast<char>(forged[bit / 8] ^ (1 << (bit % 8)));
    ExpectRefused(forged, kKey, kNow, bit < 8 ? "version" : "forged");
  }
}

TEST(Capability, EveryShorterAndALongerOneIsRefused) {
  const std::string sealed = SealCapability(kWriter, kKey);
  ExpectRefused("", kKey, kNow, "the request carries no capability");
  for (size_t size = 1; size < sealed.size(); ++size)
    ExpectRefused(sealed.substr(0, size), kKey, kNow, "bytes");
  ExpectRefused(sealed + "x", kKey, kNow, "83 bytes");
}

TEST(Capability, AnotherClustersKeyDoesNotOpenIt) {
  ExpectRefused(SealCapability(kWriter, kKey), std::string(kCapabilityKeyBytes, 'q'), kNow,
                "forged or belongs to another cluster");
}

TEST(Capability, ExpiresAtItsTimeAndSaysSinceWhen) {
  const std::string sealed = SealCapability(kWriter, kKey);
  EXPECT_TRUE(OpenCapability(sealed, kKey, kWriter.expires - Nanoseconds(1)).ok());
  ExpectRefused(sealed, kKey, kWriter.expires, "expired 0 ms ago");
  ExpectRefused(sealed, kKey, kWriter.expires + Milliseconds(1500), "expired 1500 ms ago");
}

TEST(Capability, KeysAreFresh) {
  EXPECT_EQ(NewCapabilityKey().size(), kCapabilityKeyBytes);
  EXPECT_NE(NewCapabilityKey(), NewCapabilityKey());
}

TEST(Capability, TheKeyChangesWithTheTrustedAuthorities) {
  const std::string key = NewCapabilityKey();
  const std::string old_one = CapabilityKeyFor(key, {"old"});
  EXPECT_EQ(old_one.size(), kCapabilityKeyBytes);
  EXPECT_EQ(CapabilityKeyFor(key, {"new", "old"}), CapabilityKeyFor(key, {"old", "new"}));
  EXPECT_NE(CapabilityKeyFor(key, {"new", "old"}), old_one);
  EXPECT_NE(CapabilityKeyFor(key, {"new"}), old_one);
  EXPECT_NE(CapabilityKeyFor(NewCapabilityKey(), {"old"}), old_one);
}

}  // namespace
}  // namespace mosa
