#include "storage-node/core/checksum_table.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/base/check.h"
#include "common/base/crc32c.h"

namespace mosa::node {
namespace {

uint16_t Bit(uint64_t i) { return static_cast<uint16_t>(1U << i); }

}  // namespace

uint64_t ExtentOf(BlockIndex block, uint64_t size_bytes) {
  const uint64_t begin = BeginOf(block);
  return begin >= size_bytes ? 0 : std::min(kChecksumBlockBytes, size_bytes - begin);
}

uint32_t CrcOfZeroes(uint64_t size_bytes) {
  MOSA_CHECK(size_bytes <= kChecksumBlockBytes);
  static const std::vector<char> zeroes(kChecksumBlockBytes);
  static const uint32_t whole = Crc32c(zeroes.data(), zeroes.size());
  return size_bytes == kChecksumBlockBytes ? whole : Crc32c(zeroes.data(), size_bytes);
}

ChecksumTable ChecksumTable::ForNewObject() {
  ChecksumTable table;
  table.complete_ = true;
  return table;
}

ChecksumTable ChecksumTable::ForSums(std::span<const KnownSum> sums) {
  ChecksumTable table;
  for (const KnownSum& sum : sums) table.Set(sum.block, sum.crc);
  table.complete_ = true;
  return table;
}

std::vector<KnownSum> ChecksumTable::ListKnown(BlockIndex begin, size_t count_max) const {
  std::vector<KnownSum> sums;
  for (auto group = groups_.lower_bound(begin.value / kGroupBlocks); group != groups_.end();
       ++group) {
    for (uint64_t i = 0; i < kGroupBlocks; ++i) {
      const BlockIndex block{group->first * kGroupBlocks + i};
      if (block < begin || (group->second.known & Bit(i)) == 0) continue;
      if (sums.size() == count_max) return sums;
      sums.push_back({block, group->second.crcs[i]});
    }
  }
  return sums;
}

std::optional<uint32_t> ChecksumTable::Get(BlockIndex block, uint64_t size_bytes) const {
  const auto found = groups_.find(block.value / kGroupBlocks);
  if (found != groups_.end()) {
    const uint16_t bit = Bit(block.value % kGroupBlocks);
    if ((found->second.known & bit) != 0) return found->second.crcs[block.value % kGroupBlocks];
    if ((found->second.stale & bit) != 0) return std::nullopt;
  }
  if (!complete_) return std::nullopt;
  return CrcOfZeroes(ExtentOf(block, size_bytes));
}

bool ChecksumTable::MayDiffer(const ChecksumTable& before, uint64_t before_bytes,
                              const ChecksumTable& after, uint64_t after_bytes) {
  if (before_bytes != after_bytes || !before.sealed() || !after.sealed()) return true;
  for (const auto* const table : {&before, &after}) {
    for (const auto& [number, group] : table->groups_) {
      for (uint64_t i = 0; i < kGroupBlocks; ++i) {
        const BlockIndex block{number * kGroupBlocks + i};
        if (before.Get(block, before_bytes) != after.Get(block, after_bytes)) return true;
      }
    }
  }
  return false;
}

void ChecksumTable::Set(BlockIndex block, uint32_t crc) {
  if (crc == CrcOfZeroes(kChecksumBlockBytes)) {
    Remove(block);
    return;
  }
  Group& group = groups_[block.value / kGroupBlocks];
  const uint64_t i = block.value % kGroupBlocks;
  group.crcs[i] = crc;
  group.known |= Bit(i);
  if ((group.stale & Bit(i)) != 0) {
    group.stale &= static_cast<uint16_t>(~Bit(i));
    --stale_count_;
  }
}

void ChecksumTable::MarkStale(BlockIndex block) {
  Group& group = groups_[block.value / kGroupBlocks];
  const uint64_t i = block.value % kGroupBlocks;
  group.known &= static_cast<uint16_t>(~Bit(i));
  if ((group.stale & Bit(i)) == 0) {
    group.stale |= Bit(i);
    ++stale_count_;
  }
}

void ChecksumTable::Remove(BlockIndex block) {
  const auto found = groups_.find(block.value / kGroupBlocks);
  if (found == groups_.end()) return;
  Group& group = found->second;
  const uint16_t bit = Bit(block.value % kGroupBlocks);
  if ((group.stale & bit) != 0) --stale_count_;
  group.known &= static_cast<uint16_t>(~bit);
  group.stale &= static_cast<uint16_t>(~bit);
  if (group.known == 0 && group.stale == 0) groups_.erase(found);
}

void ChecksumTable::RemoveRange(BlockIndex begin, BlockIndex end) {
  if (begin >= end) return;
  corrupt_.erase(corrupt_.lower_bound(begin), corrupt_.lower_bound(end));
  uint64_t block = begin.value;
  while (block < end.value) {
    const auto group = groups_.lower_bound(block / kGroupBlocks);
    if (group == groups_.end()) return;
    block = std::max(block, group->first * kGroupBlocks);
    const uint64_t group_end = std::min(end.value, (group->first + 1) * kGroupBlocks);
    for (; block < group_end; ++block) Remove(BlockIndex{block});
  }
}

void ChecksumTable::NoteBytesAnew(BlockIndex block, uint64_t offset, uint64_t end,
                                  uint64_t size_bytes) {
  const auto corrupt = corrupt_.find(block);
  if (corrupt == corrupt_.end()) return;
  corrupt->second.Add({offset, end});
  const uint64_t block_end = BeginOf(block) + ExtentOf(block, size_bytes);
  if (corrupt->second.Missing({BeginOf(block), block_end}).empty()) corrupt_.erase(corrupt);
}

void ChecksumTable::Written(uint64_t offset, uint64_t length, std::span<const uint32_t> crcs,
                            uint64_t size_before, uint64_t size_after) {
  if (length == 0) return;
  MOSA_CHECK(crcs.size() == BlocksTouched(offset, length));
  // The former last block has grown beyond what its checksum covers.
  if (size_after > size_before && size_before % kChecksumBlockBytes != 0)
    MarkStale(BlockOf(size_before));
  uint64_t at = offset;
  for (const uint32_t crc : crcs) {
    const BlockIndex block = BlockOf(at);
    const uint64_t end = std::min(BeginOf(block) + kChecksumBlockBytes, offset + length);
    if (at == BeginOf(block) && end - at == ExtentOf(block, size_after)) {
      Set(block, crc);
      corrupt_.erase(block);
    } else {
      MarkStale(block);
      NoteBytesAnew(block, at, end, size_after);
    }
    at = end;
  }
}

void ChecksumTable::Cut(uint64_t size_before, uint64_t size_after) {
  if (size_after >= size_before) return;
  const uint64_t kept_blocks = (size_after + kChecksumBlockBytes - 1) / kChecksumBlockBytes;
  RemoveRange(BlockIndex{kept_blocks}, BlockIndex{UINT64_MAX});
  if (size_after % kChecksumBlockBytes == 0) return;
  MarkStale(BlockOf(size_after));
  NoteBytesAnew(BlockOf(size_after), size_after, size_after, size_after);
}

void ChecksumTable::Punched(uint64_t offset, uint64_t length, uint64_t size_bytes) {
  const uint64_t end = std::min(offset + length, size_bytes);
  if (offset >= end) return;
  // First the blocks that are now zeroes up to the object's end, then the partial ones.
  const BlockIndex begin_whole{(offset + kChecksumBlockBytes - 1) / kChecksumBlockBytes};
  const BlockIndex end_whole =
      end == size_bytes ? BlockIndex{(end + kChecksumBlockBytes - 1) / kChecksumBlockBytes}
                        : BlockOf(end);
  RemoveRange(begin_whole, end_whole);
  for (const BlockIndex edge : {BlockOf(offset), BlockOf(end - 1)}) {
    if (edge >= begin_whole && edge < end_whole) continue;
    MarkStale(edge);
    NoteBytesAnew(edge, offset, end, size_bytes);
  }
}

void ChecksumTable::Forget() {
  groups_.clear();
  stale_count_ = 0;
  complete_ = false;
}

std::optional<BlockIndex> ChecksumTable::NextStale(BlockIndex block) const {
  for (auto group = groups_.lower_bound(block.value / kGroupBlocks);
       stale_count_ > 0 && group != groups_.end(); ++group) {
    uint16_t stale = group->second.stale;
    if (group->first == block.value / kGroupBlocks)
      stale &= static_cast<uint16_t>(~0U << (block.value % kGroupBlocks));
    if (stale != 0)
      return BlockIndex{group->first * kGroupBlocks +
                        static_cast<uint64_t>(std::countr_zero(stale))};
  }
  return std::nullopt;
}

std::optional<BlockIndex> ChecksumTable::CorruptIn(BlockIndex begin, BlockIndex end) const {
  const auto found = corrupt_.lower_bound(begin);
  if (found == corrupt_.end() || found->first >= end) return std::nullopt;
  return found->first;
}

}  // namespace mosa::node
