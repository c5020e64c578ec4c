#include "manager/core/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "common/base/units.h"

namespace mosa::manager {
namespace {

constexpr std::string_view kUserPrefix = "user.";
constexpr std::string_view kHintPrefix = "user.mosa.";
constexpr size_t kGroupBytesMax = 200;
constexpr uint64_t kChunkBytesMin = 4096;
constexpr uint64_t kChunkBytesMax = uint64_t{1} << 30;

constexpr std::array<std::string_view, 9> kHintNames = {"ack",       "chunk_size", "lifetime",
                                                        "pattern",   "placement",  "replicas",
                                                        "replicate", "strict",     "stripe_width"};
constexpr std::array<std::string_view, 4> kReadOnlyNames = {"hints", "layout", "location",
                                                            "location.chunks"};
struct Alias {
  std::string_view attribute, hint;
};
constexpr std::array<Alias, 4> kAliases = {{{"user.DP", "placement"},
                                            {"user.Replication", "replicas"},
                                            {"user.RepSmntc", "ack"},
                                            {"user.BlockSize", "chunk_size"}}};

// The group of a file whose directory is its group. People's groups have no space.
constexpr std::string_view kGroupHint = "group";
constexpr std::string_view kDirectoryGroup = "directory ";
constexpr uint64_t kRunChunksMax = uint64_t{1} << 20;
constexpr uint64_t kPatternChunkBytes = uint64_t{1} << 20;

template <size_t kSize>
bool Contains(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A count without sign or leading zero, within [1, most].
std::optional<uint64_t> Count(std::string_view text, uint64_t most) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text[0] == '0' || number > most)
    return std::nullopt;
  return number;
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

// Splits "word:argument"; `argument` is absent without a colon.
struct Shorthand {
  std::string_view word;
  std::optional<std::string_view> argument;
};
Shorthand Split(std::string_view value) {
  const size_t colon = value.find(':');
  if (colon == std::string_view::npos) return {value, std::nullopt};
  return {value.substr(0, colon), value.substr(colon + 1)};
}

std::optional<std::string> Pattern(std::string_view value) {
  const auto [word, argument] = Split(value);
  if (word == "pipeline" || word == "default")
    return argument ? std::nullopt : std::optional(std::string(value));
  if (!argument) {
    const bool known =
        word == "reduce" || word == "broadcast" || word == "scatter" || word == "gather";
    return known ? std::optional(std::string(value)) : std::nullopt;
  }
  if (word == "reduce" && IsGroup(*argument)) return std::string(value);
  if (word == "broadcast" && Count(*argument, 64)) return std::string(value);
  if (word == "scatter" || word == "gather") {
    if (const auto size = ChunkSize(*argument)) return fmt::format("{}:{}", word, *size);
  }
  return std::nullopt;
}

std::optional<std::string> Placement(std::string_view value) {
  const auto [word, argument] = Split(value);
  const bool plain = word == "stripe" || word == "local";
  if (plain) return argument ? std::nullopt : std::optional(std::string(value));
  if (!argument) return std::nullopt;
  const bool good = ((word == "collocate" || word == "node") && IsGroup(*argument)) ||
                    (word == "scatter" && Count(*argument, kRunChunksMax));
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
  return Count(value, most) ? std::optional(std::string(value)) : std::nullopt;
}

std::optional<std::string> Lifetime(std::string_view value) {
  if (value.starts_with("readers:") && Count(value.substr(8), 1'000'000)) return std::string(value);
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
    return {Placement(value), "stripe, local, collocate:<group>, scatter:<chunks> or node:<name>"};
  if (hint == "replicas")
    return {value == "auto" ? std::string(value) : Number(value, 64), "1 to 64, or auto"};
  if (hint == "replicate") return {Word(value, {"eager", "lazy"}), "eager or lazy"};
  if (hint == "ack") {
    auto word = Word(value, {"optimistic", "pessimistic"});
    return {word ? word : Number(value, 64), "optimistic, pessimistic or 1 to 64"};
  }
  if (hint == "chunk_size")
    return {ChunkSize(value), "a multiple of 4K from 4K to 1G, as 1048576, 64K or 1M"};
  if (hint == "stripe_width") return {Number(value, 1024), "1 to 1024"};
  if (hint == "lifetime") return {Lifetime(value), "keep, temporary or readers:<n>"};
  return {Word(value, {"0", "1"}), "0 or 1"};
}

}  // namespace

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
    return InvalidArgumentError(
        fmt::format("there is no hint '{}'; known are {}", hint, fmt::join(kHintNames, ", ")));
  Parsed parsed = Parse(hint, value);
  if (alias && hint == "placement")
    parsed = {AliasPlacement(value), "local, 'collocation <group>' or 'scatter <chunks>'"};
  if (alias && hint == "ack")
    parsed = {Word(value, {"optimistic", "pessimistic"}), "optimistic or pessimistic"};
  if (!parsed.value)
    return InvalidArgumentError(fmt::format("'{}' is no value of hint '{}': allowed are {}",
                                            value.substr(0, 256), hint, parsed.allowed));
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

// ---- encoding: name NUL source [origin NUL] value NUL. Sources: s own, d directory, r rule, i
// directory (its id was not written down), p what SettleGroup has added.

std::string EncodeHints(const Hints& hints) {
  std::string encoded;
  for (const auto& [name, hint] : hints) {
    encoded += name;
    encoded += '\0';
    switch (hint.source) {
      case HintSource::kDirectory:
        encoded += hint.origin.empty() ? "i" : "d" + hint.origin + '\0';
        break;
      case HintSource::kRule:
        encoded += "r" + hint.origin + '\0';
        break;
      case HintSource::kPattern:
        encoded += 'p';
        break;
      default:
        encoded += 's';
    }
    encoded += hint.value;
    encoded += '\0';
  }
  return encoded;
}

namespace {

std::optional<std::string_view> TakeText(std::string_view& rest) {
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return text;
}

std::optional<Hint> TakeHint(std::string_view& rest) {
  if (rest.empty()) return std::nullopt;
  const char code = rest[0];
  rest.remove_prefix(1);
  Hint hint;
  switch (code) {
    case 's':
      break;
    case 'd':
    case 'i':
      hint.source = HintSource::kDirectory;
      break;
    case 'r':
      hint.source = HintSource::kRule;
      break;
    case 'p':
      hint.source = HintSource::kPattern;
      break;
    default:
      return std::nullopt;
  }
  if (code == 'd' || code == 'r') {
    const auto origin = TakeText(rest);
    if (!origin || origin->empty() || (code == 'd' && !Count(*origin, UINT64_MAX)))
      return std::nullopt;
    hint.origin = *origin;
  }
  const auto value = TakeText(rest);
  if (!value) return std::nullopt;
  hint.value = *value;
  return hint;
}

bool IsDirectoryGroup(std::string_view value) {
  return value.starts_with(kDirectoryGroup) &&
         Count(value.substr(kDirectoryGroup.size()), UINT64_MAX);
}

}  // namespace

Result<Hints> DecodeHints(std::string_view encoded) {
  Hints hints;
  std::string_view rest = encoded;
  while (!rest.empty()) {
    const auto name = TakeText(rest);
    auto hint = name ? TakeHint(rest) : std::nullopt;
    if (!hint) return DataLossError("a hint is cut short");
    if (*name == kGroupHint) {
      if (hint->source != HintSource::kPattern || !IsDirectoryGroup(hint->value))
        return DataLossError("a file has a group that nobody can have given it");
    } else {
      const auto parsed = ParseHint(*name, false, hint->value);
      if (hint->source == HintSource::kPattern || !parsed.ok() || *parsed != hint->value)
        return DataLossError("a hint has a value that nobody can have set");
    }
    if (!hints.emplace(*name, *std::move(hint)).second)
      return DataLossError("a hint stands there twice");
  }
  return hints;
}

// ---- patterns

namespace {

// What a pattern says, which may be nothing; "default" only takes away.
struct PatternMeaning {
  std::string_view word;
  std::vector<HintValue> hints;
};

PatternMeaning MeaningOf(std::string_view pattern, std::string_view group) {
  const auto [word, argument] = Split(pattern);
  if (word == "pipeline") return {word, {{"placement", "local"}, {"replicas", "1"}}};
  if (word == "reduce") {
    const std::string_view of = argument.value_or(group);
    if (of.empty()) return {word, {}};
    return {word, {{"placement", fmt::format("collocate:{}", of)}}};
  }
  if (word == "broadcast")
    return {word,
            {{"ack", "pessimistic"},
             {"replicas", std::string(argument.value_or("auto"))},
             {"replicate", "eager"}}};
  if (word == "scatter" || word == "gather")
    return {word,
            {{"chunk_size", argument ? std::string(*argument) : std::to_string(kPatternChunkBytes)},
             {"placement", "scatter:1"}}};
  return {word, {}};
}

PatternMeaning MeaningOf(const Hints& hints) {
  const auto pattern = hints.find("pattern");
  if (pattern == hints.end()) return {};
  const auto group = hints.find(kGroupHint);
  return MeaningOf(pattern->second.value, group == hints.end() ? "" : group->second.value);
}

// Takes out what a pattern that a stronger source has set speaks of.
void MakeWayFor(std::string_view pattern, Hints& hints, bool keep_own) {
  const auto remove = [&](std::string_view name) {
    const auto found = hints.find(name);
    if (found != hints.end() && !(keep_own && found->second.source == HintSource::kOwn))
      hints.erase(found);
  };
  remove(kGroupHint);
  const PatternMeaning meaning = MeaningOf(pattern, "any");
  for (const HintValue& hint : meaning.hints) remove(hint.name);
  if (meaning.word != "default") return;
  for (const std::string_view name :
       {"ack", "chunk_size", "placement", "replicas", "replicate", "stripe_width"})
    remove(name);
}

}  // namespace

Hints InheritedHints(const Hints& hints, std::string_view directory) {
  Hints inherited = hints;
  inherited.erase(std::string(kGroupHint));
  for (auto& [name, hint] : inherited) {
    if (hint.source != HintSource::kDirectory)
      hint = {std::move(hint.value), HintSource::kDirectory, std::string(directory)};
  }
  return inherited;
}

void Overlay(Hints& hints, const Hints& stronger) {
  if (const auto pattern = stronger.find("pattern"); pattern != stronger.end())
    MakeWayFor(pattern->second.value, hints, false);
  for (const auto& [name, hint] : stronger) hints.insert_or_assign(name, hint);
}

void SetOwn(Hints& hints, std::string_view name, std::string value) {
  if (name == "pattern") MakeWayFor(value, hints, true);
  hints.insert_or_assign(std::string(name), Hint{std::move(value), HintSource::kOwn, {}});
}

void EraseHint(Hints& hints, std::string_view name) {
  if (name == "pattern") hints.erase(std::string(kGroupHint));
  hints.erase(std::string(name));
}

bool NeedsGroup(const Hints& hints) {
  const auto pattern = hints.find("pattern");
  return pattern != hints.end() && pattern->second.value == "reduce" &&
         !hints.contains(kGroupHint) && !hints.contains("placement");
}

void SettleGroup(Hints& hints, FileId directory) {
  if (!NeedsGroup(hints)) return;
  hints.emplace(
      kGroupHint,
      Hint{fmt::format("{}{}", kDirectoryGroup, directory.value), HintSource::kPattern, {}});
}

bool IsLayoutHint(std::string_view hint) {
  return hint == "pattern" || hint == "placement" || hint == "chunk_size" || hint == "stripe_width";
}

bool MaySettle(std::string_view hint) {
  return hint == "pattern" || hint == "placement" || hint == "replicas" || hint == "strict";
}

// ---- what it comes to

EffectiveHints Evaluate(const Hints& hints, const HintDefaults& defaults) {
  EffectiveHints result{.placement = defaults.placement,
                        .chunk_bytes = defaults.chunk_bytes,
                        .stripe_width = defaults.stripe_width};
  if (hints.empty()) return result;
  const PatternMeaning meaning = MeaningOf(hints);
  const auto value_of = [&](std::string_view name) -> const std::string* {
    const auto found = hints.find(name);
    if (found != hints.end()) return &found->second.value;
    for (const HintValue& hint : meaning.hints)
      if (hint.name == name) return &hint.value;
    return nullptr;
  };
  if (const std::string* placement = value_of("placement")) {
    result.placement = *placement;
    result.settles_placement = true;
  }
  // Values were checked when they were set.
  if (const auto [word, chunks] = Split(result.placement); word == "scatter" && chunks)
    result.run_chunks = Count(*chunks, kRunChunksMax).value_or(1);
  if (const std::string* size = value_of("chunk_size"))
    result.chunk_bytes = Count(*size, kChunkBytesMax).value_or(defaults.chunk_bytes);
  if (const std::string* width = value_of("stripe_width")) {
    result.width_asked = true;
    result.stripe_width =
        static_cast<uint32_t>(Count(*width, 1024).value_or(defaults.stripe_width));
  }
  const std::string* strict = value_of("strict");
  result.strict = strict && *strict == "1";
  result.may_be_inline = !result.settles_placement && !value_of("replicas") && !result.strict;
  return result;
}

std::vector<ExplainedHint> Explain(const Hints& hints, const HintDefaults& defaults) {
  const PatternMeaning meaning = MeaningOf(hints);
  const auto default_of = [&](std::string_view name) -> std::string {
    if (name == "ack") return "optimistic";
    if (name == "chunk_size") return std::to_string(defaults.chunk_bytes);
    if (name == "lifetime") return "keep";
    if (name == "pattern") return "default";
    if (name == "placement") return defaults.placement;
    if (name == "replicas") return "1";
    if (name == "replicate") return "lazy";
    if (name == "strict") return "0";
    return defaults.stripe_width == 0 ? "all" : std::to_string(defaults.stripe_width);
  };
  std::vector<ExplainedHint> explained;
  for (const std::string_view name : kHintNames) {
    ExplainedHint hint{std::string(name), default_of(name), HintSource::kDefault, ""};
    for (const HintValue& meant : meaning.hints) {
      if (meant.name == name)
        hint = {hint.name, meant.value, HintSource::kPattern, hints.at("pattern").value};
    }
    if (const auto found = hints.find(name); found != hints.end())
      hint = {hint.name, found->second.value, found->second.source, found->second.origin};
    explained.push_back(std::move(hint));
  }
  return explained;
}

}  // namespace mosa::manager
