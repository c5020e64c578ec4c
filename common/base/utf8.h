// UTF-8 validation as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. Pure.
#ifndef MOSA_COMMON_BASE_UTF8_H_
#define MOSA_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace mosa {

bool IsUtf8(std::string_view text);

// Returns the length in bytes of the character at the start of `text`, or 0 if `text` does not
// start with a valid character.
size_t FirstCharacterBytes(std::string_view text);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_UTF8_H_
