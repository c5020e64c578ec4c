#include "storage-node/core/checksum_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>

#include "common/base/crc32c.h"
#include "common/base/rng.h"

namespace mosa::node {
namespace {

// An object as a plain string, with its table.
struct Model {
  std::string bytes;
  ChecksumTable table = ChecksumTable::ForNewObject();

  void Write(uint64_t offset, const std::string& data) {
    const uint64_t before = bytes.size();
    bytes.resize(std::max(before, offset + data.size()));
    bytes.replace(offset, data.size(), data);
    const auto crcs = BlockChecksums(offset, std::as_bytes(std::span(data)));
    table.Written(offset, data.size(), crcs, before, bytes.size());
  }
  void Cut(uint64_t size) {
    const uint64_t before = bytes.size();
    if (size < before) bytes.resize(size);
    table.Cut(before, bytes.size());
  }
  void Punch(uint64_t offset, uint64_t length) {
    for (uint64_t i = offset; i < std::min<uint64_t>(bytes.size(), offset + length); ++i)
      bytes[i] = '\0';
    table.Punched(offset, length, bytes.size());
  }
  bool MayDifferFrom(const Model& other) const {
    return ChecksumTable::MayDiffer(table, bytes.size(), other.table, other.bytes.size());
  }
  uint32_t TrueCrc(BlockIndex block) const {
    return Crc32c(bytes.data() + BeginOf(block), ExtentOf(block, bytes.size()));
  }
  // Computes stale checksums, as the sealer does.
  void Seal() {
    while (const auto block = table.NextStale(BlockIndex{0})) table.Set(*block, TrueCrc(*block));
    table.SetComplete();
  }
  // Checks every known checksum against the bytes. Returns how many are known.
  uint64_t CheckClaims() const {
    uint64_t known = 0;
    for (BlockIndex block{0}; BeginOf(block) < bytes.size(); ++block.value) {
      const auto crc = table.Get(block, bytes.size());
      if (crc) {
        EXPECT_EQ(*crc, TrueCrc(block)) << "block " << block.value << " of " << bytes.size();
        ++known;
      } else {
        EXPECT_FALSE(table.sealed());
      }
    }
    return known;
  }
};

TEST(ChecksumTable, KnowsWhatWasWrittenWhole) {
  const struct {
    const char* what;
    uint64_t offset;
    uint64_t length;
    uint64_t known;  // Blocks of the object.
    bool sealed;
  } rows[] = {{"one block", 0, kChecksumBlockBytes, 1, true},
              {"a short file", 0, 100, 1, true},
              {"blocks and a tail", 0, 3 * kChecksumBlockBytes + 7, 4, true},
              {"a hole first", 5 * kChecksumBlockBytes, kChecksumBlockBytes, 6, true},
              {"not from a block's start", 1, kChecksumBlockBytes, 1, false},
              {"in the middle of a block", 10, 10, 0, false}};
  for (const auto& row : rows) {
    Model model;
    model.Write(row.offset, std::string(row.length, 'x'));
    EXPECT_EQ(model.CheckClaims(), row.known) << row.what;
    EXPECT_EQ(model.table.sealed(), row.sealed) << row.what;
  }
}

TEST(ChecksumTable, AGrownTailMustBeComputedAgain) {
  Model model;
  model.Write(0, std::string(100, 'x'));
  model.Write(100, std::string(100, 'y'));
  EXPECT_FALSE(model.table.sealed());
  EXPECT_EQ(model.table.NextStale(BlockIndex{0}), BlockIndex{0});
  model.Seal();
  EXPECT_TRUE(model.table.sealed());
  model.Write(9 * kChecksumBlockBytes, "far away");
  EXPECT_EQ(model.table.NextStale(BlockIndex{0}), BlockIndex{0});
  EXPECT_EQ(model.table.NextStale(BlockIndex{1}), std::nullopt);
}

TEST(ChecksumTable, ForgetsAllWhenOthersMayWrite) {
  Model model;
  model.Write(0, std::string(kChecksumBlockBytes, 'x'));
  model.table.Forget();
  EXPECT_FALSE(model.table.sealed());
  EXPECT_EQ(model.table.Get(BlockIndex{0}, kChecksumBlockBytes), std::nullopt);
}

TEST(ChecksumTable, CorruptBlocksHealOnlyWhenWrittenWholeOrCut) {
  Model model;
  model.Write(0, std::string(4 * kChecksumBlockBytes, 'x'));
  for (uint64_t i = 0; i < 4; ++i) model.table.MarkCorrupt(BlockIndex{i});
  model.Write(10, "partly");
  model.table.Forget();
  EXPECT_EQ(model.table.corrupt_count(), 4U);
  model.Write(kChecksumBlockBytes, std::string(kChecksumBlockBytes, 'y'));
  EXPECT_EQ(model.table.CorruptIn(BlockIndex{1}, BlockIndex{2}), std::nullopt);
  EXPECT_EQ(model.table.CorruptIn(BlockIndex{0}, BlockIndex{4}), BlockIndex{0});
  model.Punch(2 * kChecksumBlockBytes, kChecksumBlockBytes);
  EXPECT_EQ(model.table.CorruptIn(BlockIndex{1}, BlockIndex{4}), BlockIndex{3});
  model.Cut(kChecksumBlockBytes);
  EXPECT_EQ(model.table.corrupt_count(), 1U);
}

TEST(ChecksumTable, CorruptBlocksHealInPieces) {
  Model model;
  model.Write(0, std::string(2 * kChecksumBlockBytes, 'x'));
  for (uint64_t i = 0; i < 2; ++i) model.table.MarkCorrupt(BlockIndex{i});
  // Programs' buffers, and the requests they are split into, may begin anywhere.
  model.Write(0, std::string(kChecksumBlockBytes - 33, 'y'));
  model.Write(kChecksumBlockBytes - 32, std::string(32, 'y'));
  EXPECT_EQ(model.table.corrupt_count(), 2U) << "one byte is missing";
  model.Punch(kChecksumBlockBytes - 40, 20);
  EXPECT_EQ(model.table.corrupt_count(), 1U);
  // At the object's end, only the bytes it has count.
  model.Write(kChecksumBlockBytes, std::string(12'345, 'z'));
  model.Cut(kChecksumBlockBytes + 12'345);
  EXPECT_EQ(model.table.corrupt_count(), 0U);
  // New damage is not healed by earlier writes.
  model.table.MarkCorrupt(BlockIndex{0});
  model.Write(0, std::string(40'000, 'y'));
  model.table.MarkCorrupt(BlockIndex{0});
  model.Write(40'000, std::string(kChecksumBlockBytes - 40'000, 'y'));
  EXPECT_EQ(model.table.corrupt_count(), 1U);
}

// 400 random changes per seed, compared with a plain string. Set MOSA_SEED to run one seed.
TEST(ChecksumTable, NeverClaimsAWrongChecksum) {
  const char* const given = std::getenv("MOSA_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  for (uint64_t seed = first; seed < first + (given != nullptr ? 1 : 8); ++seed) {
    SCOPED_TRACE("MOSA_SEED=" + std::to_string(seed));
    Rng rng(seed);
    Model model;
    constexpr uint64_t kSizeMax = 40 * kChecksumBlockBytes;
    const auto somewhere = [&rng](uint64_t limit) {
      const uint64_t at = rng.Below(limit);
      return rng.Chance(500) ? at / kChecksumBlockBytes * kChecksumBlockBytes : at;
    };
    for (int i = 0; i < 400; ++i) {
      const uint64_t choice = rng.Below(100);
      const uint64_t offset = somewhere(kSizeMax);
      const uint64_t length = std::min(1 + somewhere(6 * kChecksumBlockBytes), kSizeMax - offset);
      if (choice < 60) {
        const char byte = rng.Chance(200) ? '\0' : static_cast<char>('a' + rng.Below(26));
        model.Write(offset, std::string(length, byte));
      } else if (choice < 72) {
        model.Cut(offset);
      } else if (choice < 85) {
        model.Punch(offset, length);
      } else if (choice < 97) {
        if (model.table.complete()) model.Seal();
        EXPECT_EQ(model.table.sealed(), model.table.complete());
      } else {
        model.table.Forget();
        for (BlockIndex block{0}; BeginOf(block) < model.bytes.size(); ++block.value)
          model.table.Set(block, model.TrueCrc(block));
        model.table.SetComplete();
        EXPECT_TRUE(model.table.sealed());
      }
      model.CheckClaims();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ChecksumTable, SaysOfTwoSealedObjectsWhetherTheirBytesMayDiffer) {
  Model before;
  before.Write(0, std::string(20 * kChecksumBlockBytes, 'a'));
  EXPECT_FALSE(before.MayDifferFrom(before));
  for (const uint64_t block : {0U, 7U, 19U}) {
    Model after = before;
    after.Write(block * kChecksumBlockBytes, std::string(kChecksumBlockBytes, 'b'));
    EXPECT_TRUE(before.MayDifferFrom(after)) << block;
    EXPECT_TRUE(after.MayDifferFrom(before)) << block;
  }
  Model longer = before;
  longer.Write(20 * kChecksumBlockBytes, std::string(1, '\0'));
  EXPECT_TRUE(before.MayDifferFrom(longer));
  Model sparse = before;
  sparse.Write(30 * kChecksumBlockBytes, "x");
  Model zeroes = sparse;
  zeroes.Write(25 * kChecksumBlockBytes, std::string(kChecksumBlockBytes, '\0'));
  EXPECT_FALSE(sparse.MayDifferFrom(zeroes)) << "a hole reads as zeroes";
  zeroes.table.Forget();
  EXPECT_TRUE(sparse.MayDifferFrom(zeroes)) << "of one nothing is known";
}

}  // namespace
}  // namespace mosa::node
