#include "tools/draw/envelope_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <set>

#include "common/base/units.h"
#include "predictor/envelope/figures.h"
#include "tools/draw/chart.h"
#include "tools/draw/svg.h"
#include "tools/measure/envelope_files.h"

namespace mosa::cli {
namespace {

using predict::Envelope;
using predict::EnvelopeMetric;
using predict::Estimate;
using Anchor = Svg::Anchor;

constexpr double kPageWidth = 1240;
constexpr double kHeadHeight = 78;
constexpr size_t kColumns = 4;
constexpr double kPanelWidth = kPageWidth / kColumns;
constexpr double kPanelHeight = 250;
constexpr double kRowHeight = 430;  // Heat maps and diagram of a store.
constexpr double kRowWidth = kPageWidth / 3;
constexpr std::string_view kDashes[] = {"", "7 3", "3 3", "9 3 2 3", "1 3"};

std::string SizeText(uint64_t size_bytes) { return FormatBytes(static_cast<int64_t>(size_bytes)); }

// The values that any of the envelopes has, in order.
template <typename T>
std::vector<T> All(const std::vector<Envelope>& envelopes,
                   std::vector<T> (Envelope::*values)() const) {
  std::set<T> all;
  for (const Envelope& envelope : envelopes) {
    for (const T value : (envelope.*values)()) all.insert(value);
  }
  return {all.begin(), all.end()};
}

// ---- scaling curves

// One metric over the number of clients.
class CurvePanel {
 public:
  CurvePanel(const EnvelopeMetric& metric, const std::vector<Envelope>& envelopes)
      : metric_(metric),
        envelopes_(envelopes),
        clients_(All(envelopes, &Envelope::clients)),
        sizes_(MovesBytes(metric.operation) ? All(envelopes, &Envelope::sizes)
                                            : std::vector<uint64_t>{0}) {}

  void Draw(Svg& svg, Point corner) const {
    Chart chart(svg, {corner, kPanelWidth, kPanelHeight}, Upwards());
    chart.DrawFrame(NameOf(metric_), "clients", metric_.is_bandwidth ? "B/s" : "");
    for (const uint32_t clients : clients_)
      chart.DrawTick(PartOf(clients), fmt::format("{}", clients));
    for (size_t system = 0; system < envelopes_.size(); ++system) {
      for (size_t size = 0; size < sizes_.size(); ++size) DrawCurve(chart, system, size);
    }
  }

 private:
  double Unit(uint64_t size) const { return metric_.is_bandwidth ? static_cast<double>(size) : 1; }

  double PartOf(uint32_t clients) const {
    const double span = std::log2(clients_.back()) - std::log2(clients_.front());
    return span == 0 ? 0.5 : (std::log2(clients) - std::log2(clients_.front())) / span;
  }

  Scale Upwards() const {
    double least = 0, most = 0;
    for (const Envelope& envelope : envelopes_) {
      for (const auto& [cell, rate] : envelope.cells) {
        if (cell.operation != metric_.operation) continue;
        const double unit = Unit(cell.size_bytes);
        least = least == 0 ? rate.low * unit : std::min(least, rate.low * unit);
        most = std::max(most, rate.high * unit);
      }
    }
    return most > 0 ? Scale::Decades(least, most) : Scale();
  }

  void DrawCurve(Chart& chart, size_t system, size_t size) const {
    std::vector<Point> curve;
    const std::string_view color = SvgColor(system);
    const double unit = Unit(sizes_[size]);
    for (const uint32_t clients : clients_) {
      const Estimate* rate = envelopes_[system].Find({metric_.operation, sizes_[size], clients});
      if (rate == nullptr) continue;
      curve.push_back({PartOf(clients), rate->median * unit});
      chart.DrawInterval(curve.back().x, rate->low * unit, rate->high * unit,
                         {.color = color, .width = 0.7});
    }
    chart.DrawCurve(curve,
                    {.color = color, .width = 1.6, .dashes = kDashes[size % std::size(kDashes)]});
  }

