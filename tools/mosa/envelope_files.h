// Results of `mosa envelope run`, read for what is made of them.
#ifndef MOSA_TOOLS_MOSA_ENVELOPE_FILES_H_
#define MOSA_TOOLS_MOSA_ENVELOPE_FILES_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/text_file.h"
#include "predictor/envelope/envelope_json.h"

namespace mosa::cli {

// Its stores. The error names the file.
inline Result<std::vector<predict::Envelope>> ReadEnvelopeFile(const std::string& path) {
  constexpr uintmax_t kBytesMax = 64 << 20;
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kBytesMax));
  auto read = predict::ReadEnvelopes(text);
  if (read.ok()) return read;
  return Status(read.status().code(), fmt::format("{} {}", path, MessageOf(read.status())));
}

// The one of that name; `system` may be empty if it is the only one. `option`, of which the error
// tells, chooses one.
Result<predict::Envelope> ReadEnvelopeOf(const std::string& path, const std::string& system,
                                         std::string_view option);

// Stores of all the files on one page, as SVG (envelope_drawing.h). InvalidArgument if there are
// too many.
Result<std::string> DrawEnvelopeFiles(const std::vector<std::string>& paths);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_ENVELOPE_FILES_H_
