// Checksum blocks. Every file is divided at multiples of kChecksumBlockBytes. Bytes that cross a
// socket carry one CRC-32C per block touched, computed over the part of the block that is sent.
#ifndef MOSA_COMMON_MODEL_CHECKSUM_BLOCKS_H_
#define MOSA_COMMON_MODEL_CHECKSUM_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/crc32c.h"
#include "common/model/ids.h"

namespace mosa {

// The number of blocks that [offset, offset + length) touches.
constexpr uint64_t BlocksTouched(uint64_t offset, uint64_t length) {
  if (length == 0) return 0;
  return (offset + length - 1) / kChecksumBlockBytes - offset / kChecksumBlockBytes + 1;
}

// How many of the `length` bytes at `offset` lie in the block of `offset`.
constexpr uint64_t BytesInBlock(uint64_t offset, uint64_t length) {
  return std::min(length, kChecksumBlockBytes - offset % kChecksumBlockBytes);
}

// Returns one CRC per block touched by `data`, which lies at `offset` of its file.
inline std::vector<uint32_t> BlockChecksums(uint64_t offset, std::span<const std::byte> data) {
  std::vector<uint32_t> crcs;
  crcs.reserve(BlocksTouched(offset, data.size()));
  for (size_t at = 0; at < data.size();) {
    const size_t n = BytesInBlock(offset + at, data.size() - at);
    crcs.push_back(Crc32c(data.data() + at, n));
    at += n;
  }
  return crcs;
}

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_CHECKSUM_BLOCKS_H_
