#include "tools/draw/explore_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "common/base/units.h"
#include "predictor/model/cost.h"
#include "tools/draw/chart.h"

namespace mosa::cli {
namespace {

using predict::Explored;
using predict::Fate;
using NumberInterval = std::optional<predict::Interval<double>>;

constexpr std::string_view kShade = "#dcebf5";
constexpr std::string_view kPlain = "#b8b8b8";
constexpr std::string_view kNote = "#666";
constexpr std::string_view kWordDashes = "3 3";
constexpr size_t kCurvesMax = std::size(kColors);
constexpr double kPanelWidth = 560;
constexpr double kPanelHeight = 330;
constexpr double kHeadHeight = 64;
constexpr double kFrontHeight = 460;
constexpr size_t kFrontRowsMax = 20;
constexpr double kLabelWidthMin = 30;
constexpr double kLabelHeight = 12;
constexpr double kRowHeight = 18;
constexpr double kLegendLineHeight = 14;
constexpr double kLetterWidth = 6.5;
constexpr double kWordWidthMax = 84;  // Half of the last one is beside its panel.

// The result of a point, or of the point from which it cannot differ.
const Explored& Of(const Exploration& exploration, size_t point) {
  return exploration.explored[exploration.explored[point].same_as];
}
bool EndsWell(const Explored& each) { return each.outcome && each.outcome->failure.empty(); }

size_t Count(const Exploration& exploration, Fate fate) {
  return static_cast<size_t>(
      std::count_if(exploration.explored.begin(), exploration.explored.end(),
                    [fate](const Explored& each) { return each.fate == fate; }));
}

size_t CountFailed(const Exploration& exploration) {
  return static_cast<size_t>(std::count_if(
      exploration.explored.begin(), exploration.explored.end(),
      [](const Explored& each) { return each.outcome && !each.outcome->failure.empty(); }));
}

double WidthOf(std::string_view text) { return kLetterWidth * static_cast<double>(text.size()); }

// Keeps the beginning and the end if it is wider than that: "collo..group".
std::string Shortened(const std::string& text, double width_max) {
  const auto letters = static_cast<size_t>(std::max(5.0, width_max / kLetterWidth));
  if (text.size() <= letters) return text;
  const size_t end = (letters - 2) / 2;
  return text.substr(0, letters - 2 - end) + ".." + text.substr(text.size() - end);
}

// "0.0012", "3.25", "480".
std::string NumberText(double number) {
  const bool is_whole = number >= 1000 && number < 1e7;
  return is_whole ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

double HostsOf(const Exploration& exploration, size_t point) {
  return predict::HostsInAll(exploration.space.points[point].configuration);
}

// ---- what is drawn upwards

struct Measure {
  const char* name;
  std::function<double(size_t)> value;  // For a point that succeeds.
  std::function<NumberInterval(size_t)> interval;
  std::function<double(size_t)> at_least;  // A lower bound for a pruned point; 0: unknown.
};

Measure Seconds(const Exploration& exploration) {
  return {"seconds", [&](size_t i) { return Of(exploration, i).objectives.time_s; },
          [&](size_t i) { return Of(exploration, i).time_s; },
          [&](size_t i) { return predict::SecondsOf(Of(exploration, i).time_at_least); }};
}

NumberInterval Times(const NumberInterval& interval, double factor) {
  if (!interval) return std::nullopt;
  return predict::Interval<double>{interval->low * factor, interval->high * factor};
}

Measure NodeHours(const Exploration& exploration) {
  const auto hours = [&exploration](size_t i) { return HostsOf(exploration, i) / 3600; };
  return {"node-hours", [&](size_t i) { return Of(exploration, i).objectives.node_hours; },
          [&exploration, hours](size_t i) { return Times(Of(exploration, i).time_s, hours(i)); },
          [&exploration, hours](size_t i) {
            return predict::SecondsOf(Of(exploration, i).time_at_least) * hours(i);
          }};
}

Measure Kilojoules(const Exploration& exploration) {
  return {"kJ", [&](size_t i) { return Of(exploration, i).objectives.joules / 1e3; },
          [&](size_t i) { return Times(Of(exploration, i).joules, 1e-3); },
          [&](size_t i) { return Of(exploration, i).joules_at_least / 1e3; }};
}

std::vector<Measure> MeasuresOf(const Exploration& exploration) {
  std::vector<Measure> measures = {Seconds(exploration), NodeHours(exploration)};
  if (exploration.with_energy) measures.push_back(Kilojoules(exploration));
  return measures;
}

class Range {
 public:
  void Add(double number) {
    least_ = std::min(least_, number);
    most_ = std::max(most_, number);
  }
  void Add(const NumberInterval& interval) {
    if (!interval) return;
    Add(interval->low);
    Add(interval->high);
  }
  Scale ToScale() const { return {least_, most_}; }

 private:
  double least_ = std::numeric_limits<double>::infinity(), most_ = 0;
};

// ---- what is drawn along

std::string TitleOf(std::string_view dimension) {
  const std::pair<std::string_view, std::string_view> titles[] = {
      {"nodes", "hosts in all"},
      {"hosts", "hosts that run tasks"},
      {"storage", "hosts with storage only (0: storage is on the tasks' hosts)"},
      {"manager", "the manager's host"},
      {"slots", "concurrent tasks per host (0: one per core)"},
      {"chunk", "chunk size, bytes"},
      {"stripe", "stripe width, nodes (0: all)"},
      {"replicas", "copies of each file"},
      {"store", "limit of a node, bytes (0: the platform's)"},
      {"frequency", "frequency, MHz"}};
  for (const auto& [name, title] : titles)
    if (name == dimension) return std::string(title);
  return std::string(dimension);
}

// One dimension: which of its values each point has, and where the values lie.
struct Axis {
  std::string name;
  std::vector<std::string> values;
  bool numbers = true;        // Otherwise words.
  std::vector<double> parts;  // By value, 0 to 1.
  std::vector<size_t> of_point;
};

std::optional<double> NumberOf(std::string_view dimension, const std::string& value) {
  if (dimension == "chunk" || dimension == "store") {
    const auto bytes = ParseBytes(value);
    if (!bytes.ok() || *bytes <= 0) return std::nullopt;
    return std::log2(static_cast<double>(*bytes));
  }
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || last != end) return std::nullopt;
  return number;
}

// Places numbers by size and to scale; words side by side, in the given order.
void PlaceValues(const std::vector<std::string>& texts, Axis& axis) {
  std::map<std::string, double> positions;
  for (const std::string& text : texts) {
    const auto number = NumberOf(axis.name, text);
    axis.numbers = axis.numbers && number;
    if (positions.emplace(text, number.value_or(0)).second) axis.values.push_back(text);
  }
  for (size_t i = 0; !axis.numbers && i < axis.values.size(); ++i)
    positions[axis.values[i]] = static_cast<double>(i);
  std::stable_sort(axis.values.begin(), axis.values.end(),
                   [&](const auto& a, const auto& b) { return positions[a] < positions[b]; });
  const double low = positions[axis.values.front()], high = positions[axis.values.back()];
  for (const std::string& value : axis.values)
    axis.parts.push_back(high == low ? 0.5 : 0.04 + 0.92 * (positions[value] - low) / (high - low));
  for (const std::string& text : texts)
    axis.of_point.push_back(static_cast<size_t>(
        std::find(axis.values.begin(), axis.values.end(), text) - axis.values.begin()));
}

std::vector<Axis> AxesOf(const Exploration& exploration) {
  std::vector<Axis> axes;
  for (const std::string& name : exploration.dimensions) {
    std::vector<std::string> texts;
    for (const predict::Point& point : exploration.space.points)
      texts.push_back(ValueOf(point, name));
    Axis& axis = axes.emplace_back();
    axis.name = name;
    PlaceValues(texts, axis);
  }
  return axes;
}

// ---- curves

// The best of all points that have a value of each of two dimensions.
struct Cell {
  std::optional<size_t> best;                                 // Simulated and successful.
  double at_least = std::numeric_limits<double>::infinity();  // The smallest bound of the pruned
                                                              // points.
  bool some_fail = false;
};

class Curves {
 public:
  Curves(const Exploration& exploration, const Measure& measure, const Axis& along,
         const Axis* curves)
      : measure_(measure),
        along_(along),
        curves_(curves),
        cells_(along.values.size() * curve_count()) {
    for (size_t i = 0; i < exploration.explored.size(); ++i) {
      Cell& cell = At(curves == nullptr ? 0 : curves->of_point[i], along.of_point[i]);
      const Explored& each = Of(exploration, i);
      if (each.fate == Fate::kPruned) cell.at_least = std::min(cell.at_least, measure.at_least(i));
      if (each.outcome && !EndsWell(each)) cell.some_fail = true;
      if (!EndsWell(each)) continue;
      if (!cell.best || measure.value(i) < measure.value(*cell.best)) cell.best = i;
    }
  }

