#include "common/base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <iterator>
#include <limits>

namespace mosa {
namespace {

// Splits "64K" into 64 and "K". Fails unless the text starts with a digit and the number fits
// int64_t.
bool SplitNumber(std::string_view text, int64_t& number, std::string_view& unit) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  unit = text.substr(static_cast<size_t>(end - text.data()));
  return true;
}

bool Scale(int64_t number, int64_t factor, int64_t& out) {
  if (number > std::numeric_limits<int64_t>::max() / factor) return false;
  out = number * factor;
  return true;
}

}  // namespace

Result<int64_t> ParseBytes(std::string_view text) {
  int64_t number = 0;
  std::string_view unit;
  if (SplitNumber(text, number, unit)) {
    int shift = -1;
    if (unit.empty() || unit == "B") shift = 0;
    constexpr std::string_view kUnits = "KMGT";
    if (!unit.empty()) {
      const size_t at = kUnits.find(unit[0]);
      const std::string_view rest = unit.substr(1);
      if (at != std::string_view::npos && (rest.empty() || rest == "iB" || rest == "B")) {
        shift = 10 * (static_cast<int>(at) + 1);
      }
    }
    int64_t bytes = 0;
    if (shift >= 0 && Scale(number, int64_t{1} << shift, bytes)) return bytes;
  }
  return InvalidArgumentError(
      fmt::format("'{}' is not a size: write bytes with an optional K, M, G or T, like 64K", text));
}

Result<Duration> ParseDuration(std::string_view text) {
  int64_t number = 0;
  std::string_view unit;
  if (SplitNumber(text, number, unit)) {
    int64_t factor = 0;
    if (unit == "ns") factor = 1;
    if (unit == "us") factor = 1'000;
    if (unit == "ms") factor = 1'000'000;
    if (unit == "s") factor = 1'000'000'000;
    if (unit == "m") factor = 60'000'000'000;
    int64_t ns = 0;
    if (factor > 0 && Scale(number, factor, ns)) return Nanoseconds(ns);
  }
  return InvalidArgumentError(fmt::format(
      "'{}' is not a time: write a number with its unit ns, us, ms, s or m, like 200ms", text));
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  for (int i = 3; i >= 0; --i) {
    const int64_t unit = int64_t{1} << (10 * (i + 1));
    if (bytes != 0 && bytes % unit == 0)
      return fmt::format("{}{}", bytes / unit, kUnits[static_cast<size_t>(i)]);
  }
  return fmt::format("{}", bytes);
}

std::string HumanBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t i = 0;
  while (value >= 1024.0 && i + 1 < std::size(kUnits)) {
    value /= 1024.0;
    ++i;
  }
  char text[32];
  std::snprintf(text, sizeof text, i == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[i]);
  return text;
}

}  // namespace mosa
