#include "tools/draw/capacity_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "common/base/units.h"
#include "predictor/capacity/verdict.h"
#include "tools/console/output.h"
#include "tools/draw/chart.h"
#include "tools/draw/svg.h"
#include "tools/measure/capacity_results.h"

namespace mosa::cli {
namespace {

using predict::Capacity;
using predict::LoadCheck;
using predict::SizeVerdict;

constexpr double kPanelWidth = 410;
constexpr double kPanelHeight = 300;
constexpr double kTitleHeight = 34;
constexpr double kLineHeight = 15;
constexpr std::string_view kEstimated = kColors[4];
constexpr std::string_view kMeasured = kColors[0];

// The panel of that number from the left.
Chart PanelAt(Svg& svg, size_t number, const Scale& upwards) {
  return {svg,
          {{static_cast<double>(number) * kPanelWidth, kTitleHeight}, kPanelWidth, kPanelHeight},
          upwards};
}

void DrawTitle(Svg& svg, std::string_view text, const Capacity& capacity) {
  svg.Text({14, 22}, fmt::format("{}: {}", capacity.name, text), {.size = 14, .bold = true});
}

// ---- Figure 2

using BySize = std::map<uint64_t, std::vector<LoadCheck>>;

std::string_view ColorOfSize(const BySize& sizes, uint64_t size) {
  return SvgColor(static_cast<size_t>(std::distance(sizes.begin(), sizes.find(size))));
}

void DrawRatioFrame(Chart& panel, std::string_view title, std::string_view unit) {
  panel.DrawFrame(title, "per cent of reads", unit);
  for (const int percent : {0, 20, 40, 60, 80, 100})
    panel.DrawTick(percent / 100.0, fmt::format("{}", percent));
}

void DrawConstants(Svg& svg, const Capacity& capacity, const BySize& sizes) {
  std::map<uint64_t, std::vector<Point>> curves;
  double least = 0, most = 0;
  for (const auto& [size, checks] : sizes) {
    std::vector<Point>& curve = curves[size];
    const double seed = MeasuredOperations(*capacity.Find(predict::OneSize(size, 100))).median;
    curve.push_back({0, seed});
    for (const LoadCheck& check : checks)
      curve.push_back({check.load.parts.front().read_percent / 100.0, check.constant});
    curve.push_back({1, seed});
    for (const Point& at : curve) {
      least = least == 0 ? at.y : std::min(least, at.y);
      most = std::max(most, at.y);
    }
  }
  Chart panel = PanelAt(svg, 0, Scale::Decades(least, most));
  DrawRatioFrame(panel, "C, operations per second (equation 3)", "");
  for (const auto& [size, curve] : curves)
    panel.DrawCurve(curve, {.color = ColorOfSize(sizes, size), .width = 1.6});
}

void DrawErrors(Svg& svg, const BySize& sizes, bool small) {
  double allowed = 0, most = 0;
  std::map<uint64_t, std::vector<Point>> curves;
  for (const auto& [size, checks] : sizes) {
    if ((size <= predict::kSmallSizeMax) != small) continue;
    for (const LoadCheck& check : checks) {
      most = std::max(most, check.error_percent);
      allowed = ErrorPercentMax(check.load);
      curves[size].push_back({check.load.parts.front().read_percent / 100.0, check.error_percent});
    }
  }
  Chart panel = PanelAt(svg, small ? 1 : 2, {0, std::max(most, allowed * 1.2)});
  DrawRatioFrame(
      panel, small ? "Error up to 32 KiB (equation 8)" : "Error above 32 KiB (equation 8)", " %");
  if (allowed > 0) panel.DrawLimit(allowed, "Fighting with Unknowns");
  for (const auto& [size, curve] : curves)
    panel.DrawCurve(curve, {.color = ColorOfSize(sizes, size), .width = 1.6});
}

std::string DrawRatios(const Capacity& capacity, const std::vector<LoadCheck>& checks) {
  BySize sizes;
  for (const LoadCheck& check : checks)
    if (!check.load.is_mix()) sizes[check.load.parts.front().size_bytes].push_back(check);
  Svg svg(3 * kPanelWidth, kTitleHeight + kPanelHeight + kLineHeight);
  DrawTitle(svg, "C over shares of reads, and errors of the estimates", capacity);
  DrawConstants(svg, capacity, sizes);
  DrawErrors(svg, sizes, true);
  DrawErrors(svg, sizes, false);
  double x = 60;
  for (const auto& [size, own] : sizes) {
    const double y = kTitleHeight + kPanelHeight + 6;
    svg.Line({x, y - 4}, {x + 20, y - 4}, {.color = ColorOfSize(sizes, size), .width = 2});
    svg.Text({x + 26, y}, SizeText(size), {});
    x += 90;
  }
  return svg.Finish();
}

// ---- Figure 3

std::string DrawFactors(const Capacity& capacity, const std::vector<SizeVerdict>& verdicts) {
  Svg svg(kPanelWidth, kTitleHeight + kPanelHeight);
  DrawTitle(svg, "cost of a write, in reads", capacity);
  double most = 0;
  for (const SizeVerdict& verdict : verdicts) most = std::max(most, verdict.read_write_factor);
  Chart panel = PanelAt(svg, 0, {0, most});
  panel.DrawFrame("f_rw = T(100 % read) / T(100 % write)", "size of I/O");
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(verdicts.size());
    const double factor = verdicts[i].read_write_factor;
    panel.DrawBar(at, 0.5 / static_cast<double>(verdicts.size()), factor, kMeasured);
    panel.DrawAbove(at, factor, fmt::format("{:.2f}", factor));
    panel.DrawTick(at, SizeText(verdicts[i].size_bytes));
  }
  return svg.Finish();
}

// ---- Figures 4 and 5

std::string DrawMixes(const Capacity& capacity, const std::vector<LoadCheck>& checks) {
  std::vector<LoadCheck> mixes;
  double least = 0, most = 0, worst = predict::kMixErrorPercentMax;
  for (const LoadCheck& check : checks) {
    if (!check.load.is_mix()) continue;
    mixes.push_back(check);
    const auto [low, high] = std::minmax({check.measured.median, check.estimated.median});
    least = least == 0 ? low : std::min(least, low);
    most = std::max(most, high);
    worst = std::max(worst, check.error_percent);
  }
  const auto count = static_cast<double>(mixes.size());
  Svg svg(2 * kPanelWidth, kTitleHeight + kPanelHeight + kLineHeight * (count + 2));
  DrawTitle(svg, "mixes of sizes, estimated and measured", capacity);
  for (const LoadCheck& check : mixes) most = std::max(most, check.measured.high);
  Chart rates = PanelAt(svg, 0, Scale::Decades(least / 2, most));
  Chart errors = PanelAt(svg, 1, {0, worst});
  rates.DrawFrame("Operations per second", "mix");
  errors.DrawFrame("Error (equation 8)", "mix", " %");
  double y = kTitleHeight + kPanelHeight + 8;
  svg.Box({52, y - 9}, 10, 10, kEstimated);
  svg.Text({66, y}, "estimated", {});
  svg.Box({252, y - 9}, 10, 10, kMeasured);
  svg.Text({266, y}, "measured", {});
  for (size_t i = 0; i < mixes.size(); ++i) {
    const LoadCheck& mix = mixes[i];
    const double at = (static_cast<double>(i) + 0.5) / count, width = 0.32 / count;
    const std::string number = fmt::format("{}", i + 1);
    rates.DrawBar(at - width / 2, width, mix.estimated.median, kEstimated);
    rates.DrawBar(at + width / 2, width, mix.measured.median, kMeasured);
    rates.DrawInterval(at - width / 2, mix.estimated.low, mix.estimated.high, {});
    rates.DrawInterval(at + width / 2, mix.measured.low, mix.measured.high, {});
    errors.DrawBar(at, 1.6 * width, mix.error_percent, kMeasured);
    rates.DrawTick(at, number);
    errors.DrawTick(at, number);
    y += kLineHeight;
    svg.Text({52, y}, fmt::format("{}: {}", number, TextOf(mix.load)), {});
  }
  errors.DrawLimit(predict::kMixErrorPercentMax, "Fighting with Unknowns");
  return svg.Finish();
}

}  // namespace

