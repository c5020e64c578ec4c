// A chart: a scale upwards with ticks that a person would choose, parts of the width to the right,
// and what is drawn between them. Pages with several have them side by side.
#ifndef MOSA_TOOLS_DRAW_CHART_H_
#define MOSA_TOOLS_DRAW_CHART_H_

#include <string_view>
#include <vector>

#include "tools/draw/svg.h"

namespace mosa::cli {

inline constexpr std::string_view kGridColor = "#e4e4e4";

// From numbers to the part of an axis, 0 to 1.
class Scale {
 public:
  Scale() = default;  // For an axis of nothing: it has no ticks.
  // Holds both, which are not negative. Logarithmic if they lie further apart than five times, else
  // from 0.
  Scale(double least, double most);
  // Logarithmic: the whole decades around both.
  static Scale Decades(double least, double most);

  // 0 for what is below the axis.
  double PartOf(double number) const;
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  void AddTicks(bool are_powers);

  bool is_logarithmic_ = false;
  double low_ = 0;  // Logarithms, if it is.
  double high_ = 1;
  std::vector<double> ticks_;
};

// A rectangle of the page, and its marks.
class Chart {
 public:
  struct Place {
    Point corner;  // Upper left of all that belongs to the chart.
    double width = 0;
    double height = 0;
  };
  // `svg` outlives this.
  Chart(Svg& svg, const Place& place, const Scale& upwards)
      : svg_(svg),
        left_(place.corner.x + 64),
        right_(place.corner.x + place.width - 22),
        top_(place.corner.y + 52),
        bottom_(place.corner.y + place.height - 48),
        upwards_(upwards) {}

  // The names of its two axes, and the ticks of the one that goes up: `unit` goes behind each.
  void DrawFrame(std::string_view upwards, std::string_view along, std::string_view unit = {});
  // At a part of the axis along, as all that follows.
  void DrawTick(double part, std::string_view label);
  void DrawCurve(const std::vector<Point>& parts_and_values, const Svg::LineStyle& style);
  void DrawBar(double part, double width, double value, std::string_view color);
  void DrawInterval(double part, double low, double high, const Svg::LineStyle& style);
  void DrawAbove(double part, double value, std::string_view text);
  // What is allowed; left out above the axis.
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
