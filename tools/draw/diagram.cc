#include "tools/draw/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mosa::cli {
namespace {

using Anchor = Svg::Anchor;

constexpr std::string_view kGrid = "#e4e4e4";
constexpr std::string_view kFaint = "#777";
constexpr std::string_view kAllowed = "#c44e52";

// The smallest 1, 2 or 5 times a power of ten that is not below `number`.
double RoundUp(double number) {
  const double unit = std::pow(10, std::floor(std::log10(number)));
  for (const double step : {1.0, 2.0, 5.0})
    if (number <= step * unit) return step * unit;
  return 10 * unit;
}

}  // namespace

Diagram::Diagram(Svg& svg, const Place& place, std::string_view title) : svg_(svg), place_(place) {
  svg_.Text({place.corner.x + place.width / 2, place.corner.y + 18}, title,
            {.size = 12, .anchor = Anchor::kMiddle, .bold = true});
}

void Diagram::Linear(double most, std::string_view unit) {
  high_ = RoundUp(std::max(most, 1e-9));
  for (int step = 0; step <= 4; ++step)
    Grid(high_ * step / 4, fmt::format("{:.3g}{}", high_ * step / 4, unit));
}

void Diagram::Logarithmic(double least, double most, std::string_view unit) {
  is_logarithmic_ = true;
  low_ = std::pow(10, std::floor(std::log10(least)));
  high_ = std::pow(10, std::ceil(std::log10(most)));
  if (high_ <= low_) high_ = low_ * 10;
  for (double decade = low_; decade <= high_ * 1.001; decade *= 10)
    Grid(decade, fmt::format("{}{}", ShortNumber(decade), unit));
}

void Diagram::LabelX(double share, std::string_view text) {
  svg_.Text({X(share), Bottom() + 14}, text, {.size = 10, .anchor = Anchor::kMiddle});
}

void Diagram::TitleX(std::string_view text) {
  svg_.Text({X(0.5), Bottom() + 30}, text,
            {.size = 10, .anchor = Anchor::kMiddle, .color = kFaint});
}

void Diagram::Curve(const std::vector<Point>& shares_and_values, const Svg::LineStyle& style) {
  std::vector<Point> points;
  for (const Point& at : shares_and_values) points.push_back({X(at.x), Y(at.y)});
  if (points.size() > 1) svg_.Path(points, style);
  for (const Point& point : points) svg_.Dot(point, 2.4, style.color);
}

void Diagram::Limit(double value, std::string_view text) {
  if (value > high_) return;
  svg_.Line({X(0), Y(value)}, {X(1), Y(value)}, {.color = kAllowed, .dashes = "6 3"});
  svg_.Text({X(1), Y(value) - 4}, text, {.size = 9, .anchor = Anchor::kEnd, .color = kAllowed});
}

void Diagram::Bar(double share, double width, double value, std::string_view color) {
  const double top = Y(value);
  svg_.Box({X(share - width / 2), top}, width * Width(), Bottom() - top, color);
}

void Diagram::Interval(double share, double low, double high, const Svg::LineStyle& style) {
  if (low < high) svg_.Line({X(share), Y(low)}, {X(share), Y(high)}, style);
}

void Diagram::Above(double share, double value, std::string_view text) {
  svg_.Text({X(share), Y(value) - 4}, text, {.size = 10, .anchor = Anchor::kMiddle});
}

double Diagram::Y(double value) const {
  const double share = is_logarithmic_
                           ? std::log(std::max(value, low_) / low_) / std::log(high_ / low_)
                           : value / high_;
  return Bottom() - std::clamp(share, 0.0, 1.0) * (place_.height - kTop - kBottom);
}

void Diagram::Grid(double value, std::string_view text) {
  svg_.Line({X(0), Y(value)}, {X(1), Y(value)}, {.color = value <= low_ ? "#222" : kGrid});
  svg_.Text({X(0) - 5, Y(value) + 4}, text, {.size = 9, .anchor = Anchor::kEnd});
}

}  // namespace mosa::cli