  const EnvelopeMetric metric_;
  const std::vector<Envelope>& envelopes_;
  const std::vector<uint32_t> clients_;
  const std::vector<uint64_t> sizes_;
};

// ---- heat maps

// From light to dark, for 0 to 1.
std::string Heat(double share) {
  const auto mix = [share](int light, int dark) {
    return static_cast<int>(std::lround(light + (dark - light) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(0xf3, 0x1b), mix(0xf6, 0x4f), mix(0xd9, 0x72));
}

void DrawHeatMap(Svg& svg, Point corner, const std::string& title, const predict::HeatMap& map,
                 bool bytes) {
  svg.Text({corner.x + kRowWidth / 2, corner.y + 18}, title,
           {.size = 12, .anchor = Anchor::kMiddle, .bold = true});
  if (map.sizes.empty()) return;
  const auto value = [&map, bytes](size_t size, size_t column) {
    return map.rates[size][column] * (bytes ? static_cast<double>(map.sizes[size]) : 1);
  };
  double least = value(0, 0), most = least;
  for (size_t size = 0; size < map.sizes.size(); ++size) {
    for (size_t column = 0; column < map.clients.size(); ++column) {
      least = std::min(least, value(size, column));
      most = std::max(most, value(size, column));
    }
  }
  const double left = corner.x + 46, top = corner.y + 28;
  const double width = (kRowWidth - 62) / static_cast<double>(map.clients.size());
  const double height = (kRowHeight - 76) / static_cast<double>(map.sizes.size());
  for (size_t size = 0; size < map.sizes.size(); ++size) {
    // Large files are on top.
    const double y = top + height * static_cast<double>(map.sizes.size() - 1 - size);
    svg.Text({left - 4, y + height / 2 + 3}, SizeText(map.sizes[size]),
             {.size = 9, .anchor = Anchor::kEnd});
    for (size_t column = 0; column < map.clients.size(); ++column) {
      const double share =
          most == least ? 0 : std::log(value(size, column) / least) / std::log(most / least);
      const double x = left + width * static_cast<double>(column);
      svg.Box({x, y}, width, height, Heat(share));
      svg.Text({x + width / 2, y + height / 2 + 3}, ShortNumber(value(size, column)),
               {.size = 9, .anchor = Anchor::kMiddle, .color = share > 0.5 ? "#fff" : "#222"});
    }
  }
  for (size_t column = 0; column < map.clients.size(); ++column)
    svg.Text({left + width * (static_cast<double>(column) + 0.5), corner.y + kRowHeight - 34},
             fmt::format("{}", map.clients[column]), {.size = 9, .anchor = Anchor::kMiddle});
  svg.Text({corner.x + kRowWidth / 2, corner.y + kRowHeight - 20}, "clients",
           {.size = 9, .anchor = Anchor::kMiddle, .color = "#777"});
}

// ---- Kiviat diagram

class KiviatDiagram {
 public:
  KiviatDiagram(Svg& svg, Point corner, std::vector<predict::Growth> growth)
      : svg_(svg), corner_(corner), growth_(std::move(growth)) {}

  void Draw(const std::string& title) {
    svg_.Text({corner_.x + kRowWidth / 2, corner_.y + 18}, title,
              {.size = 12, .anchor = Anchor::kMiddle, .bold = true});
    FindRange();
    for (double power = low_; power <= high_; ++power) DrawRing(power);
    for (size_t axis = 0; axis < predict::kEnvelopeMetrics.size(); ++axis) DrawAxis(axis);
    for (size_t i = 0; i < growth_.size(); ++i) {
      std::vector<Point> points;
      for (size_t axis = 0; axis < growth_[i].factors.size(); ++axis)
        points.push_back(At(axis, std::log2(growth_[i].factors[axis])));
      svg_.Polygon(points, {.color = SvgColor(i), .width = 1.6});
      svg_.Text({corner_.x + 12, corner_.y + 40 + 14 * static_cast<double>(i)},
                fmt::format("{} client{}", growth_[i].clients, growth_[i].clients == 1 ? "" : "s"),
                {.size = 10, .color = SvgColor(i), .bold = true});
    }
  }

 private:
  // Finds powers of two that enclose all factors.
  void FindRange() {
    for (const predict::Growth& growth : growth_) {
      for (const double factor : growth.factors) {
        low_ = std::min(low_, std::floor(std::log2(factor)));
        high_ = std::max(high_, std::ceil(std::log2(factor)));
      }
    }
  }

  Point At(size_t axis, double power) const {
    const double angle = 2 * std::numbers::pi * static_cast<double>(axis) /
                         static_cast<double>(predict::kEnvelopeMetrics.size());
    // Keeps the smallest factor out of the middle, where all axes meet.
    const double radius = kRadius * (power - low_ + 0.5) / (high_ - low_ + 0.5);
    return {corner_.x + kRowWidth / 2 + radius * std::sin(angle),
            corner_.y + kRowHeight / 2 + 6 - radius * std::cos(angle)};
  }

  void DrawRing(double power) {
    std::vector<Point> ring;
    for (size_t axis = 0; axis < predict::kEnvelopeMetrics.size(); ++axis)
      ring.push_back(At(axis, power));
    svg_.Polygon(ring, {.color = power == 0 ? "#999" : kGridColor});
    svg_.Text({ring.front().x + 3, ring.front().y - 1}, fmt::format("{:g}", std::exp2(power)),
              {.size = 8, .color = "#777"});
  }

  void DrawAxis(size_t axis) {
    svg_.Line(At(axis, low_), At(axis, high_), {.color = kGridColor});
    const Point end = At(axis, high_);
    const double middle = corner_.x + kRowWidth / 2;
    const Anchor anchor = std::abs(end.x - middle) < 1 ? Anchor::kMiddle
                          : end.x > middle             ? Anchor::kStart
                                                       : Anchor::kEnd;
    const auto& metric = predict::kEnvelopeMetrics[axis];
    const double down = end.y > corner_.y + kRowHeight / 2 ? 12 : -20;
    const double x = end.x + (anchor == Anchor::kStart ? 4 : anchor == Anchor::kEnd ? -4 : 0);
    svg_.Text({x, end.y + down}, NameOf(metric.operation), {.size = 9, .anchor = anchor});
    svg_.Text({x, end.y + down + 10}, metric.is_bandwidth ? "bandwidth" : "throughput",
              {.size = 9, .anchor = anchor});
  }

  static constexpr double kRadius = 125;

  Svg& svg_;
  const Point corner_;
  const std::vector<predict::Growth> growth_;
  double low_ = -1, high_ = 1;
};

void DrawLegend(Svg& svg, const std::vector<Envelope>& envelopes) {
  svg.Text({14, 24}, "MTC envelope", {.size = 17, .bold = true});
  double x = 16;
  for (size_t i = 0; i < envelopes.size(); ++i) {
    svg.Line({x, 46}, {x + 22, 46}, {.color = SvgColor(i), .width = 3});
    svg.Text({x + 28, 50}, envelopes[i].name, {.size = 12, .color = SvgColor(i), .bold = true});
    x += 52 + 8 * static_cast<double>(envelopes[i].name.size());
  }
  x = 16;
  const auto sizes = All(envelopes, &Envelope::sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    svg.Line({x, 66}, {x + 34, 66}, {.width = 1.6, .dashes = kDashes[i % std::size(kDashes)]});
    svg.Text({x + 40, 70}, "files of " + SizeText(sizes[i]), {});
    x += 140;
  }
}

constexpr size_t kSystemsMax = 12;

}  // namespace

std::string DrawEnvelopes(const std::vector<Envelope>& envelopes) {
  const auto rows = static_cast<double>(envelopes.size());
  constexpr size_t kCurveRows = (predict::kEnvelopeMetrics.size() + kColumns - 1) / kColumns;
  constexpr double kCurvesHeight = kPanelHeight * kCurveRows;
  Svg svg(kPageWidth, kHeadHeight + kCurvesHeight + kRowHeight * rows);
  DrawLegend(svg, envelopes);
  for (size_t i = 0; i < predict::kEnvelopeMetrics.size(); ++i) {
    const Point corner{kPanelWidth * static_cast<double>(i % kColumns),
                       kHeadHeight + kPanelHeight * static_cast<double>(i / kColumns)};
    CurvePanel(predict::kEnvelopeMetrics[i], envelopes).Draw(svg, corner);
  }
  for (size_t i = 0; i < envelopes.size(); ++i) {
    const Envelope& envelope = envelopes[i];
    const double y = kHeadHeight + kCurvesHeight + kRowHeight * static_cast<double>(i);
    const predict::HeatMap map = predict::WriteHeatMap(envelope);
    DrawHeatMap(svg, {0, y}, envelope.name + ": create and write, bytes/s", map, true);
    DrawHeatMap(svg, {kRowWidth, y}, envelope.name + ": create and write, files/s", map, false);
    KiviatDiagram(svg, {2 * kRowWidth, y}, predict::GrowthOf(envelope))
        .Draw(envelope.name + ": growth over the fewest clients");
  }
  return svg.Finish();
}

Result<std::string> DrawEnvelopeFiles(const std::vector<std::string>& paths) {
  std::vector<predict::Envelope> all;
  std::set<std::string> names;
  for (const std::string& path : paths) {
    MOSA_ASSIGN_OR_RETURN(std::vector<predict::Envelope> read, ReadEnvelopeFile(path));
    for (predict::Envelope& envelope : read) {
      // Stores of several files may have the same name.
      if (!names.insert(envelope.name).second)
        envelope.name += fmt::format(" ({})", std::filesystem::path(path).stem().string());
      names.insert(envelope.name);
      all.push_back(std::move(envelope));
    }
  }
  if (all.size() > kSystemsMax)
    return InvalidArgumentError(
        fmt::format("{} stores on one page: give at most {}", all.size(), kSystemsMax));
  return DrawEnvelopes(all);
}

}  // namespace mosa::cli
