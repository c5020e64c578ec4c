#include "common/base/crc32c.h"

#include <isa-l/crc.h>

namespace mosa {

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size_bytes) {
  // ISA-L takes an int length and a mutable pointer through which it does not write; it works on
  // the raw register.
  constexpr size_t kStep = size_t{1} << 30;
  auto* p = static_cast<unsigned char*>(const_cast<void*>(data));
  uint32_t state = ~crc;
  while (size_bytes > 0) {
    const size_t n = size_bytes < kStep ? size_bytes : kStep;
    state = crc32_iscsi(p, static_cast<int>(n), state);
    p += n;
    size_bytes -= n;
  }
  return ~state;
}

}  // namespace mosa
