#include "common/model/hint_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/units.h"

namespace mosa {
namespace {

constexpr std::string_view kUserPrefix = "user.";
constexpr std::string_view kHintPrefix = "user.mosa.";
constexpr uint64_t kPatternChunkBytes = uint64_t{1} << 20;
constexpr size_t kGroupBytesMax = 200;
// Limit on user input that an error message repeats.
constexpr size_t kRepeatedBytesMax = 256;

constexpr std::array<std::string_view, 4> kReadOnlyNames = {"hints", "layout", "location",
                                                            "location.chunks"};
struct Alias {
  std::string_view attribute, hint;
};
constexpr std::array<Alias, 4> kAliases = {{{"user.DP", "placement"},
                                            {"user.Replication", "replicas"},
                                            {"user.RepSmntc", "ack"},
                                            {"user.BlockSize", "chunk_size"}}};

template <size_t kSize>
bool Contains(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsGroup(std::string_view text) {
  return !text.empty() && text.size() <= kGroupBytesMax &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
}

std::optional<std::string> ChunkSize(std::string_view text) {
  const auto bytes = ParseBytes(text);
  if (!bytes.ok()) return std::nullopt;
  const auto size = static_cast<uint64_t>(*bytes);
  if (size < kChunkBytesMin || size > kChunkBytesMax || size % kChunkBytesMin != 0)
    return std::nullopt;
  return std::to_string(size);
}

std::optional<std::string> Pattern(std::string_view value) {
  const auto [word, argument] = SplitShorthand(value);
  if (word == "pipeline" || word == "default")
    return argument ? std::nullopt : std::optional(std::string(value));
  if (!argument) {
    const bool known =
        word == "reduce" || word == "broadcast" || word == "scatter" || word == "gather";
    return known ? std::optional(std::string(value)) : std::nullopt;
  }
  if (word == "reduce" && IsGroup(*argument)) return std::string(value);
  if (word == "broadcast" && ParseCount(*argument, kReplicasMax)) return std::string(value);
  if (word == "scatter" || word == "gather") {
    if (const auto size = ChunkSize(*argument)) return fmt::format("{}:{}", word, *size);
  }
  return std::nullopt;
}

std::optional<std::string> Placement(std::string_view value) {
  const auto [word, argument] = SplitShorthand(value);
  const bool plain = word == "stripe" || word == "local" || word == "near";
  if (plain) return argument ? std::nullopt : std::optional(std::string(value));
  if (!argument) return std::nullopt;
  const bool good = ((word == "collocate" || word == "node") && IsGroup(*argument)) ||
                    (word == "scatter" && ParseCount(*argument, kRunChunksMax));
  return good ? std::optional(std::string(value)) : std::nullopt;
}

std::optional<std::string> AliasPlacement(std::string_view value) {
  if (value == "local") return "local";
  const struct {
    std::string_view theirs, ours;
  } words[] = {{"collocation ", "collocate:"}, {"scatter ", "scatter:"}};
  for (const auto& [theirs, ours] : words) {
    if (value.starts_with(theirs))
      return Placement(std::string(ours) + std::string(value.substr(theirs.size())));
  }
  return std::nullopt;
}

std::optional<std::string> Word(std::string_view value,
                                std::initializer_list<std::string_view> allowed) {
  for (const std::string_view word : allowed) {
    if (value == word) return std::string(value);
  }
  return std::nullopt;
}

std::optional<std::string> Number(std::string_view value, uint64_t most) {
  return ParseCount(value, most) ? std::optional(std::string(value)) : std::nullopt;
}

std::optional<std::string> Lifetime(std::string_view value) {
  if (value.starts_with("readers:") && ParseCount(value.substr(8), kReadersMax))
    return std::string(value);
  return Word(value, {"keep", "temporary"});
}

struct Parsed {
  std::optional<std::string> value;
  std::string_view allowed;
};

Parsed Parse(std::string_view hint, std::string_view value) {
  if (hint == "pattern")
    return {Pattern(value),
            "pipeline, reduce[:group], broadcast[:n], scatter[:size], gather[:size] or default"};
  if (hint == "placement")
    return {Placement(value),
            "stripe, near, local, collocate:<group>, scatter:<chunks> or node:<name>"};
  if (hint == "replicas")
    return {value == "auto" ? std::string(value) : Number(value, kReplicasMax), "1 to 64, or auto"};
  if (hint == "replicate") return {Word(value, {"eager", "lazy"}), "eager or lazy"};
  if (hint == "ack") {
    auto word = Word(value, {"optimistic", "pessimistic"});
    return {word ? word : Number(value, kReplicasMax), "optimistic, pessimistic or 1 to 64"};
  }
  if (hint == "chunk_size")
    return {ChunkSize(value), "a multiple of 4K from 4K to 1G, as 1048576, 64K or 1M"};
  if (hint == "stripe_width") return {Number(value, 1024), "1 to 1024"};
  if (hint == "lifetime") return {Lifetime(value), "keep, temporary or readers:<n>"};
  if (hint == "stream") return {Word(value, {"append"}), "append"};
  return {Word(value, {"0", "1"}), "0 or 1"};
}

}  // namespace

std::optional<uint64_t> ParseCount(std::string_view text, uint64_t most) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text[0] == '0' || number > most)
    return std::nullopt;
  return number;
}