  void AddTo(Range& range) const {
    for (const Cell& cell : cells_) {
      if (cell.best) {
        range.Add(measure_.value(*cell.best));
        range.Add(measure_.interval(*cell.best));
      } else if (IsBounded(cell)) {
        range.Add(cell.at_least);
      }
    }
  }

  void Draw(Svg& svg, const Chart::Place& place, const Scale& scale) const {
    Chart panel(svg, place, scale);
    panel.DrawFrame(measure_.name, TitleOf(along_.name));
    if (along_.numbers)
      DrawNumberTicks(panel);
    else
      DrawWordTicks(panel);
    for (size_t curve = 0; curve < curve_count(); ++curve) DrawCurve(svg, panel, curve);
    if (curves_ != nullptr) DrawLegend(svg, panel);
  }

 private:
  size_t curve_count() const { return curves_ == nullptr ? 1 : curves_->values.size(); }
  Cell& At(size_t curve, size_t value) { return cells_[curve * along_.values.size() + value]; }
  const Cell& At(size_t curve, size_t value) const {
    return cells_[curve * along_.values.size() + value];
  }
  static bool IsBounded(const Cell& cell) {
    return cell.at_least > 0 && std::isfinite(cell.at_least);
  }

  // Omits a number's label without room: its neighbours show what it is.
  void DrawNumberTicks(Chart& panel) const {
    double label = -1e9;
    for (size_t value = 0; value < along_.values.size(); ++value) {
      const double x = panel.X(along_.parts[value]);
      const bool fits = x - label >= std::max(kLabelWidthMin, WidthOf(along_.values[value]) + 6);
      panel.DrawTick(along_.parts[value], fits ? along_.values[value] : "");
      if (fits) label = x;
    }
  }

