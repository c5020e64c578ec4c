// ChecksumTable: the known checksums of one object, in blocks of kChecksumBlockBytes. Pure; one
// owner.
//
// For each block the table holds its CRC, or a mark that it must be computed, or nothing. In a
// complete table a block with no entry is all zeroes, such as a hole. So a sealed object (complete,
// nothing to compute) has a checksum for every block, and a sparse object needs memory only for its
// data. A block's checksum covers it up to the object's end.
//
// A corrupt block stays corrupt until all of its pages have been rewritten, punched or cut off, in
// one piece or in several.
#ifndef MOSA_STORAGE_NODE_CORE_CHECKSUM_TABLE_H_
#define MOSA_STORAGE_NODE_CORE_CHECKSUM_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/model/checksum_blocks.h"
#include "common/model/ids.h"
#include "common/model/ranges.h"

namespace mosa::node {

// A checksum block of an object, counted from the file's start.
using BlockIndex = StrongId<struct BlockIndexTag, uint64_t>;

inline BlockIndex BlockOf(uint64_t offset) { return BlockIndex{offset / kChecksumBlockBytes}; }
inline uint64_t BeginOf(BlockIndex block) { return block.value * kChecksumBlockBytes; }
// Returns how many bytes of `block` an object of `size_bytes` has.
uint64_t ExtentOf(BlockIndex block, uint64_t size_bytes);
// Returns the checksum of `size_bytes` zeroes, at most a block.
uint32_t CrcOfZeroes(uint64_t size_bytes);

// A block and its checksum.
struct KnownSum {
  BlockIndex block;
  uint32_t crc = 0;
  bool operator==(const KnownSum&) const = default;
};

class ChecksumTable {
 public:
  // For a new, empty object: complete.
  static ChecksumTable ForNewObject();
  // For an object whose bytes have no known checksums.
  static ChecksumTable ForUnknownBytes() { return ChecksumTable(); }
  // For a sealed object: blocks not in `sums` are zeroes.
  static ChecksumTable ForSums(std::span<const KnownSum> sums);

  // Returns the entries that ForSums needs to rebuild a sealed table, ascending: at most
  // `count_max`, from block `begin` on.
  std::vector<KnownSum> ListKnown(BlockIndex begin = {}, size_t count_max = SIZE_MAX) const;

  // Returns the checksum of `block` in an object of `size_bytes`, if known.
  std::optional<uint32_t> Get(BlockIndex block, uint64_t size_bytes) const;
  // Stores a computed checksum. A whole block of zeroes takes no memory (in an incomplete table its
  // checksum is not kept).
  void Set(BlockIndex block, uint32_t crc);

  // Call after bytes [offset, offset + length) were written and the object grew from `size_before`
  // to `size_after`. `crcs` has one entry per block touched, over the written part. Blocks written
  // up to the object's end become known; others must be computed.
  void Written(uint64_t offset, uint64_t length, std::span<const uint32_t> crcs,
               uint64_t size_before, uint64_t size_after);
  // Call after the object was cut from `size_before` to `size_after`.
  void Cut(uint64_t size_before, uint64_t size_after);
  // Call after a hole was punched into an object of `size_bytes`.
  void Punched(uint64_t offset, uint64_t length, uint64_t size_bytes);
  // Forgets everything except corrupt blocks. Call when another program may write unseen.
  void Forget();
  // Precondition: every block with data is known or marked. From now on blocks with no entry are
  // zeroes.
  void SetComplete() { complete_ = true; }

  // Returns true if an object whose checksums were `before` may now have other bytes.
  static bool MayDiffer(const ChecksumTable& before, uint64_t before_bytes,
                        const ChecksumTable& after, uint64_t after_bytes);

  bool complete() const { return complete_; }
  bool sealed() const { return complete_ && stale_count_ == 0; }
  // In a complete table, returns the first block at or after `block` whose checksum must be
  // computed.
  std::optional<BlockIndex> NextStale(BlockIndex block) const;

  void MarkCorrupt(BlockIndex block) { corrupt_[block].Clear(); }
  // Returns the first corrupt block in [begin, end), if any.
  std::optional<BlockIndex> CorruptIn(BlockIndex begin, BlockIndex end) const;
  uint64_t corrupt_count() const { return corrupt_.size(); }

 private:
  static constexpr uint64_t kGroupBlocks = 16;
  // 16 adjacent blocks: 1 MiB of the file, the default chunk.
  struct Group {
    std::array<uint32_t, kGroupBlocks> crcs{};
    uint16_t known = 0;  // Bit i: crcs[i] is valid.
    uint16_t stale = 0;  // Bit i: the checksum of the block must be computed.
  };

  ChecksumTable() = default;
  void MarkStale(BlockIndex block);
  void Remove(BlockIndex block);
  // Removes the entries of [begin, end), without visiting absent ones.
  void RemoveRange(BlockIndex begin, BlockIndex end);
  // Notes that bytes [offset, end) of a block were rewritten, in an object of `size_bytes`. A
  // corrupt block heals once all of it was.
  void NoteBytesAnew(BlockIndex block, uint64_t offset, uint64_t end, uint64_t size_bytes);

  std::map<uint64_t, Group> groups_;
  std::map<BlockIndex, IntervalSet> corrupt_;  // With the ranges rewritten since.
  uint64_t stale_count_ = 0;
  bool complete_ = false;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_CHECKSUM_TABLE_H_
