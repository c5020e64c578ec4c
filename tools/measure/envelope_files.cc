#include "tools/measure/envelope_files.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/text_file.h"
#include "predictor/envelope/envelope_json.h"

namespace mosa::cli {

Result<std::vector<predict::Envelope>> ReadEnvelopeFile(const std::string& path) {
  constexpr uintmax_t kBytesMax = 64 << 20;
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kBytesMax));
  auto read = predict::ReadEnvelopes(text);
  if (read.ok()) return read;
  return Status(read.status().code(), fmt::format("{} {}", path, MessageOf(read.status())));
}

Result<predict::Envelope> ReadEnvelopeOf(const std::string& path, const std::string& system,
                                         std::string_view option) {
  MOSA_ASSIGN_OR_RETURN(std::vector<predict::Envelope> read, ReadEnvelopeFile(path));
  std::string names;
  for (predict::Envelope& envelope : read) {
    if (envelope.name == system || (system.empty() && read.size() == 1)) return std::move(envelope);
    names += (names.empty() ? "" : ", ") + envelope.name;
  }
  return InvalidArgumentError(
      system.empty()
          ? fmt::format("{} has several systems: give {}, one of {}", path, option, names)
          : fmt::format("{} has no system '{}': it has {}", path, system, names));
}

}  // namespace mosa::cli
