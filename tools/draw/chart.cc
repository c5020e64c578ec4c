#include "tools/draw/chart.h"

#include <fmt/format.h>

#include <cmath>

namespace mosa::cli {
namespace {

constexpr std::string_view kGrid = "#e4e4e4";
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
  const bool is_long = high_ - low_ > 3;
  for (double decade = std::floor(low_); decade <= high_; ++decade) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, decade);
      const bool is_inside = std::log10(tick) >= low_ && std::log10(tick) <= high_;
      if (is_inside && (factor == 1 || !is_long)) ticks_.push_back(tick);
    }
  }
}

double Scale::PartOf(double number) const {
  return ((is_logarithmic_ ? std::log10(number) : number) - low_) / (high_ - low_);
}

void ChartPanel::DrawFrame(std::string_view upwards, std::string_view along) {
  for (const double tick : upwards_.ticks()) {
    svg_.Line({left_, Y(tick)}, {right_, Y(tick)}, {.color = kGrid});
    svg_.Text({left_ - 6, Y(tick) + 4}, TickText(tick), {.size = 10, .anchor = Svg::Anchor::kEnd});
  }
  svg_.Line({left_, bottom_}, {right_, bottom_}, {});
  svg_.Line({left_, top_}, {left_, bottom_}, {});
  svg_.Text({left_ - 50, top_ - 10}, upwards, {.size = 11, .bold = true});
  svg_.Text({(left_ + right_) / 2, bottom_ + 36}, along,
            {.size = 11, .anchor = Svg::Anchor::kMiddle, .bold = true});
}

void ChartPanel::DrawTick(double part, std::string_view label) {
  svg_.Line({X(part), bottom_}, {X(part), bottom_ + 4}, {});
  svg_.Text({X(part), bottom_ + 17}, label, {.size = 10, .anchor = Svg::Anchor::kMiddle});
}

std::string TickText(double number) {
  const bool is_whole = number >= 1000 && number < 1e7;
  return is_whole ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

}  // namespace mosa::cli
