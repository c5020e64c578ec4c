// The frame of a diagram: a title, a vertical axis with a grid, positions from left to right as
// shares of the width, and what is drawn in it. Pages with several diagrams have them side by side.
#ifndef MOSA_TOOLS_DRAW_DIAGRAM_H_
#define MOSA_TOOLS_DRAW_DIAGRAM_H_

#include <string_view>
#include <vector>

#include "tools/draw/svg.h"

namespace mosa::cli {

class Diagram {
 public:
  struct Place {
    Point corner;  // Upper left of everything in it.
    double width = 0;
    double height = 0;
  };
  // `svg` must outlive this.
  Diagram(Svg& svg, const Place& place, std::string_view title);

  // Sets the vertical axis, before anything is drawn: from 0 to a round number above `most`, or
  // whole decades around both values, which must be above 0. `unit` follows each number.
  void Linear(double most, std::string_view unit);
  void Logarithmic(double least, double most, std::string_view unit);
  // Shares are 0 to 1, from left to right.
  void LabelX(double share, std::string_view text);
  void TitleX(std::string_view text);
  void Curve(const std::vector<Point>& shares_and_values, const Svg::LineStyle& style);
  // Draws a limit; not if it is above the axis.
  void Limit(double value, std::string_view text);
  void Bar(double share, double width, double value, std::string_view color);
  void Interval(double share, double low, double high, const Svg::LineStyle& style);
  void Above(double share, double value, std::string_view text);

 private:
  static constexpr double kLeft = 52, kRight = 18, kTop = 34, kBottom = 46;

  double Width() const { return place_.width - kLeft - kRight; }
  double Bottom() const { return place_.corner.y + place_.height - kBottom; }
  double X(double share) const { return place_.corner.x + kLeft + share * Width(); }
  double Y(double value) const;
  void Grid(double value, std::string_view text);

  Svg& svg_;
  const Place place_;
  double low_ = 0, high_ = 1;
  bool is_logarithmic_ = false;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_DIAGRAM_H_
