// CRC-32C (Castagnoli, RFC 3720 B.4), the checksum of every byte that crosses a socket. ISA-L
// computes it at memory speed. Extend(Extend(0, a), b) equals Crc32c(a followed by b).
#ifndef MOSA_COMMON_BASE_CRC32C_H_
#define MOSA_COMMON_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

namespace mosa {

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size_bytes);
inline uint32_t Crc32c(const void* data, size_t size_bytes) {
  return ExtendCrc32c(0, data, size_bytes);
}

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_CRC32C_H_
