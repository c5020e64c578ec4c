#include "tools/measure/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace mosa::cli {
namespace {

using predict::Pattern;
using predict::WorkloadSize;

constexpr size_t kRepeatsMax = 1000;
constexpr double kScaleMax = 100;
constexpr size_t kSizes = 3;

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

using Scales = std::array<uint64_t, kSizes>;

Result<Scales> ParseScales(const std::vector<std::string>& words) {
  Scales scales;
  scales.fill(predict::kScaleOne);
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string text = equals == word.npos ? word : word.substr(equals + 1);
    const auto size =
        equals == word.npos ? std::nullopt : predict::ParseWorkloadSize(word.substr(0, equals));
    if (equals != word.npos && !size)
      return InvalidArgumentError(
          fmt::format("--scale {}: unknown size '{}': use small, medium or large", word,
                      word.substr(0, equals)));
    const auto scale = ParseNumber<double>(text);
    const double millionths =
        std::round(scale.value_or(0) * static_cast<double>(predict::kScaleOne));
    if (!scale || !(millionths >= 1) || *scale > kScaleMax)
      return InvalidArgumentError(fmt::format(
          "--scale {}: '{}' is not a factor on the sizes of Table 2: give 0.000001 to 100", word,
          text));
    for (size_t i = 0; i < kSizes; ++i) {
      if (!size || static_cast<size_t>(*size) == i) scales[i] = static_cast<uint64_t>(millionths);
    }
  }
  return scales;
}

Result<std::vector<uint32_t>> ParseReplicas(const PlanRequest& request) {
  std::set<uint32_t> copies;
  for (const std::string& word : request.replicas) {
    const auto count = word == "N" ? request.hosts : ParseNumber<uint32_t>(word).value_or(0);
    if (count == 0 || count > request.hosts)
      return InvalidArgumentError(fmt::format(
          "--replicas {}: give 1 to {} (the number of hosts), or N for all", word, request.hosts));
    copies.insert(count);
  }
  if (request.replicas.empty()) {
    for (const uint32_t count : {1U, 2U, 4U, 8U, 12U, 16U, request.hosts}) {
      if (count <= request.hosts) copies.insert(count);
    }
  }
  return std::vector<uint32_t>(copies.begin(), copies.end());
}

Status ParseRepeats(const std::string& text, BenchPlan& plan) {
  const size_t dots = text.find("..");
  const auto least = ParseNumber<size_t>(std::string_view(text).substr(0, dots));
  const auto most =
      dots == text.npos ? least : ParseNumber<size_t>(std::string_view(text).substr(dots + 2));
  if (!least || !most || *least == 0 || *most < *least || *most > kRepeatsMax)
    return InvalidArgumentError(
        fmt::format("--repeats {}: write MIN..MAX with 1 <= MIN <= MAX <= {}", text, kRepeatsMax));
  plan.repeats_min = *least;
  plan.repeats_max = *most;
  return OkStatus();
}

Group MakeGroup(Pattern pattern, WorkloadSize size, uint64_t scale,
                const std::vector<BenchSystem>& systems, const std::vector<uint32_t>& copies) {
  Group group;
  for (const BenchSystem& system : systems) {
    if (!Applies(pattern, system.kind)) continue;
    Cell cell{pattern, size, scale, system, 0};
    if (pattern != Pattern::kBroadcast || system.kind != SystemKind::kWass) {
      group.cells.push_back(std::move(cell));
      continue;
    }
    for (const uint32_t count : copies) {
      cell.copies = count;
      group.cells.push_back(cell);
    }
  }
  return group;
}

}  // namespace

Result<BenchPlan> PlanBench(const PlanRequest& request) {
  BenchPlan plan;
  MOSA_RETURN_IF_ERROR(ParseRepeats(request.repeats, plan));
  MOSA_ASSIGN_OR_RETURN(const Scales scales, ParseScales(request.scales));
  MOSA_ASSIGN_OR_RETURN(const auto copies, ParseReplicas(request));
  MOSA_ASSIGN_OR_RETURN(const auto systems, ParseSystems(request.systems));
  std::set<std::pair<Pattern, WorkloadSize>> planned;
  for (const std::string& pattern_name : request.patterns) {
    const auto pattern = predict::ParsePattern(pattern_name);
    if (!pattern)
      return InvalidArgumentError(fmt::format(
          "--patterns: unknown pattern '{}': use pipeline, reduce, broadcast, scatter or gather",
          pattern_name));
    for (const std::string& size_name : request.sizes) {
      const auto size = predict::ParseWorkloadSize(size_name);
      if (!size)
        return InvalidArgumentError(
            fmt::format("--sizes: unknown size '{}': use small, medium or large", size_name));
      if (!planned.emplace(*pattern, *size).second) continue;
      Group group = MakeGroup(*pattern, *size, scales[static_cast<size_t>(*size)], systems, copies);
      if (!group.cells.empty()) plan.groups.push_back(std::move(group));
    }
  }
  if (plan.groups.empty())
    return InvalidArgumentError(
        "nothing to measure: system local runs the pattern pipeline only; give other --systems");
  return plan;
}

}  // namespace mosa::cli
