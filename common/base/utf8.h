// Which bytes are text. Pure.
#ifndef MOSA_COMMON_BASE_UTF8_H_
#define MOSA_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace mosa {

// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

// How many bytes the character has that `text` begins with; 0 if it begins with none.
size_t FirstCharacterBytes(std::string_view text);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_UTF8_H_