  void DrawWordTicks(Chart& panel) const {
    const double apart =
        (panel.X(1) - panel.X(0)) / static_cast<double>(std::max<size_t>(1, along_.values.size()));
    for (size_t value = 0; value < along_.values.size(); ++value)
      panel.DrawTick(along_.parts[value],
                     Shortened(along_.values[value], std::min(apart, kWordWidthMax)));
  }

  // Joins neighbouring values, but not words.
  void DrawJoined(Svg& svg, const Chart& panel, size_t curve) const {
    const Svg::LineStyle style = {.color = kColors[curve],
                                  .width = along_.numbers ? 1.6 : 0.7,
                                  .dashes = along_.numbers ? "" : kWordDashes};
    std::vector<Point> points;
    for (size_t value = 0; value <= along_.values.size(); ++value) {
      const bool ends = value == along_.values.size() || !At(curve, value).best;
      if (!ends) {
        points.push_back(panel.At(along_.parts[value], measure_.value(*At(curve, value).best)));
        continue;
      }
      if (points.size() > 1) svg.Path(points, style);
      points.clear();
    }
  }

  // Next to those of other curves.
  void DrawFailed(Svg& svg, const Chart& panel, size_t curve, double at) const {
    const double x =
        at + 9 * (static_cast<double>(curve) - static_cast<double>(curve_count() - 1) / 2);
    const double y = panel.bottom() - 5;
    const Svg::LineStyle style = {.color = kColors[curve], .width = 1.6};
    svg.Line({x - 3, y - 3}, {x + 3, y + 3}, style);
    svg.Line({x - 3, y + 3}, {x + 3, y - 3}, style);
  }

