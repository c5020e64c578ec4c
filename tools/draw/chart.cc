#include "tools/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mosa::cli {
namespace {

using Anchor = Svg::Anchor;

constexpr std::string_view kAllowed = "#c44e52";
constexpr double kLogarithmicFrom = 5;
constexpr double kMargin = 1.08;

// 1, 2 or 5 times a power of ten, such that four to ten of them reach `most`.
double StepOf(double most) {
  const double raw = most / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (power * factor >= raw) return power * factor;
  return power * 10;
}

}  // namespace

Scale::Scale(double least, double most) {
  is_logarithmic_ = least > 0 && most > kLogarithmicFrom * least;
  if (!is_logarithmic_) {
    high_ = most > 0 ? most * kMargin : 1;
    const double step = StepOf(high_);
    for (int i = 0; i * step <= high_; ++i) ticks_.push_back(i * step);
    return;
  }
  low_ = std::log10(least / kMargin);
  high_ = std::log10(most * kMargin);
  // Over many decades, powers of ten are enough.
  AddTicks(high_ - low_ > 3);
}

Scale Scale::Decades(double least, double most) {
  Scale scale;
  if (most <= 0) return scale;
  scale.is_logarithmic_ = true;
  scale.low_ = std::floor(std::log10(least > 0 ? least : most));
  scale.high_ = std::max(std::ceil(std::log10(most)), scale.low_ + 1);
  scale.AddTicks(true);
  return scale;
}

void Scale::AddTicks(bool are_powers) {
  for (double decade = std::floor(low_); decade <= high_; ++decade) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, decade);
      const bool is_inside = std::log10(tick) >= low_ && std::log10(tick) <= high_;
      if (is_inside && (factor == 1 || !are_powers)) ticks_.push_back(tick);
    }
  }
}

double Scale::PartOf(double number) const {
  const double at = is_logarithmic_ ? std::log10(number) : number;
  return std::max(0.0, (at - low_) / (high_ - low_));
}

void Chart::DrawFrame(std::string_view upwards, std::string_view along, std::string_view unit) {
  for (const double tick : upwards_.ticks()) {
    svg_.Line({left_, Y(tick)}, {right_, Y(tick)}, {.color = kGridColor});
    svg_.Text({left_ - 6, Y(tick) + 4}, fmt::format("{}{}", ShortNumber(tick), unit),
              {.size = 10, .anchor = Anchor::kEnd});
  }
  svg_.Line({left_, bottom_}, {right_, bottom_}, {});
  svg_.Line({left_, top_}, {left_, bottom_}, {});
  svg_.Text({left_ - 50, top_ - 10}, upwards, {.size = 11, .bold = true});
  svg_.Text({(left_ + right_) / 2, bottom_ + 36}, along,
            {.size = 11, .anchor = Anchor::kMiddle, .bold = true});
}

void Chart::DrawTick(double part, std::string_view label) {
  svg_.Line({X(part), bottom_}, {X(part), bottom_ + 4}, {});
  svg_.Text({X(part), bottom_ + 17}, label, {.size = 10, .anchor = Anchor::kMiddle});
}

void Chart::DrawCurve(const std::vector<Point>& parts_and_values, const Svg::LineStyle& style) {
  std::vector<Point> points;
  for (const Point& at : parts_and_values) points.push_back(At(at.x, at.y));
  if (points.size() > 1) svg_.Path(points, style);
  for (const Point& point : points) svg_.Dot(point, 2.4, style.color);
}

void Chart::DrawBar(double part, double width, double value, std::string_view color) {
  svg_.Box(At(part - width / 2, value), width * (right_ - left_), bottom_ - Y(value), color);
}

void Chart::DrawInterval(double part, double low, double high, const Svg::LineStyle& style) {
  if (low >= high) return;
  const double x = X(part);
  svg_.Line({x, Y(low)}, {x, Y(high)}, style);
  for (const double end : {low, high}) svg_.Line({x - 3, Y(end)}, {x + 3, Y(end)}, style);
}

void Chart::DrawAbove(double part, double value, std::string_view text) {
  svg_.Text({X(part), Y(value) - 4}, text, {.size = 10, .anchor = Anchor::kMiddle});
}

void Chart::DrawLimit(double value, std::string_view text) {
  if (upwards_.PartOf(value) > 1) return;
  svg_.Line({left_, Y(value)}, {right_, Y(value)}, {.color = kAllowed, .dashes = "6 3"});
  svg_.Text({right_, Y(value) - 4}, text, {.size = 9, .anchor = Anchor::kEnd, .color = kAllowed});
}

}  // namespace mosa::cli
