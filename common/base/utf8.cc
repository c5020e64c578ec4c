#include "common/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace mosa {

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4) return false;
    uint32_t point = lead & (0x3fU >> more);
    for (int k = 0; k < more; ++k, ++i) {
      if (i >= text.size() || (static_cast<uint8_t>(text[i]) & 0xc0) != 0x80) return false;
      point = point << 6 | (static_cast<uint8_t>(text[i]) & 0x3fU);
    }
    const uint32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
    if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
  }
  return true;
}

}  // namespace mosa
