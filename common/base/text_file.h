// Reads small files that people write: configuration, platform files, workflows.
#ifndef MOSA_COMMON_BASE_TEXT_FILE_H_
#define MOSA_COMMON_BASE_TEXT_FILE_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace mosa {

// Returns the file's text. NotFound if it cannot be opened, InvalidArgument if it is not a regular
// file or is longer than `bytes_max`.
Result<std::string> ReadText(const std::string& path, uintmax_t bytes_max);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_TEXT_FILE_H_
