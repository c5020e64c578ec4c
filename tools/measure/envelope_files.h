// Reads results of `mosa envelope run`.
#ifndef MOSA_TOOLS_MEASURE_ENVELOPE_FILES_H_
#define MOSA_TOOLS_MEASURE_ENVELOPE_FILES_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/envelope/envelope.h"

namespace mosa::cli {

// Its stores. The error names the file.
Result<std::vector<predict::Envelope>> ReadEnvelopeFile(const std::string& path);

// The store of that name; `system` may be empty if there is only one. Errors name `option` as the
// one that chooses a store.
Result<predict::Envelope> ReadEnvelopeOf(const std::string& path, const std::string& system,
                                         std::string_view option);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_FILES_H_
