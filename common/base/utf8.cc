#include "common/base/utf8.h"

#include <cstdint>

namespace mosa {

size_t FirstCharacterBytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (text.size() < bytes) return 0;
  uint32_t point = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte & 0x3fU);
  }
  const uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < least || point > 0x10ffff || is_surrogate ? 0 : bytes;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = FirstCharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace mosa
