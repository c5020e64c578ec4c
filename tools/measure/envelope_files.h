// Results of `mosa envelope run`, read for what is made of them.
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

// The one of that name; `system` may be empty if it is the only one. `option`, of which the error
// tells, chooses one.
Result<predict::Envelope> ReadEnvelopeOf(const std::string& path, const std::string& system,
                                         std::string_view option);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_FILES_H_
