#include "manager/core/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mosa::manager {
namespace {

// Marks a group that is a directory. Groups named by users contain no space.
constexpr std::string_view kGroupHint = "group";
constexpr std::string_view kDirectoryGroup = "directory ";

}  // namespace

// ---- encoding: name NUL source [origin NUL] value NUL. Sources: s own, d directory, r rule, i
// directory whose id was not recorded, p added by SettleGroup

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
    if (!origin || origin->empty() || (code == 'd' && !ParseCount(*origin, UINT64_MAX)))
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
         ParseCount(value.substr(kDirectoryGroup.size()), UINT64_MAX);
}

}  // namespace

Result<Hints> DecodeHints(std::string_view encoded, std::vector<HintValue>* refused) {
  Hints hints;
  std::string_view rest = encoded;
  while (!rest.empty()) {
    const auto name = TakeText(rest);
    auto hint = name ? TakeHint(rest) : std::nullopt;
    if (!hint) return DataLossError("a hint is cut short");
    if (*name == kGroupHint) {
      if (hint->source != HintSource::kPattern || !IsDirectoryGroup(hint->value))
        return DataLossError("a file has an invalid group");
    } else {
      const auto parsed = ParseHint(*name, false, hint->value);
      const bool good =
          hint->source != HintSource::kPattern &&
          ClassifyAttribute("user.mosa." + std::string(*name)).kind == AttributeKind::kHint;
      if (!good || ((!parsed.ok() || *parsed != hint->value) && refused == nullptr))
        return DataLossError("a hint has an invalid value");
      if (!parsed.ok() || *parsed != hint->value) {
        refused->push_back({std::string(*name), std::move(hint->value)});
        continue;
      }
    }
    if (!hints.emplace(*name, *std::move(hint)).second) return DataLossError("a hint occurs twice");
  }
  return hints;
}

// ---- patterns

namespace {

std::vector<HintValue> MeaningOf(const Hints& hints) {
  const auto pattern = hints.find("pattern");
  if (pattern == hints.end()) return {};
  const auto group = hints.find(kGroupHint);
  return MeaningOfPattern(pattern->second.value, group == hints.end() ? "" : group->second.value);
}

// Removes the hints that the pattern of a stronger source replaces.
void MakeWayFor(std::string_view pattern, Hints& hints, bool keep_own) {
  const auto remove = [&](std::string_view name) {
    const auto found = hints.find(name);
    if (found != hints.end() && !(keep_own && found->second.source == HintSource::kOwn))
      hints.erase(found);
  };
  remove(kGroupHint);
  for (const std::string& name : HintsOfPattern(pattern)) remove(name);
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

// ---- evaluation

EffectiveHints Evaluate(const Hints& hints, const HintDefaults& defaults) {
  EffectiveHints result{.placement = defaults.placement,
                        .chunk_bytes = defaults.chunk_bytes,
                        .stripe_width = defaults.stripe_width};
  if (hints.empty()) return result;
  const std::vector<HintValue> meaning = MeaningOf(hints);
  const auto value_of = [&](std::string_view name) -> const std::string* {
    const auto found = hints.find(name);
    if (found != hints.end()) return &found->second.value;
    for (const HintValue& hint : meaning)
      if (hint.name == name) return &hint.value;
    return nullptr;
  };
  if (const std::string* placement = value_of("placement")) {
    result.placement = *placement;
    result.settles_placement = true;
  }
  // Values were checked when they were set.
  if (const auto [word, chunks] = SplitShorthand(result.placement); word == "scatter" && chunks)
    result.run_chunks = ParseCount(*chunks, kRunChunksMax).value_or(1);
  if (const std::string* size = value_of("chunk_size"))
    result.chunk_bytes = ParseCount(*size, kChunkBytesMax).value_or(defaults.chunk_bytes);
  if (const std::string* width = value_of("stripe_width")) {
    result.width_asked = true;
    result.stripe_width =
        static_cast<uint32_t>(ParseCount(*width, 1024).value_or(defaults.stripe_width));
  }
  if (const std::string* lifetime = value_of("lifetime")) {
    result.keep = *lifetime == "keep";
    result.temporary = *lifetime == "temporary";
    if (const auto [word, readers] = SplitShorthand(*lifetime); readers)
      result.readers = ParseCount(*readers, kReadersMax).value_or(0);
  }
  const std::string* strict = value_of("strict");
  result.strict = strict && *strict == "1";
  const std::string* replicas = value_of("replicas");
  if (replicas)
    result.replicas = static_cast<uint32_t>(
        *replicas == "auto" ? 0 : ParseCount(*replicas, kReplicasMax).value_or(1));
  const std::string* replicate = value_of("replicate");
  result.copied_eagerly = replicate && *replicate == "eager";
  if (const std::string* ack = value_of("ack"); ack && *ack != "optimistic")
    result.close_copies = static_cast<uint32_t>(
        *ack == "pessimistic" ? 0 : ParseCount(*ack, kReplicasMax).value_or(1));
  result.stream = value_of("stream") != nullptr;
  result.may_be_inline =
      !result.settles_placement && !value_of("replicas") && !result.strict && !result.stream;
  return result;
}

std::vector<ExplainedHint> Explain(const Hints& hints, const HintDefaults& defaults) {
  const std::vector<HintValue> meaning = MeaningOf(hints);
  const auto default_of = [&](std::string_view name) -> std::string {
    if (name == "ack") return "optimistic";
    if (name == "chunk_size") return std::to_string(defaults.chunk_bytes);
    if (name == "lifetime") return "none";
    if (name == "pattern") return "default";
    if (name == "placement") return defaults.placement;
    if (name == "replicas") return "1";
    if (name == "replicate") return "lazy";
    if (name == "stream") return "none";
    if (name == "strict") return "0";
    return defaults.stripe_width == 0 ? "all" : std::to_string(defaults.stripe_width);
  };
  std::vector<ExplainedHint> explained;
  for (const std::string_view name : kHintNames) {
    ExplainedHint hint{std::string(name), default_of(name), HintSource::kDefault, ""};
    for (const HintValue& meant : meaning) {
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
