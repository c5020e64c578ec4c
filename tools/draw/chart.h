// A chart: a vertical axis with ticks that a person would choose, positions from left to right as
// parts of the width, and what is drawn in it. Pages with several charts have them side by side.
#ifndef MOSA_TOOLS_DRAW_CHART_H_
#define MOSA_TOOLS_DRAW_CHART_H_

#include <string_view>
#include <vector>

#include "tools/draw/svg.h"

namespace mosa::cli {

inline constexpr std::string_view kGridColor = "#e4e4e4";

// Maps numbers to positions on an axis, 0 to 1.
class Scale {
 public:
  Scale() = default;  // For an axis without values: it has no ticks.
  // Covers both. Logarithmic if they differ by more than a factor of five, otherwise from 0.
  Scale(double least, double most);
  // Logarithmic: whole decades around both. No ticks if `most` is not above 0.
  static Scale Decades(double least, double most);

  // 0 for a number below the axis.
  double PartOf(double number) const;
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  void AddTicks(bool are_powers);

  bool is_logarithmic_ = false;
  double low_ = 0;  // Logarithms, if it is logarithmic.
  double high_ = 1;
  std::vector<double> ticks_;
};

// A rectangle of the page, with its marks.
class Chart {
 public:
  struct Place {
    Point corner;  // Upper left of everything in the chart.
    double width = 0;
    double height = 0;
  };
  // `svg` must outlive this.
  Chart(Svg& svg, const Place& place, const Scale& upwards)
      : svg_(svg),
        left_(place.corner.x + 64),
        right_(place.corner.x + place.width - 22),
        top_(place.corner.y + 52),
        bottom_(place.corner.y + place.height - 48),
        upwards_(upwards) {}

  // Draws the names of both axes, and the ticks of the vertical one. `unit` follows each number.
  void DrawFrame(std::string_view upwards, std::string_view along, std::string_view unit = {});
  // At a position on the horizontal axis, as everything below.
  void DrawTick(double part, std::string_view label);
  void DrawCurve(const std::vector<Point>& parts_and_values, const Svg::LineStyle& style);
  void DrawBar(double part, double width, double value, std::string_view color);
  void DrawInterval(double part, double low, double high, const Svg::LineStyle& style);
  void DrawAbove(double part, double value, std::string_view text);
  // Draws a limit; not if it is above the axis.
  void DrawLimit(double value, std::string_view text);

  double X(double part) const { return left_ + part * (right_ - left_); }
  double Y(double number) const { return bottom_ - upwards_.PartOf(number) * (bottom_ - top_); }
  Point At(double part, double number) const { return {X(part), Y(number)}; }
  double left() const { return left_; }
  double right() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }

 private:
  Svg& svg_;
  const double left_, right_, top_, bottom_;
  const Scale upwards_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_CHART_H_
