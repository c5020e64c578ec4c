#include "storage-node/core/sums_record.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace mosa::node {
namespace {

constexpr FileId kFileA{7}, kFileB{0x1234567890};

SumsRecord Some() {
  return {
      .damaged = false,
      .size_bytes = 20 * kChecksumBlockBytes + 5,
      .sums = {{BlockIndex{0}, 1}, {BlockIndex{1}, 2}, {BlockIndex{9}, 3}, {BlockIndex{20}, 4}}};
}

TEST(SumsRecord, TheLastOneOfAnObjectCounts) {
  SumsFound known;
  const SumsRecord empty, damaged{.damaged = true, .size_bytes = 0, .sums = {}};
  EXPECT_EQ(
      ReadSums(EncodeSums(kFileA, Some()) + EncodeSums(kFileB, empty) + EncodeForgotten(kFileA),
               known),
      SumsLogEnd::kWhole);
  EXPECT_EQ(known.records, (std::map<FileId, SumsRecord>{{kFileB, empty}}));
  EXPECT_EQ(ReadSums(EncodeSums(kFileB, Some()), known), SumsLogEnd::kWhole);
  EXPECT_EQ(known.records[kFileB], Some());
  EXPECT_EQ(ReadSums(EncodeSums(kFileB, damaged), known), SumsLogEnd::kWhole);
  EXPECT_EQ(known.records[kFileB], damaged);
  EXPECT_EQ(ReadSums("", known), SumsLogEnd::kWhole);
}

TEST(SumsRecord, GenerationsOutliveWhatIsForgotten) {
  SumsFound found;
  EXPECT_EQ(
      ReadSums(EncodeGeneration(kFileA, 3) + EncodeSums(kFileA, Some()) + EncodeForgotten(kFileA) +
                   EncodeGeneration(kFileB, 1) + EncodeGeneration(kFileA, 4),
               found),
      SumsLogEnd::kWhole);
  EXPECT_TRUE(found.records.empty());
  EXPECT_EQ(found.generations, (std::map<FileId, uint64_t>{{kFileA, 4}, {kFileB, 1}}));
  EXPECT_EQ(ReadSums(EncodeGeneration(kFileA, 0), found), SumsLogEnd::kWhole);
  EXPECT_EQ(found.generations, (std::map<FileId, uint64_t>{{kFileB, 1}}));
}

TEST(SumsRecord, ATornEndLosesNothingBeforeIt) {
  const std::string first = EncodeSums(kFileA, Some()), second = EncodeForgotten(kFileA);
  for (size_t cut = 1; cut < second.size(); ++cut) {
    SumsFound known;
    EXPECT_EQ(ReadSums(first + second.substr(0, cut), known), SumsLogEnd::kTorn) << cut;
    EXPECT_TRUE(known.records.contains(kFileA));
  }
}

TEST(SumsRecord, DamageIsNoticedWhereverItIs) {
  const std::string log = EncodeSums(kFileA, Some());
  for (size_t i = 0; i < log.size(); ++i) {
    std::string changed = log;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    SumsFound known;
    EXPECT_NE(ReadSums(changed, known), SumsLogEnd::kWhole) << i;
    EXPECT_TRUE(known.records.empty());
  }
  SumsFound known;
  EXPECT_EQ(ReadSums(std::string(100, '\0'), known), SumsLogEnd::kDamaged);
}

// Sums beyond the end, and blocks out of order, with a valid checksum.
TEST(SumsRecord, ThatMakesNoSenseIsDamage) {
  SumsRecord beyond = Some();
  beyond.size_bytes = kChecksumBlockBytes;
  SumsRecord backwards = Some();
  std::swap(backwards.sums[0], backwards.sums[3]);
  for (const SumsRecord& record : {beyond, backwards}) {
    SumsFound known;
    EXPECT_EQ(ReadSums(EncodeSums(kFileA, record), known), SumsLogEnd::kDamaged);
  }
}

TEST(SumsRecord, AnyBytesAreReadOrRefused) {
  const uint64_t seed = 2611;
  RecordProperty("seed", std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes =
        EncodeSums(kFileA, Some()) + EncodeGeneration(kFileA, rng.Next()) + EncodeForgotten(kFileB);
    if (rng.Chance(300)) {
      bytes.assign(rng.Below(80), '\0');
      for (char& c : bytes) c = static_cast<char>(rng.Next());
    }
    for (uint64_t flips = rng.Below(4); flips > 0 && !bytes.empty(); --flips)
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    bytes.resize(rng.Below(bytes.size() + 1));
    SumsFound known;
    ReadSums(bytes, known);
    for (const auto& [file, record] : known.records) {
      SumsFound again;
      EXPECT_EQ(ReadSums(EncodeSums(file, record), again), SumsLogEnd::kWhole);
      EXPECT_EQ(again.records[file], record);
    }
  }
}

}  // namespace
}  // namespace mosa::node
