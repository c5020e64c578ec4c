// ChecksumTable: what a node knows of the checksums of one object, in blocks of
// kChecksumBlockBytes. Pure; one owner.
//
// For each block the table knows its CRC, or that it must be computed, or nothing. In a complete
// table a block about which it knows nothing is all zeroes: a hole, or as good as one. So a sealed
// object (complete, nothing to compute) has a checksum for every block, and a sparse one needs
// memory only for its data. A block's checksum covers it up to the object's end.
//
// A block found corrupt stays so until all of its pages are written anew, punched or cut off, in
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
// How much of `block` an object of `size_bytes` has.
uint64_t ExtentOf(BlockIndex block, uint64_t size_bytes);
// The checksum of `size_bytes` zeroes, at most a block.
uint32_t CrcOfZeroes(uint64_t size_bytes);

// A block and its checksum.
struct KnownSum {
  BlockIndex block;
  uint32_t crc = 0;
  bool operator==(const KnownSum&) const = default;
};

class ChecksumTable {
 public:
  // A new, empty object: complete.
  static ChecksumTable ForNewObject();
  // An object with bytes that nobody has summed.
  static ChecksumTable ForUnknownBytes() { return ChecksumTable(); }
  // A sealed object: all blocks but these are zeroes.
  static ChecksumTable ForSums(std::span<const KnownSum> sums);

  // What ForSums needs to make a sealed table again, ascending. From block `begin` on, at most
  // so many.
  std::vector<KnownSum> ListKnown(BlockIndex begin = {}, size_t count_max = SIZE_MAX) const;

  // The checksum of `block` in an object of `size_bytes`, if it is known.
  std::optional<uint32_t> Get(BlockIndex block, uint64_t size_bytes) const;
  // A computed checksum. That of a whole block of zeroes takes no memory (and in a table that is
  // not complete it is not kept).
  void Set(BlockIndex block, uint32_t crc);

  // Bytes [offset, offset + length) were written, which took the object from `size_before` to
  // `size_after` bytes. `crcs` has one entry per block touched, over the part written. Blocks
  // written as far as the object reaches are known, others are to be computed.
  void Written(uint64_t offset, uint64_t length, std::span<const uint32_t> crcs,
               uint64_t size_before, uint64_t size_after);
  // The object, of `size_before` bytes, was cut to `size_after`.
  void Cut(uint64_t size_before, uint64_t size_after);
  // A hole was punched into an object of `size_bytes`.
  void Punched(uint64_t offset, uint64_t length, uint64_t size_bytes);
  // Somebody may write without telling: all is forgotten, but what is corrupt.
  void Forget();
  // Every block with data has been summed or is marked; from now on unknown ones are zeroes.
  void SetComplete() { complete_ = true; }

  // Whether an object whose blocks were `before` in `before_bytes` may have other bytes now.
  static bool MayDiffer(const ChecksumTable& before, uint64_t before_bytes,
                        const ChecksumTable& after, uint64_t after_bytes);

  bool complete() const { return complete_; }
  bool sealed() const { return complete_ && stale_count_ == 0; }
  // The first block at or after `block` whose checksum must be computed, in a complete table.
  std::optional<BlockIndex> NextStale(BlockIndex block) const;

  void MarkCorrupt(BlockIndex block) { corrupt_[block].Clear(); }
  // The first corrupt block of [begin, end), if any.
  std::optional<BlockIndex> CorruptIn(BlockIndex begin, BlockIndex end) const;
  uint64_t corrupt_count() const { return corrupt_.size(); }

 private:
  static constexpr uint64_t kGroupBlocks = 16;
  // 16 neighbours: 1 MiB of the file, the usual chunk.
  struct Group {
    std::array<uint32_t, kGroupBlocks> crcs{};
    uint16_t known = 0;  // Bit i: crcs[i] holds.
    uint16_t stale = 0;  // Bit i: the block has bytes whose checksum must be computed.
  };

  ChecksumTable() = default;
  void MarkStale(BlockIndex block);
  void Remove(BlockIndex block);
  // Forgets blocks of [begin, end) without visiting the absent ones.
  void RemoveRange(BlockIndex begin, BlockIndex end);
  // Bytes [offset, end) of a block, in an object of `size_bytes`, are as they should be; if they
  // were the rest of a corrupt block, it is whole again.
  void NoteBytesAnew(BlockIndex block, uint64_t offset, uint64_t end, uint64_t size_bytes);

  std::map<uint64_t, Group> groups_;
  std::map<BlockIndex, IntervalSet> corrupt_;  // With what was written of each since.
  uint64_t stale_count_ = 0;
  bool complete_ = false;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_CHECKSUM_TABLE_H_
