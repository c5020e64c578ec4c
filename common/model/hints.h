// What people and schedulers say about files, and what they are told of it. Plain
// values. Names are without prefix: "placement" of the attribute user.mosa.placement.
#ifndef MOSA_COMMON_MODEL_HINTS_H_
#define MOSA_COMMON_MODEL_HINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/model/hint_values.h"
#include "common/model/messages.h"

namespace mosa {

// Who set it; if several did, the later one in this list wins.
enum class HintSource : uint8_t {
  kDefault = 1,  // Nobody.
  kPattern,      // Hint `pattern`, which stands for others.
  kDirectory,    // The directory in which the file was made, or one above.
  kRule,         // A rule for the file's path.
  kOwn,          // Set on the file itself.
};

struct ExplainedHint {
  std::string name, value;
  HintSource source = HintSource::kDefault;
  std::string origin;  // The pattern, the directory's path, or the rule's glob.
  std::string note{};  // What a value that others settle comes to, and why.
  bool operator==(const ExplainedHint&) const = default;
};

// Explains a path: what holds for the file that is there, or for one that would be made there now.
struct HintExplanation {
  bool exists = false;
  std::vector<ExplainedHint> hints;  // All there are, by name.
  bool operator==(const HintExplanation&) const = default;
};

// Hints for every file and directory made from now on at a path that `glob` matches.
struct HintRule {
  uint64_t id = 0;  // Ascending in the order in which rules were added.
  std::string glob;
  std::vector<HintValue> hints;  // By name; canonical values.
  // Whose rule it is: then it is for what this user makes. None: for what anybody makes.
  std::optional<uint32_t> owner{};
  bool operator==(const HintRule&) const = default;
};

// Where the bytes of one file are, or why that cannot be said.
struct FileLocation {
  std::optional<Failure> failure;
  std::vector<std::string> nodes;  // By name, most bytes first.
  std::string chunks;              // As of attribute location.chunks; only if asked for.
  uint64_t size_bytes = 0;
  FileId file{};
  uint64_t data_version = 0;
  bool operator==(const FileLocation&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_HINTS_H_
