// Names and values of hints (docs/reference/hints.md): the extended attributes `user.mosa.*` and
// the aliases of MosaStore, Mosa's ancestor. Pure: text in, canonical values or an error out.
#ifndef MOSA_COMMON_MODEL_HINT_VALUES_H_
#define MOSA_COMMON_MODEL_HINT_VALUES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace mosa {

inline constexpr std::array<std::string_view, 10> kHintNames = {
    "ack",      "chunk_size", "lifetime", "pattern", "placement",
    "replicas", "replicate",  "stream",   "strict",  "stripe_width"};
inline constexpr uint64_t kChunkBytesMax = uint64_t{1} << 30;
inline constexpr uint64_t kRunChunksMax = uint64_t{1} << 20;
inline constexpr uint64_t kReplicasMax = 64;
inline constexpr uint64_t kReadersMax = 1'000'000;
// Smallest chunk size that a hint may ask for.
inline constexpr uint64_t kChunkBytesMin = 4096;

struct HintValue {
  std::string name, value;
  bool operator==(const HintValue&) const = default;
};

enum class AttributeKind : uint8_t {
  kOrdinary,     // user.*: stored unchanged.
  kHint,         // A hint such as user.mosa.placement, or an alias.
  kReadOnly,     // user.mosa.location and the like: computed from the state.
  kUnknownHint,  // user.mosa.* without a meaning.
  kUnsupported,  // Not in the user.* namespace.
};
struct AttributeName {
  AttributeKind kind = AttributeKind::kOrdinary;
  // Without prefix ("placement", "location"); for an alias, the hint that it stands for.
  std::string_view hint;
  bool alias = false;
};
AttributeName ClassifyAttribute(std::string_view attribute);

// Returns the canonical form of `value` for hint `hint`. `alias`: the value uses the ancestor's
// vocabulary. InvalidArgument repeats the value and says what is allowed.
Result<std::string> ParseHint(std::string_view hint, bool alias, std::string_view value);
// Returns a canonical value in the ancestor's vocabulary.
std::string AliasValue(std::string_view hint, std::string_view canonical);

// True if the hint determines where bytes go, so that it cannot change once the file has bytes.
bool IsLayoutHint(std::string_view hint);

// True if the hint can determine a file's placement before it is written, keep the file from being
// inline, or make it a stream: its creation is not deferred.
bool MaySettle(std::string_view hint);

// Returns the hints that a pattern implies for files that share `group`; none for "default".
std::vector<HintValue> MeaningOfPattern(std::string_view pattern, std::string_view group);
// Returns the hints that a pattern determines. It overrides values for them from weaker sources.
std::vector<std::string> HintsOfPattern(std::string_view pattern);

// Parses a count in [1, most] without sign or leading zero.
std::optional<uint64_t> ParseCount(std::string_view text, uint64_t most);

// Splits "word:argument"; `argument` is absent if there is no colon.
struct Shorthand {
  std::string_view word;
  std::optional<std::string_view> argument;
};
Shorthand SplitShorthand(std::string_view value);

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_HINT_VALUES_H_