Shorthand SplitShorthand(std::string_view value) {
  const size_t colon = value.find(':');
  if (colon == std::string_view::npos) return {value, std::nullopt};
  return {value.substr(0, colon), value.substr(colon + 1)};
}

std::vector<HintValue> MeaningOfPattern(std::string_view pattern, std::string_view group) {
  const auto [word, argument] = SplitShorthand(pattern);
  if (word == "pipeline") return {{"placement", "local"}, {"replicas", "1"}};
  if (word == "reduce") {
    const std::string_view of = argument.value_or(group);
    if (of.empty()) return {};
    return {{"placement", fmt::format("collocate:{}", of)}};
  }
  if (word == "broadcast")
    return {{"ack", "pessimistic"},
            {"replicas", std::string(argument.value_or("auto"))},
            {"replicate", "eager"}};
  if (word == "scatter" || word == "gather")
    return {{"chunk_size", argument ? std::string(*argument) : std::to_string(kPatternChunkBytes)},
            {"placement", "scatter:1"}};
  return {};
}

std::vector<std::string> HintsOfPattern(std::string_view pattern) {
  // "default" only removes hints.
  if (SplitShorthand(pattern).word == "default")
    return {"ack", "chunk_size", "placement", "replicas", "replicate", "stripe_width"};
  std::vector<std::string> names;
  for (HintValue& hint : MeaningOfPattern(pattern, "any")) names.push_back(std::move(hint.name));
  return names;
}

AttributeName ClassifyAttribute(std::string_view attribute) {
  if (!attribute.starts_with(kUserPrefix) || attribute.size() == kUserPrefix.size())
    return {AttributeKind::kUnsupported, {}, false};
  for (const Alias& alias : kAliases) {
    if (attribute == alias.attribute) return {AttributeKind::kHint, alias.hint, true};
  }
  if (attribute == "user.location") return {AttributeKind::kReadOnly, "location", true};
  if (!attribute.starts_with(kHintPrefix)) return {AttributeKind::kOrdinary, {}, false};
  const std::string_view name = attribute.substr(kHintPrefix.size());
  if (Contains(kHintNames, name)) return {AttributeKind::kHint, name, false};
  if (Contains(kReadOnlyNames, name)) return {AttributeKind::kReadOnly, name, false};
  return {AttributeKind::kUnknownHint, name, false};
}

Result<std::string> ParseHint(std::string_view hint, bool alias, std::string_view value) {
  if (!Contains(kHintNames, hint))
    return InvalidArgumentError(fmt::format("unknown hint '{}': known hints are {}",
                                            hint.substr(0, kRepeatedBytesMax),
                                            fmt::join(kHintNames, ", ")));
  Parsed parsed = Parse(hint, value);
  if (alias && hint == "placement")
    parsed = {AliasPlacement(value), "local, 'collocation <group>' or 'scatter <chunks>'"};
  if (alias && hint == "ack")
    parsed = {Word(value, {"optimistic", "pessimistic"}), "optimistic or pessimistic"};
  if (!parsed.value)
    return InvalidArgumentError(fmt::format("'{}' is not a value of hint '{}': allowed are {}",
                                            value.substr(0, kRepeatedBytesMax), hint,
                                            parsed.allowed));
  return *std::move(parsed.value);
}

std::string AliasValue(std::string_view hint, std::string_view canonical) {
  if (hint == "placement") {
    if (canonical.starts_with("collocate:"))
      return "collocation " + std::string(canonical.substr(10));
    if (canonical.starts_with("scatter:")) return "scatter " + std::string(canonical.substr(8));
  }
  return std::string(canonical);
}

bool MaySettle(std::string_view hint) {
  return hint == "pattern" || hint == "placement" || hint == "replicas" || hint == "stream" ||
         hint == "strict";
}

bool IsLayoutHint(std::string_view hint) {
  return hint == "pattern" || hint == "placement" || hint == "chunk_size" || hint == "stripe_width";
}

}  // namespace mosa
