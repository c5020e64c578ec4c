// Hints: what a user or scheduler says about a file (SPEC section 3), as extended attributes
// `user.mosa.*` and the ancestor's aliases. Pure: names and values in, canonical values or an error
// out.
#ifndef MOSA_MANAGER_CORE_HINTS_H_
#define MOSA_MANAGER_CORE_HINTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace mosa::manager {

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
      hint;  // Without prefix: "placement", "location"; of an alias, what it stands for.
  bool alias = false;
};
AttributeName ClassifyAttribute(std::string_view attribute);

// The canonical value of hint `hint` that `value` means; `alias` if it is in the ancestor's words.
// InvalidArgument repeats the value and says what is allowed.
Result<std::string> ParseHint(std::string_view hint, bool alias, std::string_view value);
// The ancestor's words for a canonical value.
std::string AliasValue(std::string_view hint, std::string_view canonical);

struct Hint {
  std::string value;
  bool inherited = false;  // From the directory that the file was made in.
  bool operator==(const Hint&) const = default;
};
// By name, without prefix. What a file has is kept in one string, since most files of a directory
// share it.
using Hints = std::map<std::string, Hint, std::less<>>;
std::string EncodeHints(const Hints& hints);
// Anything that EncodeHints cannot have made is DataLoss.
Result<Hints> DecodeHints(std::string_view encoded);
// What a file made below a directory with `hints` begins with.
Hints InheritedHints(const Hints& hints);

// True of hints that say where bytes go, and so cannot change once there are bytes.
bool IsLayoutHint(std::string_view hint);

// What hints come to.
struct EffectiveHints {
  std::string placement;
  uint64_t chunk_bytes = 0;
  uint32_t stripe_width = 0;
  bool may_be_inline = true;
  bool settles_placement = false;  // Hints alone say where the file goes.
};
struct HintDefaults {
  std::string placement;
  uint64_t chunk_bytes = 0;
  uint32_t stripe_width = 0;
};
EffectiveHints Evaluate(const Hints& hints, const HintDefaults& defaults);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HINTS_H_