  void DrawCurve(Svg& svg, Chart& panel, size_t curve) const {
    const std::string_view color = kColors[curve];
    DrawJoined(svg, panel, curve);
    for (size_t value = 0; value < along_.values.size(); ++value) {
      const Cell& cell = At(curve, value);
      const double x = panel.X(along_.parts[value]);
      if (!cell.best && cell.some_fail) DrawFailed(svg, panel, curve, x);
      if (!cell.best && IsBounded(cell)) {
        const double y = panel.Y(cell.at_least);
        svg.Path({{x - 4, y + 4}, {x, y - 3}, {x + 4, y + 4}}, {.color = color, .width = 1.6});
      }
      if (!cell.best) continue;
      const double best = measure_.value(*cell.best);
      if (const NumberInterval interval = measure_.interval(*cell.best))
        panel.DrawInterval(along_.parts[value], interval->low, interval->high, {.color = color});
      svg.Dot(panel.At(along_.parts[value], best), 3.2, color);
      if (cell.at_least < best) svg.Dot(panel.At(along_.parts[value], best), 1.9, "#fff");
    }
  }

  // Uses as many lines as needed, the last just above the panel.
  void DrawLegend(Svg& svg, const Chart& panel) const {
    const std::string name = Shortened(curves_->name, 2 * kWordWidthMax) + ":";
    const double left = panel.left() + 60;
    std::vector<Point> places;
    Point at{left + WidthOf(name) + 8, panel.top() - 10};
    for (const std::string& value : curves_->values) {
      const double width = 32 + 1.1 * WidthOf(Shortened(value, kWordWidthMax));
      if (at.x + width > panel.right()) at = {left, at.y + kLegendLineHeight};
      places.push_back(at);
      at.x += width;
    }
    const double up = places.back().y - (panel.top() - 10);
    svg.Text({left, panel.top() - 10 - up}, name, {.color = kNote});
    for (size_t curve = 0; curve < curve_count(); ++curve) {
      const auto& [x, y] = places[curve];
      svg.Line({x, y - up - 4}, {x + 14, y - up - 4}, {.color = kColors[curve], .width = 3});
      svg.Text({x + 18, y - up}, Shortened(curves_->values[curve], kWordWidthMax),
               {.color = kColors[curve], .bold = true});
    }
  }

  const Measure& measure_;
  const Axis& along_;
  const Axis* const curves_;
  std::vector<Cell> cells_;  // Curve by curve.
};

// How much slower the worst value of a dimension is than the best, with all others as in the
// fastest point. A pruned point counts by its bound, since it is slower still.
double InfluenceOf(const Exploration& exploration, const Axis& axis) {
  std::vector<double> fastest(axis.values.size(), std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < exploration.explored.size(); ++i) {
    const Explored& each = Of(exploration, i);
    double& fastest_there = fastest[axis.of_point[i]];
    if (each.fate == Fate::kPruned)
      fastest_there = std::min(fastest_there, predict::SecondsOf(each.time_at_least));
    else if (EndsWell(each))
      fastest_there = std::min(fastest_there, each.objectives.time_s);
  }
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const double seconds : fastest) {
    if (!std::isfinite(seconds)) continue;
    least = std::min(least, seconds);
    most = std::max(most, seconds);
  }
  return most / least;
}

const Axis* CurvesBeside(const Exploration& exploration, const std::vector<Axis>& axes,
                         const Axis& along) {
  const Axis* found = nullptr;
  double most = 0;
  for (const Axis& axis : axes) {
    if (&axis == &along || axis.values.size() > kCurvesMax || axis.values.size() < 2) continue;
    const double influence = InfluenceOf(exploration, axis);
    if (influence > most) found = &axis;
    most = std::max(most, influence);
  }
  return found;
}

std::string NoteOf(const Exploration& exploration) {
  std::string note = "Each point: the best over the other dimensions.";
  if (exploration.draws > 0) note += " Bars: nine of ten, where drawn.";
  if (const size_t failed = CountFailed(exploration); failed > 0)
    note += fmt::format(" x: all simulated there fail, as {} of {} do.", failed,
                        Count(exploration, Fate::kSimulated));
  if (Count(exploration, Fate::kPruned) > 0)
    note +=
        " Hollow: a pruned point may be better; ^: all were pruned, lower bound (--no-prune "
        "simulates them).";
  return note;
}

// ---- the front

class FrontPanel {
 public:
  FrontPanel(const Exploration& exploration, const Measure& seconds, const Measure& cost)
      : exploration_(exploration), seconds_(seconds), cost_(cost) {}

