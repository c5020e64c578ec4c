// The names and values of hints (docs/reference/hints.md), as extended attributes `user.mosa.*` and
// the ancestor's aliases. Pure: text in, canonical values or an error out.
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

inline constexpr std::array<std::string_view, 9> kHintNames = {
    "ack",      "chunk_size", "lifetime", "pattern",     "placement",
    "replicas", "replicate",  "strict",   "stripe_width"};
inline constexpr uint64_t kChunkBytesMax = uint64_t{1} << 30;
inline constexpr uint64_t kRunChunksMax = uint64_t{1} << 20;
inline constexpr uint64_t kReplicasMax = 64;
inline constexpr uint64_t kReadersMax = 1'000'000;
// The least that a hint may ask for as chunk size.
inline constexpr uint64_t kChunkBytesMin = 4096;

struct HintValue {
  std::string name, value;
  bool operator==(const HintValue&) const = default;
};

enum class AttributeKind : uint8_t {
  kOrdinary,     // user.*: kept as it is.
  kHint,         // user.mosa.placement and its like, or an alias.
  kReadOnly,     // user.mosa.location and its like: answered from the state.
  kUnknownHint,  // user.mosa.* that means nothing.
  kUnsupported,  // Not user.*.
};
struct AttributeName {
  AttributeKind kind = AttributeKind::kOrdinary;
  std::string_view
      hint;  // Without prefix: "placement", "location"; for an alias, what it stands for.
  bool alias = false;
};
AttributeName ClassifyAttribute(std::string_view attribute);

// The canonical value of hint `hint` that `value` means; `alias` if it is in the ancestor's words.
// InvalidArgument repeats the value and says what is allowed.
Result<std::string> ParseHint(std::string_view hint, bool alias, std::string_view value);
// The ancestor's words for a canonical value.
std::string AliasValue(std::string_view hint, std::string_view canonical);

// True of hints that say where bytes go, and so cannot change once there are bytes.
bool IsLayoutHint(std::string_view hint);

// True of hints that may settle where a file goes before it is written, or keep it from being
// inline.
bool MaySettle(std::string_view hint);

// What a pattern stands for in files that share `group`; nothing for "default".
std::vector<HintValue> MeaningOfPattern(std::string_view pattern, std::string_view group);
// What a pattern speaks of: weaker sources' values of it give way to the pattern.
std::vector<std::string> HintsOfPattern(std::string_view pattern);

// A count without sign or leading zero, within [1, most].
std::optional<uint64_t> ParseCount(std::string_view text, uint64_t most);

// "word:argument"; `argument` is absent without a colon.
struct Shorthand {
  std::string_view word;
  std::optional<std::string_view> argument;
};
Shorthand SplitShorthand(std::string_view value);

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_HINT_VALUES_H_
