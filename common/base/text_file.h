// Small files that people write: configuration, figures, workflows.
#ifndef MOSA_COMMON_BASE_TEXT_FILE_H_
#define MOSA_COMMON_BASE_TEXT_FILE_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace mosa {

// A file's text. The error says what is wrong with it: NotFound if it cannot be opened,
// InvalidArgument if it is no file or longer than `bytes_max`.
Result<std::string> ReadText(const std::string& path, uintmax_t bytes_max);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_TEXT_FILE_H_
