// Hints as users and schedulers set them, and the answers to questions about them. Plain values.
// Names come without prefix: "placement" for the attribute user.mosa.placement.
#ifndef MOSA_COMMON_MODEL_HINTS_H_
#define MOSA_COMMON_MODEL_HINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/hint_values.h"
#include "common/model/messages.h"

namespace mosa {

// The source of a hint. If several sources set it, the later one in this list wins.
enum class HintSource : uint8_t {
  kDefault = 1,  // Set by nobody.
  kPattern,      // Implied by the hint `pattern`.
  kDirectory,    // The directory in which the file was created, or one above it.
  kRule,         // A rule for the file's path.
  kOwn,          // Set on the file itself.
};

// As in the attribute user.mosa.hints.
constexpr std::string_view ToText(HintSource source) {
  switch (source) {
    case HintSource::kDefault:
      return "default";
    case HintSource::kPattern:
      return "pattern";
    case HintSource::kDirectory:
      return "directory";
    case HintSource::kRule:
      return "rule";
    case HintSource::kOwn:
      return "own";
  }
  return "unknown";
}

struct ExplainedHint {
  std::string name, value;
  HintSource source = HintSource::kDefault;
  std::string origin;  // The pattern, the directory's path, or the rule's glob.
  std::string note{};  // For a value that is derived from others: the result, and why.
  bool operator==(const ExplainedHint&) const = default;
};

// Explains the hints of the file at a path, or of a file that would be created there now.
struct HintExplanation {
  bool exists = false;
  std::vector<ExplainedHint> hints;  // All of them, by name.
  bool operator==(const HintExplanation&) const = default;
};

// Hints for files and directories created from now on at paths that match `glob`.
struct HintRule {
  uint64_t id = 0;  // Ascending in the order in which rules were added.
  std::string glob;
  std::vector<HintValue> hints;  // By name; canonical values.
  // The rule applies to what this user creates; if absent, to what anybody creates.
  std::optional<uint32_t> owner{};
  bool operator==(const HintRule&) const = default;
};

// Where the bytes of one file are, or why that is unknown.
struct FileLocation {
  std::optional<Failure> failure;
  std::vector<std::string> nodes;  // By name, most bytes first.
  std::string chunks;              // As the attribute location.chunks shows it; only if requested.
  uint64_t size_bytes = 0;
  FileId file{};
  uint64_t data_version = 0;
  bool operator==(const FileLocation&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_HINTS_H_
