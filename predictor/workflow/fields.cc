#include "predictor/workflow/fields.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

constexpr double kSecondsMax = 1e9;

// Decodes {b64: TEXT}. Returns nothing if `map` is not of that form.
std::optional<std::string> BytesOf(const Value& map) {
  const Value* text = map.fields.size() == 1 ? map.Find("b64") : nullptr;
  std::string bytes;
  if (text == nullptr || !text->is_scalar() || !absl::Base64Unescape(text->text, &bytes))
    return std::nullopt;
  return bytes;
}

// Levenshtein distance: letters to add, remove or replace.
size_t DistanceOf(std::string_view left, std::string_view right) {
  std::vector<size_t> row(right.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 0; i < left.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < right.size(); ++j) {
      const size_t replaced = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// The key that was probably meant; empty if none is similar.
std::string_view NearestOf(std::string_view key, const std::vector<std::string_view>& keys) {
  constexpr size_t kDistanceMax = 2;
  std::string_view nearest;
  size_t least = kDistanceMax + 1;
  for (const std::string_view each : keys) {
    const size_t distance = DistanceOf(key, each);
    if (distance >= least || 2 * distance >= key.size()) continue;
    nearest = each;
    least = distance;
  }
  return nearest;
}

constexpr double kExactMax = 9007199254740992;  // Doubles represent every whole number up to 2^53.

}  // namespace

void Fields::Fault(int line, const std::string& what) {
  if (faults_.size() < kFaultsMax) faults_.push_back(fmt::format("line {}: {}", line, what));
}

std::string Fields::Text(const Value& map, std::string_view key, std::string_view of) {
  const Value* value = map.Find(key);
  if (value == nullptr) return {};
  if (!value->is_scalar()) {
    Fault(value->line, fmt::format("'{}' of {} must be a text", key, of));
    return {};
  }
  return value->text;
}

std::vector<std::string> Fields::Texts(const Value& map, std::string_view key,
                                       std::string_view of) {
  std::vector<std::string> texts;
  const Value* value = map.Find(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return texts;
  if (value->kind != Value::Kind::kList) {
    Fault(value->line, fmt::format("'{}' of {} must be a list of texts", key, of));
    return texts;
  }
  for (const Value& item : value->items) {
    if (item.is_scalar()) {
      texts.push_back(item.text);
    } else if (auto bytes = BytesOf(item)) {
      texts.push_back(*std::move(bytes));
    } else {
      Fault(item.line, fmt::format("'{}' of {} must be a list of texts", key, of));
    }
  }
  return texts;
}

std::optional<uint64_t> Fields::Bytes(const Value& map, std::string_view key, std::string_view of) {
  const Value* value = map.Find(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return std::nullopt;
  const auto bytes = ParseBytes(value->text);
  if (value->is_scalar() && bytes.ok()) return static_cast<uint64_t>(*bytes);
  // Some JSON writers know only one kind of number: 1234.0, 1e6.
  double number = -1;
  const char* end = value->text.data() + value->text.size();
  const auto [read, error] = std::from_chars(value->text.data(), end, number);
  if (value->is_scalar() && error == std::errc() && read == end && number >= 0 &&
      number <= kExactMax && number == std::floor(number))
    return static_cast<uint64_t>(number);
  Fault(value->line, fmt::format("'{}' of {} must be a whole number with an optional K, M, G or T, "
                                 "such as 1048576, 64K or 1M, not '{}'",
                                 key, of, value->text.substr(0, 80)));
  return std::nullopt;
}

std::optional<uint32_t> Fields::Count(const Value& map, std::string_view key, std::string_view of,
                                      uint32_t most) {
  const Value* value = map.Find(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return std::nullopt;
  // Some JSON writers know only one kind of number: 4.0.
  double number = 0;
  const char* end = value->text.data() + value->text.size();
  const auto [read, error] = std::from_chars(value->text.data(), end, number);
  if (value->is_scalar() && error == std::errc() && read == end && number >= 1 && number <= most &&
      number == std::floor(number))
    return static_cast<uint32_t>(number);
  Fault(value->line, fmt::format("'{}' of {} must be a whole number from 1 to {}, not '{}'", key,
                                 of, most, value->text.substr(0, 80)));
  return std::nullopt;
}

std::optional<Duration> Fields::Seconds(const Value& map, std::string_view key,
                                        std::string_view of) {
  const Value* value = map.Find(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return std::nullopt;
  double seconds = -1;
  const char* end = value->text.data() + value->text.size();
  const auto [read, error] = std::from_chars(value->text.data(), end, seconds);
  if (error == std::errc() && read == end && seconds >= 0 && seconds <= kSecondsMax)
    return Duration{std::llround(seconds * 1e9)};
  Fault(value->line, fmt::format("'{}' of {} must be seconds from 0 to 1e9, not '{}'", key, of,
                                 value->text.substr(0, 80)));
  return std::nullopt;
}

std::vector<const Value*> Fields::Maps(const Value& map, std::string_view key,
                                       std::string_view of) {
  std::vector<const Value*> maps;
  const Value* value = map.Find(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return maps;
  if (value->kind != Value::Kind::kList) {
    Fault(value->line, fmt::format("'{}' of {} must be a list", key, of));
    return maps;
  }
  for (const Value& item : value->items) {
    if (item.kind == Value::Kind::kMap) {
      maps.push_back(&item);
    } else {
      Fault(item.line, fmt::format("every item of '{}' must be a map", key));
    }
  }
  return maps;
}

void Fields::AllowOnly(const Value& map, const std::vector<std::string_view>& keys,
                       std::string_view of) {
  for (const auto& [key, value] : map.fields) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const std::string shown = key.substr(0, 80);
    const std::string_view nearest = NearestOf(shown, keys);
    const std::string advice = nearest.empty()
                                   ? fmt::format("known keys are {}", fmt::join(keys, ", "))
                                   : fmt::format("did you mean '{}'?", nearest);
    Fault(value.line, fmt::format("{} has an unknown key '{}': {}", of, shown, advice));
  }
}

}  // namespace mosa::predict
