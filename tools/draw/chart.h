// What charts have in common: a scale with ticks that a person would choose, and a panel with two
// scales.
#ifndef MOSA_TOOLS_DRAW_CHART_H_
#define MOSA_TOOLS_DRAW_CHART_H_

#include <string>
#include <string_view>
#include <vector>

#include "tools/draw/svg.h"

namespace mosa::cli {

// Maps positive numbers to positions on an axis, 0 to 1.
class Scale {
 public:
  // Covers both. Logarithmic if they differ by more than a factor of five, otherwise from 0.
  Scale(double least, double most);

  double PartOf(double number) const;
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  bool is_logarithmic_ = false;
  double low_ = 0;  // Logarithms, if it is logarithmic.
  double high_ = 1;
  std::vector<double> ticks_;
};

// A rectangle of the page, with its marks.
class ChartPanel {
 public:
  struct Place {
    Point corner;  // Upper left of everything in the panel.
    double width = 0;
    double height = 0;
  };
  // `svg` must outlive this.
  ChartPanel(Svg& svg, const Place& place, const Scale& upwards)
      : svg_(svg),
        left_(place.corner.x + 64),
        right_(place.corner.x + place.width - 22),
        top_(place.corner.y + 52),
        bottom_(place.corner.y + place.height - 48),
        upwards_(upwards) {}

  // Draws the names of both axes, and the ticks of the vertical one.
  void DrawFrame(std::string_view upwards, std::string_view along);
  // At a position on the horizontal axis.
  void DrawTick(double part, std::string_view label);

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

// "0.0012", "3.25", "480".
std::string TickText(double number);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_CHART_H_
