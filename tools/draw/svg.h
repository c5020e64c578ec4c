// One picture as a self-contained SVG text: each element is drawn over those before it. Coordinates
// are pixels from the upper left corner.
#ifndef MOSA_TOOLS_DRAW_SVG_H_
#define MOSA_TOOLS_DRAW_SVG_H_

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace mosa::cli {

struct Point {
  double x = 0;
  double y = 0;
};

// Colours are as in CSS: "#2a6f97".
class Svg {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };
  struct TextStyle {
    int size = 11;
    Anchor anchor = Anchor::kStart;
    std::string_view color = "#222";
    bool bold = false;
  };
  struct LineStyle {
    std::string_view color = "#222";
    double width = 1;
    std::string_view dashes = {};  // "6 3"; empty: none.
  };

  Svg(double width, double height) : width_(width), height_(height) {}

  void Text(Point at, std::string_view text, const TextStyle& style);
  void Line(Point from, Point to, const LineStyle& style);
  void Path(const std::vector<Point>& points, const LineStyle& style);
  void Polygon(const std::vector<Point>& points, const LineStyle& style);
  void Dot(Point at, double radius, std::string_view color);
  void Box(Point corner, double width, double height, std::string_view color);

  std::string Finish() const;

 private:
  void Points(std::string_view element, const std::vector<Point>& points, const LineStyle& style);

  const double width_;
  const double height_;
  std::string elements_;
};

// Colours that distinguish things, in a fixed order.
inline constexpr std::string_view kColors[] = {"#2a6f97", "#c44e52", "#6a994e", "#8c6bb1",
                                               "#d08c2e", "#5a5a5a", "#17a2a2", "#7f5539"};
inline std::string_view SvgColor(size_t index) { return kColors[index % std::size(kColors)]; }
// "950", "1.2k", "34M".
std::string ShortNumber(double number);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_SVG_H_
