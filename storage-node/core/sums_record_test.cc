#include "storage-node/core/sums_record.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace mosa::node {
namespace {

constexpr FileId kA{7}, kB{0x1234567890};

SumsRecord Some() {
  return {
      .damaged = false,
      .size_bytes = 20 * kChecksumBlockBytes + 5,
      .sums = {{BlockIndex{0}, 1}, {BlockIndex{1}, 2}, {BlockIndex{9}, 3}, {BlockIndex{20}, 4}}};
}

TEST(SumsRecord, TheLastOneOfAnObjectCounts) {
  SumsFound known;
  const SumsRecord empty, damaged{.damaged = true, .size_bytes = 0, .sums = {}};
  EXPECT_EQ(ReadSums(EncodeSums(kA, Some()) + EncodeSums(kB, empty) + EncodeForgotten(kA), known),
            SumsLogEnd::kWhole);
  EXPECT_EQ(known.records, (std::map<FileId, SumsRecord>{{kB, empty}}));
  EXPECT_EQ(ReadSums(EncodeSums(kB, Some()), known), SumsLogEnd::kWhole);
  EXPECT_EQ(known.records[kB], Some());
  EXPECT_EQ(ReadSums(EncodeSums(kB, damaged), known), SumsLogEnd::kWhole);
  EXPECT_EQ(known.records[kB], damaged);
  EXPECT_EQ(ReadSums("", known), SumsLogEnd::kWhole);
}

TEST(SumsRecord, GenerationsOutliveWhatIsForgotten) {
  SumsFound found;
  EXPECT_EQ(ReadSums(EncodeGeneration(kA, 3) + EncodeSums(kA, Some()) + EncodeForgotten(kA) +
                         EncodeGeneration(kB, 1) + EncodeGeneration(kA, 4),
                     found),
            SumsLogEnd::kWhole);
  EXPECT_TRUE(found.records.empty());
  EXPECT_EQ(found.generations, (std::map<FileId, uint64_t>{{kA, 4}, {kB, 1}}));
  EXPECT_EQ(ReadSums(EncodeGeneration(kA, 0), found), SumsLogEnd::kWhole);
  EXPECT_EQ(found.generations, (std::map<FileId, uint64_t>{{kB, 1}}));
}

TEST(SumsRecord, ATornEndLosesNothingBeforeIt) {
  const std::string first = EncodeSums(kA, Some()), second = EncodeForgotten(kA);
  for (size_t cut = 1; cut < second.size(); ++cut) {
    SumsFound known;
    EXPECT_EQ(ReadSums(first + second.substr(0, cut), known), SumsLogEnd::kTorn) << cut;
    EXPECT_TRUE(known.records.contains(kA));
  }
}

TEST(SumsRecord, DamageIsNoticedWhereverItIs) {
  const std::string log = EncodeSums(kA, Some());
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

// Sums beyond the end, and blocks out of order, with a checksum that holds.
TEST(SumsRecord, ThatMakesNoSenseIsDamage) {
  SumsRecord beyond = Some();
  beyond.size_bytes = kChecksumBlockBytes;
  SumsRecord backwards = Some();
  std::swap(backwards.sums[0], backwards.sums[3]);
  for (const SumsRecord& record : {beyond, backwards}) {
    SumsFound known;
    EXPECT_EQ(ReadSums(EncodeSums(kA, record), known), SumsLogEnd::kDamaged);
  }
}

TEST(SumsRecord, AnyBytesAreReadOrRefused) {
  const uint64_t seed = 2611;
  RecordProperty("seed", std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes =
        EncodeSums(kA, Some()) + EncodeGeneration(kA, rng.Next()) + EncodeForgotten(kB);
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