  void Draw(Svg& svg, const Chart::Place& place, const std::vector<size_t>& front) const {
    Range upwards, along;
    for (size_t i = 0; i < exploration_.explored.size(); ++i) {
      if (!EndsWell(exploration_.explored[i])) continue;
      upwards.Add(seconds_.value(i));
      along.Add(cost_.value(i));
    }
    for (const size_t i : front) upwards.Add(seconds_.interval(i));
    const Scale scale = along.ToScale();
    Chart panel(svg, place, upwards.ToScale());
    DrawLikeBest(svg, panel, scale);
    panel.DrawFrame(seconds_.name, cost_.name);
    for (const double tick : scale.ticks()) panel.DrawTick(scale.PartOf(tick), ShortNumber(tick));
    for (size_t i = 0; i < exploration_.explored.size(); ++i) {
      const Explored& each = exploration_.explored[i];
      if (EndsWell(each)) svg.Dot(At(panel, scale, i), 2.4, each.like_best ? kColors[0] : kPlain);
    }
    DrawFrontLine(svg, panel, scale, front);
  }

 private:
  Point At(const Chart& panel, const Scale& scale, size_t point) const {
    return panel.At(scale.PartOf(cost_.value(point)), seconds_.value(point));
  }

  // Shades the range from the smallest to the largest, in both directions.
  void DrawLikeBest(Svg& svg, const Chart& panel, const Scale& scale) const {
    Point low{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    Point high;
    for (size_t i = 0; i < exploration_.explored.size(); ++i) {
      if (!exploration_.explored[i].like_best) continue;
      const Point at = At(panel, scale, i);
      low = {std::min(low.x, at.x), std::min(low.y, at.y)};
      high = {std::max(high.x, at.x), std::max(high.y, at.y)};
    }
    constexpr double kAround = 7;
    svg.Box({low.x - kAround, low.y - kAround}, high.x - low.x + 2 * kAround,
            high.y - low.y + 2 * kAround, kShade);
  }

  // Joins the points that nothing beats in these two objectives alone.
  void DrawFrontLine(Svg& svg, Chart& panel, const Scale& scale,
                     const std::vector<size_t>& front) const {
    std::vector<Point> joined;
    double least = std::numeric_limits<double>::infinity();
    for (const size_t i : front) {  // The fastest first.
      if (cost_.value(i) < least) joined.push_back(At(panel, scale, i));
      least = std::min(least, cost_.value(i));
    }
    if (joined.size() > 1) svg.Path(joined, {.color = kColors[1], .width = 1.6});
    for (size_t rank = 0; rank < front.size(); ++rank) {
      const Point at = At(panel, scale, front[rank]);
      if (const NumberInterval interval = seconds_.interval(front[rank]))
        panel.DrawInterval(scale.PartOf(cost_.value(front[rank])), interval->low, interval->high,
                           {.color = kColors[1]});
      svg.Dot(at, 4, kColors[1]);
    }
    DrawNumbers(svg, panel, scale, front);
  }

  // Points at nearly the same place share a label.
  void DrawNumbers(Svg& svg, const Chart& panel, const Scale& scale,
                   const std::vector<size_t>& front) const {
    std::vector<std::pair<Point, std::vector<size_t>>> labels;
    for (size_t rank = 0; rank < std::min(front.size(), kFrontRowsMax); ++rank) {
      const Point at = At(panel, scale, front[rank]);
      auto label = std::find_if(labels.begin(), labels.end(), [&at](const auto& other) {
        return std::abs(other.first.x - at.x) < kLabelWidthMin &&
               std::abs(other.first.y - at.y) < kLabelHeight;
      });
      if (label == labels.end()) label = labels.insert(label, {at, {}});
      label->second.push_back(rank + 1);
    }
    for (const auto& [at, numbers] : labels)
      svg.Text({at.x + 9, at.y - 6}, Listed(numbers), {.color = kColors[1], .bold = true});
  }

  // "1-3, 5".
  static std::string Listed(const std::vector<size_t>& numbers) {
    std::string text;
    for (size_t i = 0, last = 0; i < numbers.size(); i = last + 1) {
      last = i;
      while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
      text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
      if (last > i) text += fmt::format("-{}", numbers[last]);
    }
    return text;
  }

  const Exploration& exploration_;
  const Measure& seconds_;
  const Measure& cost_;
};

void DrawFrontLegend(Svg& svg, bool with_draws) {
  const double y = 46;
  svg.Dot({24, y - 4}, 4, kColors[1]);
  svg.Text({34, y}, with_draws ? "nothing is better (bars: nine of ten)" : "nothing is better", {});
  svg.Box({260, y - 13}, 22, 16, kShade);
  svg.Dot({271, y - 5}, 2.4, kColors[0]);
  svg.Text({290, y}, "cannot be told apart from the fastest", {});
  svg.Dot({512, y - 4}, 2.4, kPlain);
  svg.Text({522, y}, "other simulated points", {});
}

// The front in words, then what else there is.
std::vector<std::string> FrontRows(const Exploration& exploration,
                                   const std::vector<Measure>& measures,
                                   const std::vector<size_t>& front) {
  std::vector<std::string> rows;
  for (const size_t point : front) {
    if (rows.size() == kFrontRowsMax) break;
    std::string& row = rows.emplace_back();
    for (const Measure& measure : measures)
      row += fmt::format("{} {}, ", NumberText(measure.value(point)), measure.name);
    row += VariedText(exploration, point);
  }
  if (front.size() > kFrontRowsMax)
    rows.push_back(fmt::format("and {} more: --json has all", front.size() - kFrontRowsMax));
  rows.push_back(fmt::format(
      "{} simulated, of which {} fail and are not drawn; {} pruned; {} cannot differ from another",
      Count(exploration, Fate::kSimulated), CountFailed(exploration),
      Count(exploration, Fate::kPruned), Count(exploration, Fate::kCollapsed)));
  return rows;
}

void DrawFrontRows(Svg& svg, const std::vector<std::string>& rows, size_t numbered, double y) {
  for (size_t row = 0; row < rows.size(); ++row, y += kRowHeight) {
    if (row < std::min(numbered, kFrontRowsMax))
      svg.Text({20, y}, fmt::format("{}", row + 1), {.color = kColors[1], .bold = true});
    svg.Text({44, y}, rows[row], {});
  }
}

}  // namespace

std::string DrawCurves(const Exploration& exploration) {
  const std::vector<Axis> axes = AxesOf(exploration);
  const std::vector<Measure> measures = MeasuresOf(exploration);
  Svg svg(kPanelWidth * static_cast<double>(measures.size()),
          kHeadHeight + kPanelHeight * static_cast<double>(axes.size()));
  svg.Text({14, 24}, fmt::format("{}: predicted over each dimension", exploration.workflow),
           {.size = 17, .bold = true});
  svg.Text({14, 46}, NoteOf(exploration), {.color = kNote});
  for (size_t column = 0; column < measures.size(); ++column) {
    std::vector<Curves> rows;
    Range range;
    for (const Axis& along : axes) {
      rows.emplace_back(exploration, measures[column], along,
                        CurvesBeside(exploration, axes, along));
      rows.back().AddTo(range);
    }
    for (size_t row = 0; row < rows.size(); ++row)
      rows[row].Draw(svg,
                     {{kPanelWidth * static_cast<double>(column),
                       kHeadHeight + kPanelHeight * static_cast<double>(row)},
                      kPanelWidth,
                      kPanelHeight},
                     range.ToScale());
  }
  return svg.Finish();
}

std::string DrawFront(const Exploration& exploration) {
  const std::vector<Measure> measures = MeasuresOf(exploration);
  const std::vector<size_t> front = OnFront(exploration);
  const auto panels = static_cast<double>(measures.size() - 1);
  const double width = std::max(760.0, kPanelWidth * panels);
  const std::vector<std::string> rows = FrontRows(exploration, measures, front);
  double page_width = width;
  for (const std::string& row : rows) page_width = std::max(page_width, 44 + WidthOf(row) + 20);
  Svg svg(page_width,
          kHeadHeight + kFrontHeight + kRowHeight * static_cast<double>(rows.size()) + 24);
  svg.Text({14, 24}, fmt::format("{}: predicted time over cost", exploration.workflow),
           {.size = 17, .bold = true});
  DrawFrontLegend(svg, exploration.draws > 0);
  for (size_t i = 1; i < measures.size(); ++i)
    FrontPanel(exploration, measures[0], measures[i])
        .Draw(svg,
              {{width / panels * static_cast<double>(i - 1), kHeadHeight - 14},
               width / panels,
               kFrontHeight},
              front);
  DrawFrontRows(svg, rows, front.size(), kHeadHeight + kFrontHeight + 12);
  return svg.Finish();
}

}  // namespace mosa::cli