Status PlotCapacity(const std::string& file, const std::string& directory) {
  namespace fs = std::filesystem;
  MOSA_ASSIGN_OR_RETURN(const Capacity capacity, ReadCapacityFile(file));
  const std::vector<SizeVerdict> verdicts = VerdictsOf(capacity);
  if (verdicts.empty())
    return FailedPreconditionError(fmt::format(
        "{} has no size with both seeds yet: run the command that made it again", file));
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return FailedPreconditionError(fmt::format("cannot create {}: {}", directory, error.message()));
  const std::vector<LoadCheck> checks = ChecksOf(capacity);
  const auto any = [&checks](bool mix) {
    return std::any_of(checks.begin(), checks.end(),
                       [mix](const LoadCheck& check) { return check.load.is_mix() == mix; });
  };
  const fs::path place(directory);
  MOSA_RETURN_IF_ERROR(WriteWhole(place / "factors.svg", DrawFactors(capacity, verdicts)));
  if (any(false))
    MOSA_RETURN_IF_ERROR(WriteWhole(place / "ratios.svg", DrawRatios(capacity, checks)));
  if (any(true)) MOSA_RETURN_IF_ERROR(WriteWhole(place / "mixes.svg", DrawMixes(capacity, checks)));
  return OkStatus();
}

}  // namespace mosa::cli
