#include "tools/draw/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/utf8.h"

namespace mosa::cli {
namespace {

bool IsOfXml(std::string_view letter) {
  const bool is_control = letter.size() == 1 && static_cast<unsigned char>(letter[0]) < ' ';
  return !is_control && IsUtf8(letter) && letter != "\uFFFE" && letter != "\uFFFF";
}

// Replaces what XML cannot hold with "?".
std::string Escaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::string_view letter = text.substr(0, std::max<size_t>(1, FirstCharacterBytes(text)));
    text.remove_prefix(letter.size());
    if (letter == "&") {
      escaped += "&amp;";
    } else if (letter == "<") {
      escaped += "&lt;";
    } else if (letter == ">") {
      escaped += "&gt;";
    } else {
      escaped += IsOfXml(letter) ? letter : "?";
    }
  }
  return escaped;
}

std::string_view NameOf(Svg::Anchor anchor) {
  if (anchor == Svg::Anchor::kStart) return "start";
  return anchor == Svg::Anchor::kMiddle ? "middle" : "end";
}

std::string Stroke(const Svg::LineStyle& style) {
  std::string text = fmt::format(R"(stroke="{}" stroke-width="{:.1f}")", style.color, style.width);
  if (!style.dashes.empty()) text += fmt::format(R"( stroke-dasharray="{}")", style.dashes);
  return text;
}

}  // namespace

void Svg::Text(Point at, std::string_view text, const TextStyle& style) {
  elements_ += fmt::format(
      R"(<text x="{:.1f}" y="{:.1f}" font-size="{}" text-anchor="{}" fill="{}"{}>{}</text>)"
      "\n",
      at.x, at.y, style.size, NameOf(style.anchor), style.color,
      style.bold ? R"( font-weight="bold")" : "", Escaped(text));
}

void Svg::Line(Point from, Point to, const LineStyle& style) {
  elements_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>)"
                           "\n",
                           from.x, from.y, to.x, to.y, Stroke(style));
}

void Svg::Points(std::string_view element, const std::vector<Point>& points,
                 const LineStyle& style) {
  std::string joined;
  for (const Point& point : points)
    joined += fmt::format("{}{:.1f},{:.1f}", joined.empty() ? "" : " ", point.x, point.y);
  elements_ += fmt::format(R"(<{} points="{}" fill="none" {}/>)"
                           "\n",
                           element, joined, Stroke(style));
}

void Svg::Path(const std::vector<Point>& points, const LineStyle& style) {
  Points("polyline", points, style);
}

void Svg::Polygon(const std::vector<Point>& points, const LineStyle& style) {
  Points("polygon", points, style);
}

void Svg::Dot(Point at, double radius, std::string_view color) {
  elements_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill="{}"/>)"
                           "\n",
                           at.x, at.y, radius, color);
}

void Svg::Box(Point corner, double width, double height, std::string_view color) {
  elements_ +=
      fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>)"
                  "\n",
                  corner.x, corner.y, width, height, color);
}

std::string Svg::Finish() const {
  return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
                     R"(viewBox="0 0 {0:.0f} {1:.0f}" font-family="Helvetica, Arial, sans-serif">)"
                     "\n"
                     R"(<rect width="{0:.0f}" height="{1:.0f}" fill="white"/>)"
                     "\n{2}</svg>\n",
                     width_, height_, elements_);
}

std::string ShortNumber(double number) {
  const char* units[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < std::size(units); ++unit) number /= 1000;
  return number < 9.95 ? fmt::format("{:.2g}{}", number, units[unit])
                       : fmt::format("{:.0f}{}", number, units[unit]);
}

}  // namespace mosa::cli
